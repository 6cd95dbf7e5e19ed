// Lines over one time axis, with what happened marked on it.

import uPlot from "uplot";
import * as api from "./api";
import { make, set } from "./dom";
import * as format from "./format";
import { Lines } from "./history";
import { colour, dash, isDark } from "./palette";

export interface Line { key: string; name: string; index: number }
type Show = (value: number | null | undefined) => string;
export interface Kind { title: string; column: string; show: Show; least: number; step?: boolean; base?: number; more?: boolean }

// `least`: the axis shows at least this much, so that noise near nothing stays small.
export const KINDS: Kind[] = [
  { title: "Received", column: "received_bps", show: format.rate, least: 1e5 },
  { title: "Sent", column: "sent_bps", show: format.rate, least: 1e5 },
  { title: "Round trip", column: "rtt_ms", show: format.ms, least: 20 },
  { title: "Loss", column: "loss", show: format.percent, least: 0.05 },
  { title: "Waiting to be sent", column: "queue_bytes", show: format.bytes, least: 2e4, more: true },
  { title: "Datagram size", column: "datagram_bytes", show: (v) => format.exact(v, "B"), least: 1500, step: true, more: true },
  { title: "Cost", column: "cost", show: format.count, least: 1, step: true, more: true },
  { title: "Budget used", column: "budget_used", show: format.percent, least: 1, more: true },
];

export const SIGNS: Record<string, string> = {
  up: "↑", suspect: "?", dead: "✕", back: "✓", standby: "‖", removed: "−", size: "↕", outage: "■", budget: "◔", target: "↓",
};

const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const FONT = "11px system-ui, sans-serif";
const AXIS = 58;
const SYNC = uPlot.sync("time");
const SECONDS: Record<api.Span, number> = { "10m": 600, "24h": 86400 };

// A program that has just begun shows what there is, and no empty hours.
const LEAST: Record<api.Span, number> = { "10m": 60, "24h": 3600 };

const clockTicks: uPlot.Axis.Values = (_, ticks) =>
  ticks.map((at) => (at % 60 ? format.clock(at) : format.clock(at).slice(0, 5)));

export type Marked = () => { events: api.Happened[]; now: number; span: api.Span };

// Loud ones are drawn stronger.
const LOUD = new Set(["suspect", "dead", "outage", "target"]);

