// The list of what happened.

import * as api from "./api";
import { SIGNS } from "./charts";
import { by, make } from "./dom";
import * as format from "./format";

const FEW = 12;
let all = false;

export function showEvents(events: api.Happened[]) {
  const root = by("events");
  const list = root.querySelector("ol")!;
  const button = by("more-events");
  const shown = events.slice(all ? -500 : -FEW).reverse();
  const first = shown[0]?.seq ?? 0;
  if (list.dataset["first"] === `${first}/${shown.length}`) return;
  list.dataset["first"] = `${first}/${shown.length}`;
  list.replaceChildren(...shown.map((event) =>
    make("li", { "data-kind": event.kind, "data-seq": String(event.seq) },
      make("time", {}, format.clock(event.at)),
      make("span", { class: "sign", "aria-label": event.kind }, SIGNS[event.kind] ?? "·"),
      make("span", {}, format.kept(event.text)))));
  if (shown.length === 0) list.append(make("li", { class: "quiet" }, "Nothing yet."));
  button.hidden = all || events.length <= FEW;
  button.onclick = () => { all = true; showEvents(events); };
}
