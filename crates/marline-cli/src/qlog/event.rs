//! A session's records as events of the namespace `marline` (docs/OBSERVING.md lists them).

use marline_base::{Duration, Instant};
use marline_proto::flow::{Fate, Symbol};
use marline_proto::observe::{PathMetrics, Record};
use marline_proto::path::EmissionKind;
use marline_proto::wire::{FlowId, FlowKind, PathId};
use serde_json::{Map, Value, json};

/// What a file says in a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    /// Events that found the queue full, or the disk.
    Dropped(u64),
    /// What the session did.
    Record(Record),
}

impl Event {
    /// The event in the file (section 7), whose times begin at `zero`.
    pub(super) fn line(&self, zero: Instant, at: Instant) -> Value {
        let (name, path, data) = self.parts();
        let mut line = Map::new();
        line.insert("time".into(), json!(millis(at.since(zero))));
        line.insert("name".into(), json!(format!("marline:{name}")));
        if let Some(path) = path {
            // Section 7.2: what tells apart the paths of a session.
            line.insert("tuple".into(), json!(path.0.to_string()));
        }
        line.insert("data".into(), data);
        Value::Object(line)
    }

    fn parts(&self) -> (&'static str, Option<PathId>, Value) {
        let record = match self {
            Self::Dropped(count) => return ("events_dropped", None, json!({ "count": count })),
            Self::Record(record) => record,
        };
        match *record {
            Record::Sent {
                path,
                packet,
                size,
                in_flight,
            } => {
                let data = json!({ "packet_number": packet, "raw": { "length": size }, "bytes_in_flight": in_flight });
                ("packet_sent", Some(path), data)
            }
            Record::Received {
                path,
                packet,
                size,
                duplicate,
            } => {
                let mut data = json!({ "packet_number": packet, "raw": { "length": size } });
                if duplicate {
                    data["duplicate"] = json!(true);
                }
                ("packet_received", Some(path), data)
            }
            Record::Acked {
                path,
                packet,
                after,
                arrived_us,
                spurious,
                ..
            } => {
                let mut data = json!({ "packet_number": packet, "after": millis(after) });
                if let Some(us) = arrived_us {
                    data["arrived"] = json!(us as f64 / 1e3);
                }
                if spurious {
                    data["spurious"] = json!(true);
                }
                ("packet_acked", Some(path), data)
            }
            Record::Lost {
                path,
                packet,
                after,
            } => {
                let data = json!({ "packet_number": packet, "after": millis(after) });
                ("packet_lost", Some(path), data)
            }
            Record::Heard { path, written_us } => {
                let data = json!({ "written": written_us as f64 / 1e3 });
                ("ack_received", Some(path), data)
            }
            Record::Emitted {
                flow,
                symbol,
                path,
                kind,
            } => {
                let mut data = of_symbol(flow, symbol);
                data["kind"] = json!(match kind {
                    EmissionKind::Source => "source",
                    EmissionKind::Copy => "copy",
                    EmissionKind::Retransmission => "retransmission",
                    EmissionKind::Repair => "repair",
                });
                ("symbol_sent", Some(path), data)
            }
            Record::Progress {
                flow,
                symbol,
                frontier: (unit, offset),
            } => {
                let mut data = match symbol {
                    Some(symbol) => of_symbol(flow, symbol),
                    None => json!({ "flow_id": flow.0 }),
                };
                // Flows without an order wait for nothing.
                if unit != u64::MAX {
                    data["complete_below"] = json!({ "unit": unit, "offset": offset });
                }
                ("flow_progress", None, data)
            }
            Record::Repaired { flow, symbol } => ("symbol_repaired", None, of_symbol(flow, symbol)),
            Record::UnitWhole { flow, unit, late } => {
                let data = json!({ "flow_id": flow.0, "unit": unit, "late": late });
                ("unit_whole", None, data)
            }
            Record::UnitSettled { flow, unit, fate } => {
                let fate = match fate {
                    Fate::OnTime => "on_time",
                    Fate::Late => "late",
                    Fate::Lost => "lost",
                    Fate::Cancelled(_) => "cancelled",
                    Fate::Refused(_) => "refused",
                };
                let data = json!({ "flow_id": flow.0, "unit": unit, "fate": fate });
                ("unit_settled", None, data)
            }
            Record::PathMetrics(metrics) => {
                ("metrics_updated", Some(metrics.path), of_path(&metrics))
            }
            Record::FlowOpened {
                flow,
                kind,
                by_peer,
            } => {
                let kind = match kind {
                    FlowKind::Stream => "stream",
                    FlowKind::Packets => "packets",
                    FlowKind::Blocks => "blocks",
                    FlowKind::Objects => "objects",
                };
                let by = if by_peer { "remote" } else { "local" };
                let data = json!({ "flow_id": flow.0, "kind": kind, "initiator": by });
                ("flow_opened", None, data)
            }
            Record::FlowClosed { flow } => ("flow_closed", None, json!({ "flow_id": flow.0 })),
            Record::PathNamed { path, ref name } => {
                ("path_assigned", Some(path), json!({ "path_name": name }))
            }
            Record::PathState {
                path,
                state,
                ref reason,
            } => {
                let data = json!({ "new": state.name(), "trigger": reason });
                ("path_state_updated", Some(path), data)
            }
        }
    }
}

fn of_symbol(flow: FlowId, symbol: Symbol) -> Value {
    json!({ "flow_id": flow.0, "unit": symbol.unit, "offset": symbol.offset, "length": symbol.len })
}

/// Names and units as of QUIC's recovery metrics (draft-ietf-quic-qlog-quic-events).
fn of_path(metrics: &PathMetrics) -> Value {
    json!({
        "smoothed_rtt": millis(metrics.srtt),
        "min_rtt": millis(metrics.min_rtt),
        "rtt_variance": millis(metrics.rtt_var),
        "congestion_window": metrics.cwnd,
        "bytes_in_flight": metrics.in_flight,
        "pacing_rate": metrics.rate.as_bps(),
        "loss": (metrics.loss * 1e6).round() / 1e6,
    })
}

/// Milliseconds with three decimals.
fn millis(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}
