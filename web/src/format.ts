// Numbers as people read them: three digits and a unit.

const NARROW = "\u202f";

function scaled(value: number, step: number, units: string[]): string {
  let unit = 0;
  while (Math.abs(value) >= step * 0.9995 && unit + 1 < units.length) {
    value /= step;
    unit += 1;
  }
  return digits(value) + NARROW + units[unit];
}
export function digits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 9.995) return value.toFixed(size < 0.095 ? 2 : 1);
  return value.toFixed(0);
}
type Maybe = number | null | undefined;
const known = (value: Maybe): value is number => value !== null && value !== undefined && Number.isFinite(value);

export const rate = (bps: Maybe) => (known(bps) ? scaled(bps, 1000, ["b/s", "kb/s", "Mb/s", "Gb/s"]) : "–");
export const bytes = (count: Maybe) => (known(count) ? scaled(count, 1000, ["B", "kB", "MB", "GB", "TB"]) : "–");
export const count = (number: Maybe) => (known(number) ? number.toLocaleString("en") : "–");
export const exact = (number: Maybe, unit: string) => (known(number) ? number.toLocaleString("en") + NARROW + unit : "–");
export const ms = (time: Maybe) => (known(time) ? digits(time) + NARROW + "ms" : "–");
export const percent = (share: Maybe) => (known(share) ? digits(share * 100) + NARROW + "%" : "–");

export function span(seconds: number): string {
  if (seconds < 9.95) return seconds.toFixed(1) + NARROW + "s";
  const [s, m, h] = [Math.floor(seconds), Math.floor(seconds / 60), Math.floor(seconds / 3600)];
  if (s < 120) return s + NARROW + "s";
  if (m < 120) return m + NARROW + "min";
  if (h < 48) return `${h}${NARROW}h`;
  return Math.floor(h / 24) + NARROW + "d";
}
const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
// A number keeps its unit beside it.
export const kept = (text: string) => text.replace(/(\d) (?=(ms|s|m|h|%|[kMGT]?B|[kMG]?b\/s)\b|%|(\d+[smh]))/g, "$1\u00a0");
export const clock = (at: number) => TIME.format(at * 1000);
