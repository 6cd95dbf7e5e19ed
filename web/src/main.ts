import "uplot/dist/uPlot.min.css";
import "./page.css";
import * as api from "./api";
import { Chart, KINDS, Line, States, columnOf } from "./charts";
import { by, make, mark, set } from "./dom";
import { Entry } from "./entries";
import { showFlows } from "./flows";
import * as format from "./format";
import { showEvents } from "./happened";
import { Track, day } from "./history";
import { Card, Link } from "./links";
import { onTheme } from "./palette";

// Nobody distinguishes more lines than this.
const MAX_LINES = 16;
const MAX_EVENTS = 2000;
const TROUBLE = new Set(["suspect", "dead", "back", "size", "budget"]);

const tracks: Record<api.Span, Track> = { "10m": new Track("10m"), "24h": new Track("24h") };
let span: api.Span = "10m";
let newest: api.Now | null = null;
let happened: api.Happened[] = [];
let focused: string | null = null;
// A link keeps its colour for as long as the page is open.
const indices = new Map<string, number>();
const cards = new Map<string, Card>();
const entries = new Map<string, Entry>();

const marked = () => ({ events: happened, now: newest?.at ?? Date.now() / 1000, span });
const states = new States(marked, (at) => set(by("cursor"), at === null ? "" : format.clock(at)));
const charts = KINDS.map((kind, index) => new Chart(kind, index === 3 || index === KINDS.length - 1, marked));

function index(key: string): number {
  if (!indices.has(key)) indices.set(key, indices.size);
  return indices.get(key)!;
}
function say(text: string, done: boolean) {
  const said = by("said");
  set(said, text);
  mark(said, "level", done ? "fine" : "slow");
}
function focus(key: string) {
  focused = focused === key ? null : key;
  if (newest) look(newest);
}

function links(now: api.Now): Link[] {
  const rows = new Map(now.paths.map((one) => [one.key, one.row]));
  const last = new Map<string, api.Happened>();
  for (const event of happened) if (event.key !== null && TROUBLE.has(event.kind)) last.set(event.key, event);
  const client = now.status.role === "client";
  const givenUp = now.status.live.reduce((sum, live) => sum + live.sent.given_up, 0);
  return now.status.sessions.flatMap((session) => session.paths.map((path) => {
    const key = client ? path.name : `${session.id}/${path.id}`;
    return { key, path, session, newest: rows.get(key), index: index(key), trouble: last.get(key), givenUp };
  }));
}

function look(now: api.Now) {
  newest = now;
  const { status } = now;
  const client = status.role === "client";
  mark(by("why"), "level", now.why.level);
  set(by("why").querySelector("h1")!, format.kept(now.why.text));
  const state = status.sessions.length === 1 ? status.sessions[0]!.state : `${status.sessions.length + now.left_out} clients`;
  set(by("program"), `marline ${status.role} · ${state} · up ${format.span(status.uptime_s)}`);
  document.title = `${{ fine: "●", slow: "▲", down: "■" }[now.why.level]} Marline ${status.role}`;
  by("add").hidden = !client;

  const all = links(now);
  const there = new Set(all.map((link) => link.key));
  for (const [key, card] of cards) if (!there.has(key)) { card.root.remove(); cards.delete(key); }
  for (const link of all) {
    let card = cards.get(link.key);
    if (!card) {
      card = new Card(link, client, say, focus);
      cards.set(link.key, card);
      by("links").append(card.root);
    }
    card.update(link, focused === link.key, now.at);
  }

  const live = by("live");
  live.hidden = status.live.length === 0;
  for (const one of status.live) {
    let entry = entries.get(one.name);
    if (!entry) {
      entry = new Entry(one.name, marked, say);
      entries.set(one.name, entry);
      live.append(entry.root);
    }
    entry.update(one);
  }
  showFlows(now.flows);
  const left = now.left_out ? ` · ${now.left_out} more clients are not shown` : "";
  set(by("foot"), `Marline ${status.version}${status.tunnel ? ` · tunnel ${status.tunnel.device} ${status.tunnel.addresses.join(", ")}` : ""}${left} · times are this browser's`);
  draw(all);
}

function draw(all: Link[]) {
  const track = span === "10m" ? tracks["10m"] : day(tracks["24h"], tracks["10m"]);
  const names = new Map(all.map((link) => [link.key, link.path.name]));
  const gone = track.keys("path").filter((key) => !names.has(key));
  const keys = [...names.keys(), ...gone].slice(0, MAX_LINES);
  const lines: Line[] = keys.map((key) => ({ key, name: names.get(key) ?? track.name("path", key), index: index(key) }));
  states.draw(track.at, lines, columnOf(track, "path", "state"));
  for (const chart of charts) {
    const hasBudget = chart.kind.column !== "budget_used" || all.some((link) => link.path.budget !== null);
    chart.root.hidden = !hasBudget;
    if (hasBudget) chart.draw(track.at, lines, columnOf(track, "path", chart.kind.column), focused);
  }
  for (const entry of entries.values()) entry.draw(track);
  showEvents(happened);
}

async function load() {
  const [, , known] = await Promise.all([tracks["10m"].load(), tracks["24h"].load(), api.events()]);
  // Those that came meanwhile are not in what was asked for before.
  const last = known.events.at(-1)?.seq ?? 0;
  happened = [...known.events, ...happened.filter((event) => event.seq > last)].slice(-MAX_EVENTS);
  if (newest) look(newest);
}

function begin() {
  const root = by("charts");
  const more = make("details", {}, make("summary", {}, "Waiting, datagram size, cost and budget"));
  root.append(states.root);
  for (const chart of charts) (chart.kind.more ? more : root).append(chart.root);
  root.append(more);
  const redraw = () => { if (newest) draw(links(newest)); };
  more.addEventListener("toggle", redraw);
  new ResizeObserver(redraw).observe(root);
  onTheme(() => { [states, ...charts, ...entries.values()].forEach((one) => one.clear()); redraw(); });
  for (const button of document.querySelectorAll<HTMLButtonElement>("[data-span]"))
    button.addEventListener("click", () => {
      span = button.dataset["span"] as api.Span;
      for (const other of document.querySelectorAll("[data-span]")) other.setAttribute("aria-pressed", String(other === button));
      redraw();
    });
  by("add").addEventListener("submit", async (event) => {
    event.preventDefault();
    const input = by("add-path") as HTMLInputElement;
    const said = await api.act({ request: "paths-add", path: input.value.trim() });
    say(said.text, said.done);
    if (said.done) input.value = "";
  });

  // Over TLS who reads has logged in.
  by("leave").hidden = location.protocol !== "https:";

  let minute = 0;
  api.follow(
    (now) => {
      // The program's clock was set back: its history has begun again.
      if (newest && now.at < newest.at - 2) { minute = now.at; void load(); }
      tracks["10m"].push(now);
      // The program folds a minute into one row; the page reads it then.
      if (now.at - minute >= 60) { if (minute) void tracks["24h"].load(); minute = now.at; }
      look(now);
    },
    (event) => {
      if (!happened.some((known) => known.seq === event.seq)) happened = [...happened, event].slice(-MAX_EVENTS);
    },
    (open) => {
      if (open) { happened = []; void load(); return; }
      mark(by("why"), "level", "down");
      set(by("why").querySelector("h1")!, "The program does not answer.");
    },
  );
}
begin();
