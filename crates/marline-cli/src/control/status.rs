//! What a running Marline reports about itself: the body of `marline status` and the source of the
//! metrics.
//!
//! The field names are the JSON names. Fields may be added; a reader ignores those that it does not
//! know.

use super::forecast::{CalibrationStatus, ForecastStatus};
use marline_apps::live::status::LiveStatus;
use marline_apps::tun::status::TunnelStatus;
use marline_proto::path::PathState;
use serde::{Deserialize, Serialize};

/// A snapshot of one running client or server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Which end this is.
    pub role: Role,
    /// Version of the running program.
    pub version: String,
    /// Time since it started, seconds.
    pub uptime_s: f64,
    /// A client has at most one, a server one for each client.
    pub sessions: Vec<SessionStatus>,
    /// Live entries, in the order of the configuration.
    #[serde(default)]
    pub live: Vec<LiveStatus>,
    /// A client's tunnel; `None` without one, and on a server.
    #[serde(default)]
    pub tunnel: Option<TunnelStatus>,
}

/// Which end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Opens flows.
    Client,
    /// Accepts flows and connects them to their targets.
    Server,
}

/// All paths and flows between one client and one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionStatus {
    /// Number of the session in this process, counted from 0. While a client is connecting, that of
    /// the session to come.
    pub id: u64,
    /// Public key of the other end, as `marline identity show` prints it.
    pub peer: String,
    /// `connecting`, `established`, `stalled` (no path works) or `closing`.
    pub state: String,
    /// Every path, dead ones included, and on a client those that are being dialled.
    pub paths: Vec<PathStatus>,
    /// Flows that are open now.
    pub flows: Vec<FlowStatus>,
    /// Flows that were opened since the session began, closed ones included.
    pub flows_opened: u64,
}

/// One path of a session. Everything about sending is this end's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathStatus {
    /// Number of the path. On a client it counts the configured paths and stays the same when one
    /// is dialled again; on a server it is the session's own.
    pub id: u64,
    /// Name from the configuration; on a server, the client's address when the path came up.
    pub name: String,
    /// What the session thinks of it.
    #[serde(with = "path_state")]
    pub state: PathState,
    /// Why it is in that state, in words.
    pub reason: String,
    /// Cost rank, 0 is cheapest.
    pub cost: u32,
    /// Smoothed round-trip time, milliseconds; `None` before the first sample.
    pub rtt_ms: Option<f64>,
    /// Smallest round-trip time seen, milliseconds; `None` before the first sample.
    pub rtt_min_ms: Option<f64>,
    /// Estimated share of packets lost, 0 to 1; `None` before there is evidence.
    pub loss: Option<f64>,
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Sent and neither acknowledged nor declared lost, bytes.
    pub in_flight_bytes: u64,
    /// Scheduled for the path and not yet sent, bytes.
    pub queue_bytes: u64,
    /// Delivery rate, bits per second; `None` before there is evidence.
    pub rate_bps: Option<u64>,
    /// Sent since the path came up, bytes.
    pub sent_bytes: u64,
    /// Received since the path came up, bytes.
    pub received_bytes: u64,
    /// Packets sent since the path came up.
    pub sent_packets: u64,
    /// Packets sent and declared lost since the path came up.
    pub lost_packets: u64,
    /// Packets received since the path came up.
    #[serde(default)]
    pub received_packets: u64,
    /// What carries it, `quic` or `tcp`; `None` while it is not up.
    #[serde(default)]
    pub carrier: Option<String>,
    /// What the path may carry in a month, and has; `None` without a budget.
    #[serde(default)]
    pub budget: Option<BudgetStatus>,
    /// What is expected of its capacity; `None` while no flow of this end forecasts it.
    #[serde(default)]
    pub forecast: Option<ForecastStatus>,
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

