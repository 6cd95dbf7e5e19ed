// Live entries: what they need, what they get, how late and how whole it is.

import * as api from "./api";
import { Chart, Line, Marked } from "./charts";
import { make, mark, set } from "./dom";
import * as format from "./format";
import { Lines } from "./history";

const CONTENT: Record<string, string> = { "mpeg-ts": "MPEG-TS", rtp: "RTP", "rtp-mpeg-ts": "MPEG-TS in RTP", opaque: "" };
const LINES: [string, string][] = [["sent_bps", "sent"], ["target_bps", "target"], ["capacity_bps", "links carry"], ["received_bps", "received"]];

export class Entry {
  readonly root: HTMLElement;
  private title = make("span", { class: "quiet" });
  private verdict = make("p", { class: "reason" });
  private figures = new Map<string, HTMLElement>();
  private chart: Chart;

  constructor(private name: string, marked: Marked, say: (text: string, done: boolean) => void) {
    const figures = make("dl");
    for (const [key, title] of [
      ["rate", "rate"], ["target", "target"], ["capacity", "links carry"], ["p50", "delay, median"], ["p95", "95 % within"], ["p99", "99 % within"],
      ["given-up", "given up"], ["repaired", "repaired"], ["redundancy", "redundancy"],
    ]) {
      const value = make("dd", { "data-figure": key! });
      this.figures.set(key!, value);
      figures.append(make("div", {}, make("dt", {}, title!), value));
    }
    const input = make("input", { name: "target", placeholder: "8mbit, or auto", "aria-label": `Target rate of ${name}`, autocomplete: "off" });
    const form = make("form", { class: "actions" }, input, make("button", { class: "plain" }, "Set target"));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const said = await api.act({ request: "live-target", live: this.name, target: input.value.trim() || "auto" });
      say(said.text, said.done);
    });
    const kind = { title: "Rate", column: "rate", show: format.rate, least: 1e5 };
    this.chart = new Chart(kind, true, marked, 96);
    this.root = make("article", { class: "entry", "data-live": name },
      make("header", {}, make("h3", {}, `Live ${name}`), this.title), this.verdict, figures, this.chart.root, form);
  }

  update(live: api.Live) {
    const sends = live.sent.datagrams > 0 || live.received.datagrams === 0;
    const content = CONTENT[sends ? live.sent.content : live.received.content];
    set(this.title, [content, live.latency_ms === null ? "" : `at most ${format.ms(live.latency_ms)} late`, `${live.flows} open`].filter((text) => text).join(" · "));
    mark(this.root, "level", live.capacity_bps === null ? "fine" : "slow");
    set(this.verdict, live.capacity_bps === null ? "" : "The links carry less than it needs.");
    const show = (name: string, text: string) => set(this.figures.get(name)!, text);
    show("rate", format.rate(sends ? live.sent.rate_bps : live.received.rate_bps));
    show("target", live.target_bps === null ? (live.watched ? "as sent" : "–") : format.rate(live.target_bps));
    show("capacity", live.capacity_bps === null ? (live.watched ? "enough" : "–") : format.rate(live.capacity_bps));
    show("p50", format.ms(live.sent.delay_ms?.p50));
    show("p95", format.ms(live.sent.delay_ms?.p95));
    show("p99", format.ms(live.sent.delay_ms?.p99));
    show("given-up", format.count(sends ? live.sent.given_up : live.received.lost));
    show("repaired", sends ? format.count(live.sent.repaired) : "–");
    show("redundancy", sends ? format.percent(live.sent.redundancy) : "–");
  }

  draw(track: Lines) {
    const has = ([column]: [string, string]) => track.column("live", this.name, column).some((value) => value !== null && value !== 0);
    const lines: Line[] = LINES.map(([key, name], index) => ({ key, name, index })).filter((line) => has([line.key, line.name]));
    this.chart.draw(track.at, lines, (column) => track.column("live", this.name, column), null);
  }
  clear() { this.chart.clear(); }
}
