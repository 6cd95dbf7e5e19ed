//! What is reported of a path, of a flow and of its blocks or objects. Each figure is declared
//! once: its name in the JSON, where it comes from, and for a counter the metric that it is.
//!
//! A new counter is a field of marline-proto's `PathCounters`, `FlowCounters` or `UnitCounters` and
//! one entry here. It has `#[serde(default)]`, because older programs do not report it.

use super::forecast::{CalibrationStatus, ForecastStatus, LawStatus};
use marline::endpoint::PathInfo;
use marline_proto::path::PathState;
use marline_proto::stats::{Delays, FlowStats, PathCounters, PathStats, UnitCounters};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How a counter is called among the metrics.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metric {
    /// Name without prefix, unit and `_total`.
    pub(crate) name: &'static str,
    /// What Prometheus shows about the name.
    pub(crate) help: &'static str,
    /// Whether bytes are counted.
    pub(crate) bytes: bool,
    /// Name and value of a label that tells it from other counters of that name.
    pub(crate) label: Option<(&'static str, &'static str)>,
}

impl Metric {
    fn by(mut self, label: &'static str, value: &'static str) -> Self {
        self.label = Some((label, value));
        self
    }
}

/// A counter of something that has no unit.
const fn count(name: &'static str, help: &'static str) -> Metric {
    Metric {
        name,
        help,
        bytes: false,
        label: None,
    }
}

/// A counter of bytes.
const fn bytes(name: &'static str, help: &'static str) -> Metric {
    let metric = count(name, help);
    Metric {
        bytes: true,
        ..metric
    }
}

// Metrics that have several counters, each with a label of its own.
const PATH: Metric = bytes("path", "Carried by the path");
const FLOW: Metric = bytes("flow", "Taken from and handed to the application");
const REPAIRS: Metric = count(
    "flow_repairs",
    "Repair symbols: sent, of these used by the other end or wasted there; received; received_used: symbols that came out of those before they arrived",
);
const UNITS: Metric = count("flow_units", "Blocks and objects, by what became of them");

