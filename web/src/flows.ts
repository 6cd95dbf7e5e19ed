// Flows, summed up by what they are.

import * as api from "./api";
import { by, make } from "./dom";
import * as format from "./format";

const KINDS: Record<string, string> = { stream: "stream", packets: "flow of packets", blocks: "flow of blocks", objects: "flow of objects" };
const some = (count: number, kind: string) => `${count} ${KINDS[kind] ?? kind}`.replace(/(stream|flow)/, count === 1 ? "$1" : "$1s");

export function showFlows(groups: api.FlowGroup[]) {
  const root = by("flows");
  root.hidden = groups.length === 0;
  const cell = (text: string, label: string) => make("td", { "data-label": label }, text);
  const rows = groups.map((flow) => make("tr", {},
    make("th", { scope: "row" }, some(flow.count, flow.kind)),
    cell(flow.scheduler, "scheduler"), cell(format.bytes(flow.sent_bytes), "sent"), cell(format.bytes(flow.delivered_bytes), "received"),
    cell(format.bytes(flow.backlog_bytes), "waiting"), cell(format.ms(flow.delay_ms?.p50), "median"), cell(format.ms(flow.delay_ms?.p95), "95 %"),
    cell(format.bytes(flow.retransmitted_bytes + flow.repair_bytes), "sent besides")));
  const head = ["Flows", "scheduler", "sent", "received", "waiting", "median", "95 %", "sent besides"].map((text) => make("th", { scope: "col" }, text));
  root.replaceChildren(make("h2", {}, "Flows"), make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)));
}