/// One open flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowStatus {
    /// Number of the flow in its session.
    pub id: u64,
    /// `stream`, `packets`, `blocks` or `objects`.
    pub kind: String,
    /// Name of the scheduler that serves this end's sending half.
    pub scheduler: String,
    /// 0 (served first) to 7.
    pub priority: u8,
    /// Taken from the application by this end, bytes.
    pub sent_bytes: u64,
    /// Handed to the application by this end, bytes.
    pub delivered_bytes: u64,
    /// Taken from the application and not yet sent for the first time, bytes.
    pub backlog_bytes: u64,
    /// From a write at this end until this end knows that the peer has it in order, milliseconds;
    /// `None` before anything was acknowledged. Messages of an unordered flow count alone.
    pub delay_ms: Option<Quantiles>,
    /// (bytes sent - source bytes) / source bytes.
    pub redundancy: f64,
    /// Sent again because it was lost, bytes.
    pub retransmitted_bytes: u64,
    /// The coding interval τ: one in τ packets that this end sends is a repair symbol at present;
    /// `None` while none are due by such a rule. Others may still fill idle slots.
    #[serde(default)]
    pub coding_interval: Option<u32>,
    /// Repair symbols that this end sent, bytes.
    #[serde(default)]
    pub repair_bytes: u64,
    /// Repair symbols that this end sent.
    #[serde(default)]
    pub repairs_sent: u64,
    /// Of these, those with which the other end recovered something before it arrived, as it last
    /// said.
    #[serde(default)]
    pub repairs_used: u64,
    /// Of these, those that reached the other end for nothing, as it last said.
    #[serde(default)]
    pub repairs_wasted: u64,
    /// Repair symbols of the other end that arrived here.
    #[serde(default)]
    pub repairs_received: u64,
    /// Symbols that came out of these before they arrived.
    #[serde(default)]
    pub symbols_recovered: u64,
    /// Messages that this end gave up because their lifetime ended, and that the other end never
    /// sent in time.
    pub lost_messages: u64,
    /// Its blocks or objects; `None` for other kinds.
    #[serde(default)]
    pub units: Option<UnitsStatus>,
    /// Promises that a block is on time, and what the other end said; `None` of flows that promise
    /// nothing.
    #[serde(default)]
    pub calibration: Option<CalibrationStatus>,
}

/// Blocks or objects of a flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitsStatus {
    /// Written or opened at this end.
    pub sent: u64,
    /// Of these, had by the other end, in time if they had a deadline.
    pub complete: u64,
    /// Of these, blocks that the other end had too late.
    pub complete_late: u64,
    /// Of these, blocks that were given up at their deadlines.
    pub lost: u64,
    /// Of these, given up by a program at either end.
    pub cancelled: u64,
    /// Received whole.
    pub delivered: u64,
    /// Of these, blocks that came too late.
    pub delivered_late: u64,
    /// Given up by the other end before they were whole here.
    pub missing: u64,
    /// Symbols of received ones that repair symbols brought back.
    pub rebuilt_symbols: u64,
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
pub(crate) mod tests {
    use super::*;
    use crate::control::forecast::DecileStatus;
    use marline_apps::live::status::{LiveReceived, LiveSent};
    use marline_apps::live::{Content, Wholeness};
    use marline_apps::tun::status::TunnelStanding;

