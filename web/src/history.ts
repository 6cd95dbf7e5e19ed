// Figures over time, as the charts want them: one list of times, one list a link and column.

import * as api from "./api";

const KEPT: Record<api.Span, number> = { "10m": 600, "24h": 1440 };

export class Track {
  at: number[] = [];
  columns: string[] = [];
  liveColumns: string[] = [];
  private series = new Map<string, { name: string; rows: (api.Row | null)[] }>();

  constructor(readonly span: api.Span) {}

  async load() {
    const history = await api.history(this.span);
    this.at = history.at;
    this.columns = history.path_columns;
    this.liveColumns = history.live_columns;
    this.series.clear();
    for (const one of history.series) {
      const end = one.end === null ? -1 : this.at.lastIndexOf(one.end);
      // What came while the history was read is left to the next look: over a slow line, several
      // rows.
      const behind = one.end === null ? 0 : (one.end - (this.at.at(-1) ?? one.end)) / history.step_s;
      const late = end < 0 ? Math.max(1, Math.round(behind)) : 0;
      const rows = one.rows.slice(0, Math.max(0, one.rows.length - late));
      const last = end < 0 ? this.at.length - 1 : end;
      const aligned: (api.Row | null)[] = new Array(this.at.length).fill(null);
      rows.forEach((row, index) => {
        const place = last - rows.length + 1 + index;
        if (place >= 0) aligned[place] = row;
      });
      this.series.set(one.of + one.key, { name: one.name, rows: aligned });
    }
  }

  push(now: api.Now) {
    if (now.at <= (this.at.at(-1) ?? 0)) return;
    // A host that slept leaves a gap, not a line.
    const before = this.at.at(-1);
    if (before !== undefined && now.at - before > 5) this.append(before + 1, new Map());
    const rows = new Map<string, api.Row>();
    for (const one of now.paths) rows.set("path" + one.key, one.row);
    for (const one of now.live) rows.set("live" + one.key, one.row);
    this.append(now.at, rows);
  }

  private append(at: number, rows: Map<string, api.Row>) {
    this.at.push(at);
    for (const [key, row] of rows) {
      if (!this.series.has(key))
        this.series.set(key, { name: key.slice("path".length), rows: new Array(this.at.length - 1).fill(null) });
      this.series.get(key)!.rows.push(row);
    }
    for (const one of this.series.values()) if (one.rows.length < this.at.length) one.rows.push(null);
    const over = this.at.length - KEPT[this.span];
    if (over > 0) {
      this.at.splice(0, over);
      for (const one of this.series.values()) one.rows.splice(0, over);
    }
    // Of a path that has been away for all of the time there is no line.
    for (const [key, one] of this.series)
      if (!one.rows.some((row) => row?.some((value) => value !== null))) this.series.delete(key);
  }

  column(of: "path" | "live", key: string, name: string): (number | null)[] {
    const at = (of === "path" ? this.columns : this.liveColumns).indexOf(name);
    const rows = this.series.get(of + key)?.rows;
    return rows ? rows.map((row) => row?.[at] ?? null) : new Array(this.at.length).fill(null);
  }

  // Paths that are gone and still have lines.
  keys(of: "path" | "live"): string[] {
    return [...this.series.keys()].filter((key) => key.startsWith(of)).map((key) => key.slice(of.length));
  }
  name(of: "path" | "live", key: string): string {
    return this.series.get(of + key)?.name ?? key;
  }
}

// What the charts read.
export interface Lines {
  at: number[];
  column(of: "path" | "live", key: string, name: string): (number | null)[];
  keys(of: "path" | "live"): string[];
  name(of: "path" | "live", key: string): string;
}

// The day: minutes, and the last ten of them by the second.
export function day(minutes: Track, seconds: Track): Lines {
  const from = seconds.at[0] ?? Infinity;
  const older = minutes.at.findIndex((at) => at >= from);
  const kept = older < 0 ? minutes.at.length : older;
  return {
    at: [...minutes.at.slice(0, kept), ...seconds.at],
    column: (of, key, name) => [...minutes.column(of, key, name).slice(0, kept), ...seconds.column(of, key, name)],
    keys: (of) => [...new Set([...minutes.keys(of), ...seconds.keys(of)])],
    name: (of, key) => (seconds.keys(of).includes(key) ? seconds : minutes).name(of, key),
  };
}