/// Declares a part of the status. Each line is a field of the JSON, what its value is, and for a
/// counter which metric it is.
macro_rules! reported {
    (
        $(#[$of_type:meta])*
        pub struct $name:ident from $source:ident: &$from:ty {
            $(
                $(#[$of_field:meta])*
                $field:ident: $type:ty = $value:expr $(=> $metric:expr)?;
            )*
        }
    ) => {
        $(#[$of_type])*
        pub struct $name {
            $(
                $(#[$of_field])*
                pub $field: $type,
            )*
        }

        impl $name {
            pub(super) fn of($source: &$from) -> Self {
                Self { $($field: $value,)* }
            }

            /// The counters among the figures.
            pub(crate) fn counters(&self) -> Vec<(Metric, u64)> {
                vec![$($(($metric, self.$field),)?)*]
            }
        }
    };
}

reported! {
    /// One path of a session. Everything about sending is this end's.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct PathStatus from info: &PathInfo {
        /// Number of the path. On a client it counts the configured paths and stays the same when
        /// one is dialled again; on a server it is the session's own.
        id: u64 = info.number;
        /// Name from the configuration; on a server, the client's address when the path came up.
        name: String = info.name.clone();
        /// What the session thinks of it.
        #[serde(with = "path_state")]
        state: PathState = info.state;
        /// Why it is in that state, in words.
        reason: String = info.reason.clone();
        /// How long it has been in that state, seconds; `suspect` or `dead`, how long it has been
        /// in doubt; while it is not up, how long it has not been.
        #[serde(default)]
        for_s: f64 = info.for_time.as_secs_f64();
        /// How long the other end has answered nothing on it, seconds; `None` while it is not up.
        #[serde(default)]
        silent_s: Option<f64> = info.silent.map(|silent| silent.as_secs_f64());
        /// Cost rank, 0 is cheapest.
        cost: u32 = info.cost;
        /// Smoothed round-trip time, milliseconds; `None` before the first sample.
        rtt_ms: Option<f64> = measured(info).map(|path| ms(path.srtt));
        /// Smallest round-trip time seen, milliseconds; `None` before the first sample.
        rtt_min_ms: Option<f64> = measured(info).map(|path| ms(path.min_rtt));
        /// Estimated share of packets lost, 0 to 1; `None` before there is evidence.
        loss: Option<f64> = measured(info).map(|path| path.loss);
        /// Congestion window, bytes.
        cwnd_bytes: u64 = info.stats.as_ref().map_or(0, |path| path.cwnd);
        /// Sent and neither acknowledged nor declared lost, bytes.
        in_flight_bytes: u64 = info.stats.as_ref().map_or(0, |path| path.in_flight);
        /// Scheduled for the path and not yet sent, bytes.
        queue_bytes: u64 = info.stats.as_ref().map_or(0, |path| path.queued);
        /// Delivery rate, bits per second; `None` before there is evidence.
        rate_bps: Option<u64> = measured(info).map(|path| path.rate.as_bps());
        /// Sent since the path came up, bytes.
        sent_bytes: u64 = counted(info).sent_bytes => PATH.by("direction", "send");
        /// Received since the path came up, bytes.
        received_bytes: u64 = counted(info).received_bytes => PATH.by("direction", "receive");
        /// Packets sent since the path came up.
        sent_packets: u64 = counted(info).sent_packets => count("path_packets", "Packets sent");
        /// Packets sent and declared lost since the path came up.
        lost_packets: u64 = counted(info).lost_packets
            => count("path_lost_packets", "Packets sent and declared lost");
        /// Packets received since the path came up.
        #[serde(default)]
        received_packets: u64 = counted(info).received_packets;
        /// Packets that the other end has sent since the path came up, up to the last that arrived.
        #[serde(default)]
        peer_sent_packets: u64 = counted(info).numbered_packets;
        /// Of these, packets that have not arrived: lost, or overtaken by others and on their way.
        #[serde(default)]
        missing_packets: u64 = counted(info).missing_packets();
        /// What carries it, `quic` or `tcp`; `None` while it is not up.
        #[serde(default)]
        carrier: Option<String> = info.carrier.map(|kind| kind.as_str().to_owned());
        /// Longest datagram that this end sends over it now, bytes: what the path was found to
        /// take, less some 40 bytes that encrypt it; `None` while it is not up.
        #[serde(default)]
        datagram_bytes: Option<u64> = info.stats.as_ref().map(|path| path.max_datagram as u64);
        /// What the path may carry in a month, and has; `None` without a budget.
        #[serde(default)]
        budget: Option<BudgetStatus> = None;
        /// What is expected of its capacity; `None` while no flow of this end forecasts it.
        #[serde(default)]
        forecast: Option<ForecastStatus> = None;
        /// What came of the path's law of arrivals; `None` before any of its packets was followed.
        #[serde(default)]
        law: Option<LawStatus> = info.stats.as_ref().and_then(|path| LawStatus::of(&path.law));
    }
}

reported! {
    /// One open flow.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct FlowStatus from flow: &FlowStats {
        /// Number of the flow in its session.
        id: u64 = flow.id.0;
        /// `stream`, `packets`, `blocks` or `objects`.
        kind: String = flow.kind.name().to_owned();
        /// Name of the scheduler that serves this end's sending half.
        scheduler: String = flow.scheduler.to_string();
        /// 0 (served first) to 7.
        priority: u8 = flow.priority;
        /// Taken from the application by this end, bytes.
        sent_bytes: u64 = flow.counters.written_bytes => FLOW.by("direction", "send");
        /// Of the bytes sent, those that the other end is known to have.
        #[serde(default)]
        acked_bytes: u64 = flow.counters.arrived_bytes();
        /// Handed to the application by this end, bytes.
        delivered_bytes: u64 = flow.counters.read_bytes => FLOW.by("direction", "receive");
        /// Taken from the application and not yet sent for the first time, bytes.
        backlog_bytes: u64 = flow.unsent;
        /// From a write at this end until this end knows that the peer has it in order,
        /// milliseconds; `None` before anything was acknowledged. Messages of an unordered flow
        /// count alone.
        delay_ms: Option<Quantiles> = Quantiles::of(&flow.delays);
        /// (bytes sent - source bytes) / source bytes.
        redundancy: f64 = flow.counters.redundancy();
        /// Sent again because it was lost, bytes.
        retransmitted_bytes: u64 = flow.counters.retransmitted_bytes
            => bytes("flow_retransmitted", "Sent again after a loss");
        /// The coding interval τ: one in τ packets that this end sends is a repair symbol at
        /// present; `None` while none are due by such a rule. Others may still fill idle slots.
        #[serde(default)]
        coding_interval: Option<u32> = flow.coding_interval;
        /// Repair symbols that this end sent, bytes.
        #[serde(default)]
        repair_bytes: u64 = flow.counters.repair_bytes
            => bytes("flow_repair", "Bytes of repair symbols that this end sent");
        /// Repair symbols that this end sent.
        #[serde(default)]
        repairs_sent: u64 = flow.counters.repair_symbols => REPAIRS.by("fate", "sent");
        /// Of these, those with which the other end recovered something before it arrived, as it
        /// last said.
        #[serde(default)]
        repairs_used: u64 = flow.counters.repairs_used => REPAIRS.by("fate", "used");
        /// Of these, those that reached the other end for nothing, as it last said.
        #[serde(default)]
        repairs_wasted: u64 = flow.counters.repairs_wasted => REPAIRS.by("fate", "wasted");
        /// Repair symbols of the other end that arrived here.
        #[serde(default)]
        repairs_received: u64 = flow.counters.received_repairs => REPAIRS.by("fate", "received");
        /// Symbols that came out of these before they arrived.
        #[serde(default)]
        symbols_recovered: u64 = flow.counters.recovered_symbols
            => REPAIRS.by("fate", "received_used");
        /// Messages that this end gave up because their lifetime ended, and that the other end
        /// never sent in time.
        lost_messages: u64 = flow.counters.expired_messages
            + flow.counters.skipped_messages
            + flow.counters.dropped_messages
            => count("flow_lost_messages", "Messages not delivered in time");
        /// Highest cost of a path that it may use now because cheaper ones would hold up what this
        /// end has to send; `None` while they do not.
        #[serde(default)]
        spill_cost: Option<u32> = flow.spill.map(|spill| spill.cost);
        /// For how long they would hold it up, milliseconds.
        #[serde(default)]
        spill_wait_ms: Option<f64> = flow.spill.map(|spill| spill.wait.as_secs_f64() * 1e3);
        /// Its blocks or objects; `None` for other kinds.
        #[serde(default)]
        units: Option<UnitsStatus> = flow
            .kind
            .has_units()
            .then(|| UnitsStatus::of(&flow.counters.units));
        /// Promises that a block is on time, and what the other end said; `None` of flows that
        /// promise nothing.
        #[serde(default)]
        calibration: Option<CalibrationStatus> = flow
            .outlook
            .as_ref()
            .map(|outlook| CalibrationStatus::of(&outlook.units));
    }
}

reported! {
    /// Blocks or objects of a flow.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct UnitsStatus from units: &UnitCounters {
        /// Written or opened at this end.
        sent: u64 = units.written => UNITS.by("what", "sent");
        /// Of these, had by the other end, in time if they had a deadline.
        complete: u64 = units.acked => UNITS.by("what", "complete");
        /// Of these, blocks that the other end had too late.
        complete_late: u64 = units.acked_late => UNITS.by("what", "complete_late");
        /// Of these, blocks that were given up at their deadlines.
        lost: u64 = units.lost => UNITS.by("what", "lost");
        /// Of these, given up by a program at either end.
        cancelled: u64 = units.cancelled => UNITS.by("what", "cancelled");
        /// Received whole.
        delivered: u64 = units.delivered => UNITS.by("what", "delivered");
        /// Of these, blocks that came too late.
        delivered_late: u64 = units.late => UNITS.by("what", "delivered_late");
        /// Given up by the other end before they were whole here.
        missing: u64 = units.missing => UNITS.by("what", "missing");
        /// Symbols of received ones that repair symbols brought back.
        rebuilt_symbols: u64 = units.rebuilt_symbols
            => count(
                "flow_rebuilt_symbols",
                "Symbols of blocks and objects that repair symbols brought back",
            );
    }
}

/// A path's data budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetStatus {
    /// The month that is counted, as in `2026-11`, in universal time.
    pub month: String,
    /// What the path may carry in it, both ways, bytes; beyond it the path stands by.
    pub limit_bytes: u64,
    /// What it has carried, with headers, bytes.
    pub used_bytes: u64,
}