    /// A status in which every field has a value of its own.
    pub(crate) fn example() -> Status {
        Status {
            role: Role::Client,
            version: "0.1.0".into(),
            uptime_s: 61.5,
            sessions: vec![SessionStatus {
                id: 0,
                peer: "server-key".into(),
                state: "established".into(),
                paths: vec![
                    PathStatus {
                        id: 0,
                        name: "wlan0".into(),
                        state: PathState::Active,
                        reason: "validated".into(),
                        cost: 0,
                        rtt_ms: Some(31.25),
                        rtt_min_ms: Some(30.0),
                        loss: Some(0.01),
                        cwnd_bytes: 120_000,
                        in_flight_bytes: 60_000,
                        queue_bytes: 2800,
                        rate_bps: Some(20_000_000),
                        sent_bytes: 5_000_000,
                        received_bytes: 4_000_000,
                        sent_packets: 3600,
                        lost_packets: 36,
                        received_packets: 0,
                        carrier: Some("quic".into()),
                        budget: None,
                        forecast: Some(ForecastStatus {
                            flow: 4,
                            mean_bps: 39_500_000,
                            sd_bps: 8_100_000,
                            mode: "bank".into(),
                            outage: 0.02,
                            calibration: CalibrationStatus {
                                promises: 900,
                                promised: Some(0.953),
                                kept: Some(0.949),
                                deciles: vec![DecileStatus {
                                    from: 0.9,
                                    promises: 850,
                                    promised: 0.985,
                                    kept: 0.983,
                                }],
                            },
                        }),
                    },
                    PathStatus {
                        id: 1,
                        name: "wwan0".into(),
                        state: PathState::Dead,
                        reason: "no feedback for 3 probe timeouts".into(),
                        cost: 2,
                        rtt_ms: None,
                        rtt_min_ms: None,
                        loss: None,
                        cwnd_bytes: 0,
                        in_flight_bytes: 0,
                        queue_bytes: 0,
                        rate_bps: None,
                        sent_bytes: 0,
                        received_bytes: 0,
                        sent_packets: 0,
                        lost_packets: 0,
                        received_packets: 0,
                        carrier: None,
                        budget: Some(BudgetStatus {
                            month: "2026-11".into(),
                            limit_bytes: 20_000_000_000,
                            used_bytes: 4_500_000_000,
                        }),
                        forecast: None,
                    },
                ],
                flows: vec![FlowStatus {
                    id: 4,
                    kind: "stream".into(),
                    scheduler: "min-rtt".into(),
                    priority: 3,
                    sent_bytes: 1000,
                    delivered_bytes: 3_000_000,
                    backlog_bytes: 10,
                    delay_ms: Some(Quantiles {
                        p50: 30.0,
                        p95: 40.0,
                        p99: 55.0,
                        worst: 60.0,
                    }),
                    redundancy: 0.125,
                    retransmitted_bytes: 12_000,
                    coding_interval: Some(23),
                    repair_bytes: 33_000,
                    repairs_sent: 22,
                    repairs_used: 13,
                    repairs_wasted: 7,
                    repairs_received: 59,
                    symbols_recovered: 41,
                    lost_messages: 2,
                    units: Some(UnitsStatus {
                        sent: 31,
                        complete: 30,
                        complete_late: 11,
                        lost: 12,
                        cancelled: 14,
                        delivered: 15,
                        delivered_late: 16,
                        missing: 17,
                        rebuilt_symbols: 18,
                    }),
                    calibration: Some(CalibrationStatus {
                        promises: 1_200,
                        promised: Some(0.981),
                        kept: Some(0.978),
                        deciles: Vec::new(),
                    }),
                }],
                flows_opened: 5,
            }],
            live: vec![LiveStatus {
                id: 0,
                name: "cam".into(),
                flows: 1,
                latency_ms: Some(150.0),
                target_bps: Some(10_000_000),
                watched: true,
                capacity_bps: Some(7_500_000),
                sent: LiveSent {
                    datagrams: 9_000,
                    bytes: 11_844_000,
                    rate_bps: 9_870_000,
                    content: Content::MpegTs,
                    input: Wholeness {
                        continuity_errors: 1,
                        ..Wholeness::default()
                    },
                    refused: 1,
                    given_up: 6,
                    repaired: 21,
                    lost: 8,
                    late: 9,
                    duplicated: 10,
                    redundancy: 0.13,
                },
                received: LiveReceived {
                    datagrams: 70,
                    bytes: 7_000,
                    rate_bps: 56_000,
                    content: Content::Rtp,
                    output: Wholeness {
                        lost: 12,
                        late: 13,
                        duplicated: 14,
                        continuity_errors: 0,
                    },
                    lost: 3,
                    late: 2,
                    duplicated: 4,
                    reordered: 5,
                },
            }],
            tunnel: Some(TunnelStatus {
                device: "marline0".into(),
                addresses: vec!["10.77.0.2".into(), "fd77::2".into()],
                mtu: 1_330,
                standing: TunnelStanding::Alone,
                dropped_packets: 61,
            }),
        }
    }

    #[test]
    fn a_status_survives_json_and_names_its_units() {
        let text = serde_json::to_string(&example()).unwrap();
        assert_eq!(serde_json::from_str::<Status>(&text).unwrap(), example());
        for name in [
            "\"rtt_ms\":31.25",
            "\"state\":\"active\"",
            "\"cwnd_bytes\":120000",
            "\"role\":\"client\"",
            "\"content\":\"mpeg-ts\"",
            "\"coding_interval\":23",
        ] {
            assert!(text.contains(name), "{name} is not in {text}");
        }
    }
}