function drawEvents(plot: uPlot, marked: Marked) {
  const { ctx, bbox } = plot;
  const { events } = marked();
  ctx.save();
  for (const event of events) {
    const x = Math.round(plot.valToPos(event.at, "x", true)) + 0.5;
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.strokeStyle = css(LOUD.has(event.kind) ? "--bad" : "--rule-strong");
    ctx.globalAlpha = LOUD.has(event.kind) ? 0.55 : 0.6;
    ctx.lineWidth = 1;
    ctx.setLineDash(LOUD.has(event.kind) ? [] : [2, 3]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

function axes(kind: Kind | null, bottom: boolean): uPlot.Axis[] {
  const rule = { stroke: () => css("--rule"), width: 1 };
  const time: uPlot.Axis = {
    stroke: () => css("--quiet"), font: FONT, grid: { show: false }, ticks: { show: false },
    values: clockTicks, space: 70, size: bottom ? 22 : 4, show: true, gap: 4,
  };
  if (!bottom) time.values = (_, ticks) => ticks.map(() => "");
  const value: uPlot.Axis = kind
    ? { stroke: () => css("--quiet"), font: FONT, grid: rule, ticks: { show: false }, size: AXIS, gap: 6, space: 26,
        values: (_, ticks) => ticks.map((tick) => kind.show(tick)) }
    : { show: true, size: AXIS, grid: { show: false }, ticks: { show: false }, values: (_, ticks) => ticks.map(() => "") };
  return [time, value];
}

function options(width: number, height: number, kind: Kind | null, bottom: boolean, marked: Marked): uPlot.Options {
  return {
    width, height, legend: { show: false }, padding: [6, 18, 0, 0],
    cursor: { sync: { key: SYNC.key, setSeries: false }, points: { size: 6 }, y: false, drag: { x: false, y: false } },
    scales: {
      x: { time: true, range: (plot) => { const { now, span } = marked(); return [Math.max(now - SECONDS[span], Math.min(plot.data[0][0] ?? now, now - LEAST[span])), now]; } },
      y: kind ? { range: (_, __, top) => [kind.base ?? 0, Math.max((top ?? 0) * 1.08, kind.least)] } : { range: [0, 1] },
    },
    axes: axes(kind, bottom),
    series: [{}],
    hooks: { drawClear: [(plot) => drawEvents(plot, marked)] },
  };
}

// One figure of all links.
export class Chart {
  readonly root: HTMLElement;
  private values = make("p", { class: "values" });
  private place = make("div", { class: "plot" });
  private plot: uPlot | null = null;
  private lines: Line[] = [];
  private made = "";

  constructor(readonly kind: Kind, private bottom: boolean, private marked: Marked, private height = 104) {
    this.root = make("figure", { class: "chart", "data-chart": kind.column },
      make("figcaption", {}, make("h3", {}, kind.title), this.values), this.place);
  }

  draw(at: number[], lines: Line[], of: (key: string) => (number | null)[], focus: string | null) {
    const width = this.place.clientWidth;
    if (width === 0) return;
    const columns = lines.map((line) => of(line.key));
    const made = JSON.stringify([lines, isDark(), focus]);
    if (!this.plot || this.made !== made) this.build(width, lines, focus, made);
    const plot = this.plot!;
    if (plot.width !== width) plot.setSize({ width, height: this.height + (this.bottom ? 18 : 0) });
    plot.setData([at, ...columns]);
    this.tell();
  }

  private build(width: number, lines: Line[], focus: string | null, made: string) {
    this.plot?.destroy();
    this.made = made;
    this.lines = lines;
    const all = options(width, this.height + (this.bottom ? 18 : 0), this.kind, this.bottom, this.marked);
    for (const line of lines)
      all.series.push({
        label: line.name, stroke: colour(line.index), dash: dash(line.index), points: { show: false },
        width: focus === line.key ? 3 : 1.75, alpha: focus && focus !== line.key ? 0.25 : 1, spanGaps: false,
        ...(this.kind.step ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {}),
      });
    all.hooks!.setCursor = [() => this.tell()];
    this.plot = new uPlot(all, [[], ...lines.map(() => [])], this.place);
    this.values.replaceChildren(...lines.slice(0, 6).map((line) =>
      make("span", { class: `tone${line.index % 8}` }, make("i", {}, line.name), make("b"))));
  }

  // The figures under the cursor, or the newest.
  private tell() {
    const plot = this.plot;
    if (!plot) return;
    const at = plot.cursor.idx ?? plot.data[0].length - 1;
    this.lines.slice(0, 6).forEach((_, index) => {
      const value = this.values.children[index]?.querySelector("b");
      if (value) set(value, this.kind.show(plot.data[index + 1]?.[at]));
    });
  }
  clear() { this.made = ""; }
}

// The states of all links: a bar while one is in use, thin while it stands by, hatched while it is
// in doubt, nothing but a line of crosses while it is dead.
export class States {
  readonly root: HTMLElement;
  private place = make("div", { class: "plot" });
  private plot: uPlot | null = null;
  private made = "";
  private lines: Line[] = [];
  private columns: (number | null)[][] = [];

  constructor(private marked: Marked, private hover: (at: number | null) => void) {
    this.root = make("figure", { class: "chart", "data-chart": "state" },
      make("figcaption", {}, make("h3", {}, "State"), make("p", { class: "values key" },
        make("span", {}, "▬ in use"), make("span", {}, "─ standby"), make("span", {}, "▨ in doubt"), make("span", {}, "× dead"))),
      this.place);
  }

  draw(at: number[], lines: Line[], of: (key: string) => (number | null)[]) {
    const width = this.place.clientWidth;
    if (width === 0) return;
    const height = 14 + lines.length * 18;
    this.columns = lines.map((line) => of(line.key));
    this.lines = lines;
    const made = JSON.stringify([lines, isDark()]);
    if (!this.plot || this.made !== made) {
      this.plot?.destroy();
      this.made = made;
      const all = options(width, height, null, false, this.marked);
      all.hooks!.draw = [(plot) => this.paint(plot)];
      all.hooks!.setCursor = [(plot) => this.hover(plot.cursor.idx == null ? null : plot.data[0][plot.cursor.idx] ?? null)];
      all.series.push({ show: false });
      this.plot = new uPlot(all, [[], []], this.place);
    }
    if (this.plot.width !== width) this.plot.setSize({ width, height });
    this.plot.setData([at, at.map(() => null)]);
  }

  private paint(plot: uPlot) {
    const { ctx, bbox } = plot;
    const times = plot.data[0];
    const ratio = devicePixelRatio;
    ctx.save();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    this.lines.forEach((line, row) => {
      const y = bbox.top + (row + 0.5) * (bbox.height / this.lines.length);
      ctx.fillStyle = css("--quiet");
      ctx.textAlign = "right";
      const name = line.name.length > 9 ? line.name.slice(0, 8) + "…" : line.name;
      ctx.fillText(name, bbox.left - 6 * ratio, y);
      const states = this.columns[row] ?? [];
      for (let from = 0; from < times.length; ) {
        let to = from + 1;
        while (to < times.length && states[to] === states[from]) to += 1;
        const left = Math.max(bbox.left, plot.valToPos(times[from]!, "x", true));
        const right = Math.min(bbox.left + bbox.width, plot.valToPos(times[Math.min(to, times.length - 1)]!, "x", true));
        const state = states[from];
        if (state !== null && state !== undefined && right > left) this.bar(ctx, line, api.STATES[Math.round(state)]!, left, right, y, ratio);
        from = to;
      }
    });
    ctx.restore();
  }

  private bar(ctx: CanvasRenderingContext2D, line: Line, state: api.State, left: number, right: number, y: number, ratio: number) {
    const tone = colour(line.index);
    const width = Math.max(right - left, ratio);
    ctx.save();
    ctx.fillStyle = ctx.strokeStyle = tone;
    ctx.lineWidth = 1.5 * ratio;
    if (state === "active") ctx.fillRect(left, y - 4 * ratio, width, 8 * ratio);
    else if (state === "standby" || state === "validating") {
      if (state === "validating") ctx.setLineDash([2 * ratio, 3 * ratio]);
      ctx.beginPath(); ctx.moveTo(left, y); ctx.lineTo(left + width, y); ctx.stroke();
    } else {
      ctx.strokeStyle = css("--bad");
      ctx.beginPath(); ctx.rect(left, y - 5 * ratio, width, 10 * ratio); ctx.clip();
      ctx.beginPath();
      const step = (state === "dead" ? 8 : 4) * ratio;
      for (let x = left - (left % step) - step; x < right + step; x += step) {
        ctx.moveTo(x, y + 4 * ratio); ctx.lineTo(x + 6 * ratio, y - 4 * ratio);
        if (state === "dead") { ctx.moveTo(x, y - 4 * ratio); ctx.lineTo(x + 6 * ratio, y + 4 * ratio); }
      }
      ctx.stroke();
    }
    ctx.restore();
  }
  clear() { this.made = ""; }
}

export function columnOf(track: Lines, of: "path" | "live", column: string) {
  return (key: string) => track.column(of, key, column);
}