/// Quantiles of a delay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub worst: f64,
}

impl Quantiles {
    fn of(delays: &Delays) -> Option<Self> {
        let at = |q| delays.quantile(q).map(ms);
        Some(Quantiles {
            p50: at(0.5)?,
            p95: at(0.95)?,
            p99: at(0.99)?,
            worst: ms(delays.worst()),
        })
    }
}

/// Milliseconds.
fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// What the session has measured; before anything was acknowledged its figures are what it assumes.
fn measured(info: &PathInfo) -> Option<&PathStats> {
    let stats = info.stats.as_ref();
    stats.filter(|stats| stats.counters.acked_bytes > 0)
}

/// What the path has counted; nothing while it is not up.
fn counted(info: &PathInfo) -> PathCounters {
    let stats = info.stats.as_ref();
    stats.map_or_else(PathCounters::default, |stats| stats.counters)
}

/// A path's state by its name.
mod path_state {
    use super::PathState;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(state: &PathState, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(state.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathState, D::Error> {
        let name = String::deserialize(from)?;
        let known = PathState::ALL
            .into_iter()
            .find(|state| state.name() == name);
        known.ok_or_else(|| D::Error::custom(format!("unknown state of a path `{name}`")))
    }
}

#[cfg(test)]
mod tests {
    use crate::control::status::tests::example;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn no_two_counters_are_the_same_metric() {
        let session = &example().sessions[0];
        let flow = &session.flows[0];
        let parts = [
            session.paths[0].counters(),
            flow.counters(),
            flow.units.unwrap().counters(),
        ];
        let (mut known, mut names) = (HashSet::new(), HashMap::new());
        for (metric, _) in parts.concat() {
            assert!(known.insert((metric.name, metric.label)), "{metric:?}");
            // One name has one meaning, and one name of its label.
            let meaning = (
                metric.help,
                metric.bytes,
                metric.label.map(|(name, _)| name),
            );
            assert_eq!(*names.entry(metric.name).or_insert(meaning), meaning);
        }
    }
}
