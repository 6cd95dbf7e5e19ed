// What the program answers (docs/WEB.md).

export interface Delay { p50: number; p95: number; p99: number; worst: number }
export type State = "validating" | "active" | "standby" | "suspect" | "dead";
export const STATES: State[] = ["validating", "active", "standby", "suspect", "dead"];

export interface Path {
  id: number; name: string; state: State; reason: string; for_s: number; silent_s: number | null;
  cost: number; rtt_ms: number | null; rtt_min_ms: number | null; loss: number | null;
  queue_bytes: number; rate_bps: number | null; sent_bytes: number; received_bytes: number;
  sent_packets: number; lost_packets: number; carrier: string | null; datagram_bytes: number | null;
  budget: { month: string; limit_bytes: number; used_bytes: number } | null;
}
export interface Session {
  id: number; peer: string; state: string; paths: Path[]; flows_opened: number;
  carried: { sent_bytes: number; delivered_bytes: number };
}
export interface Live {
  id: number; name: string; flows: number; latency_ms: number | null; target_bps: number | null;
  watched: boolean; capacity_bps: number | null; excess_bps: number | null;
  sent: {
    datagrams: number; bytes: number; rate_bps: number; content: string; given_up: number;
    given_up_on: Record<string, number>; given_up_waiting: number; repaired: number; lost: number;
    late: number; redundancy: number; delay_ms: Delay | null;
  };
  received: { datagrams: number; bytes: number; rate_bps: number; content: string; lost: number; late: number };
}
export interface FlowGroup {
  kind: string; scheduler: string; priority: number; count: number; sent_bytes: number;
  delivered_bytes: number; backlog_bytes: number; retransmitted_bytes: number; repair_bytes: number;
  lost_messages: number; delay_ms: Delay | null;
}
export type Row = (number | null)[];
export interface Newest { key: string; row: Row }
export interface Now {
  version: number; at: number; why: { level: "fine" | "slow" | "down"; text: string };
  status: { role: "client" | "server"; version: string; uptime_s: number; sessions: Session[]; live: Live[];
    tunnel: { device: string; addresses: string[] } | null };
  left_out: number; flows: FlowGroup[]; paths: Newest[]; live: Newest[]; events: number;
}
export interface Series { of: "path" | "live"; key: string; name: string; end: number | null; rows: Row[] }
export interface History {
  version: number; span: Span; step_s: number; at: number[]; path_columns: string[];
  live_columns: string[]; series: Series[];
}
export interface Happened { seq: number; at: number; kind: string; key: string | null; text: string }
export type Span = "10m" | "24h";

// The page lies below its token, and so does all that it asks for.
const BASE = "api/v1/";

async function get<T>(what: string): Promise<T> {
  const answer = await fetch(BASE + what);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}
export const history = (span: Span) => get<History>(`history?span=${span}`);
export const events = () => get<{ events: Happened[] }>("events");

export function follow(look: (now: Now) => void, event: (one: Happened) => void, open: (is: boolean) => void) {
  const source = new EventSource(BASE + "live");
  source.addEventListener("open", () => open(true));
  source.addEventListener("error", () => open(false));
  source.addEventListener("now", (message) => look(JSON.parse(message.data)));
  source.addEventListener("event", (message) => event(JSON.parse(message.data)));
}

// Carries out a request of the control socket's language; returns what to say about it.
export async function act(request: Record<string, unknown>): Promise<{ done: boolean; text: string }> {
  try {
    const answer = await fetch(BASE + "do", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ version: 1, ...request }),
    });
    const text = await answer.text();
    if (!answer.headers.get("content-type")?.startsWith("application/json")) return { done: false, text };
    const said = JSON.parse(text);
    if (said.outcome === "done") return { done: true, text: said.waits ? `Done. It waits: ${said.waits}` : "Done." };
    return { done: false, text: said.message + (said.hint ? ` – ${said.hint}` : "") };
  } catch (error) {
    return { done: false, text: `The program does not answer: ${error}` };
  }
}
