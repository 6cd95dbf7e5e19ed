// A card for each link: what it does, in which state it is and since when, what that cost.

import * as api from "./api";
import { make, mark, set } from "./dom";
import * as format from "./format";
import { sample } from "./palette";

const WORDS: Record<api.State, string> = {
  validating: "being tested", active: "in use", standby: "standing by", suspect: "in doubt", dead: "dead",
};

export interface Link { key: string; path: api.Path; session: api.Session; newest: api.Row | undefined; index: number; trouble: api.Happened | undefined; givenUp: number }

type Say = (text: string, done: boolean) => void;

export class Card {
  readonly root: HTMLElement;
  private state = make("span", { class: "state" });
  private reason = make("p", { class: "reason" });
  private trouble = make("p", { class: "trouble" });
  private figures = new Map<string, HTMLElement>();
  private terms = make("p", { class: "terms" });
  private bar = make("progress", { max: "1" });
  private more = make("button", { class: "more plain", "aria-label": "Actions", "aria-expanded": "false" }, "⋯");
  private standby = make("button", { class: "plain" });
  private remove = make("button", { class: "plain" }, "Remove");
  private stands = false;
  // What had been lost when the doubt began.
  private before: { at: number; lost: number; givenUp: number } | null = null;

  constructor(link: Link, actions: boolean, say: Say, focus: (key: string) => void) {
    const name = make("button", { class: "name", "aria-pressed": "false", title: "Show this link's lines alone" },
      sample(link.index), make("b", {}, link.path.name));
    name.addEventListener("click", () => focus(link.key));
    const figures = make("dl");
    for (const [key, title] of [["received", "received"], ["sent", "sent"], ["rtt", "round trip"], ["loss", "loss"], ["queue", "waiting"]]) {
      const value = make("dd", { "data-figure": key! });
      this.figures.set(key!, value);
      figures.append(make("div", {}, make("dt", {}, title!), value));
    }
    this.root = make("article", { class: "link", "data-path": link.path.name, "data-key": link.key },
      make("header", {}, name, this.state), this.reason, figures, this.terms, this.bar, this.trouble);
    if (actions) {
      this.root.querySelector("header")!.append(this.more);
      this.more.addEventListener("click", () => {
        const open = this.more.getAttribute("aria-expanded") !== "true";
        this.more.setAttribute("aria-expanded", String(open));
        this.root.classList.toggle("open", open);
      });
      this.root.append(make("p", { class: "actions" }, this.standby, this.remove));
      this.standby.addEventListener("click", async () => {
        const said = await api.act({ request: "paths-standby", path: link.path.name, standby: !this.stands });
        say(said.text, said.done);
      });
      // A second press within some seconds: a link removed by a slip of the thumb costs too much.
      let sure = 0;
      this.remove.addEventListener("click", async () => {
        if (!sure) {
          set(this.remove, "Really remove?");
          sure = window.setTimeout(() => { sure = 0; set(this.remove, "Remove"); }, 4000);
          return;
        }
        clearTimeout(sure);
        sure = 0;
        set(this.remove, "Remove");
        const said = await api.act({ request: "paths-remove", path: link.path.name });
        say(said.text, said.done);
      });
    }
  }

  update({ path, newest, trouble, givenUp }: Link, focus: boolean, now: number) {
    mark(this.root, "state", path.state);
    this.root.querySelector(".name")!.setAttribute("aria-pressed", String(focus));
    set(this.state, `${WORDS[path.state]} · ${format.span(path.for_s)}`);
    set(this.reason, path.state === "active" ? "" : path.reason);
    const show = (name: string, text: string) => set(this.figures.get(name)!, text);
    show("sent", format.rate(newest?.[0]));
    show("received", format.rate(newest?.[1]));
    show("rtt", format.ms(path.rtt_ms));
    show("loss", format.percent(path.loss));
    show("queue", format.bytes(path.queue_bytes));
    const terms = [
      path.datagram_bytes === null ? null : `datagrams of ${format.exact(path.datagram_bytes, "B")}`,
      `cost ${path.cost}`,
      `${format.bytes(path.received_bytes)} received, ${format.bytes(path.sent_bytes)} sent`,
      path.carrier === "tcp" ? "carried by TCP" : null,
      path.budget === null ? null : `${format.bytes(path.budget.used_bytes)} of ${format.bytes(path.budget.limit_bytes)} used this month`,
    ];
    set(this.terms, terms.filter((term) => term !== null).join(" · "));
    this.bar.hidden = path.budget === null;
    if (path.budget) this.bar.value = Math.min(1, path.budget.used_bytes / Math.max(1, path.budget.limit_bytes));
    set(this.trouble, this.cost(path, givenUp, now) ?? last(path, trouble));
    this.stands = path.state === "standby";
    set(this.standby, this.stands ? "Use it" : "Stand by");
  }

  // Since when a link is in doubt or dead, and what that has cost so far.
  private cost(path: api.Path, givenUp: number, now: number): string | null {
    if (path.state !== "suspect" && path.state !== "dead") {
      this.before = null;
      return null;
    }
    this.before ??= { at: now - path.for_s, lost: path.lost_packets, givenUp };
    const lost = path.lost_packets - this.before.lost;
    const missed = givenUp - this.before.givenUp;
    const cost = [lost > 0 ? `${format.count(lost)} packets lost` : "", missed > 0 ? `${format.count(missed)} live datagrams given up` : ""].filter((text) => text);
    return `Since ${format.clock(this.before.at)}: ${cost.length ? cost.join(", ") : "nothing lost so far"}`;
  }
}

function last(path: api.Path, trouble: api.Happened | undefined): string {
  if (!trouble) return "";
  const name = path.name + " ";
  const text = trouble.text.startsWith(name) ? trouble.text.slice(name.length) : trouble.text;
  return `${format.clock(trouble.at)} ${format.kept(text)}`;
}
