//! What a running Marline reports about itself: the body of `marline status` and the source of the
//! metrics.
//!
//! The field names are the JSON names. Fields may be added; a reader ignores those that it does not
//! know.

pub use super::counters::{BudgetStatus, FlowStatus, PathStatus, Quantiles, UnitsStatus};

use marline_apps::live::status::LiveStatus;
pub use marline_apps::publish::status::{PublishedState, PublishedStatus};
use marline_apps::tun::status::TunnelStatus;
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
    /// The clients that a server lets in; none at a client.
    #[serde(default)]
    pub clients: Vec<ClientStatus>,
    /// Published ports: those that this client asks for, or that are open at this server.
    #[serde(default)]
    pub published: Vec<PublishedStatus>,
    /// Live entries, in the order of the configuration.
    #[serde(default)]
    pub live: Vec<LiveStatus>,
    /// A client's tunnel; `None` without one, and on a server.
    #[serde(default)]
    pub tunnel: Option<TunnelStatus>,
}

/// A client that a server lets in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientStatus {
    /// Its public key.
    pub key: String,
    /// Its name in the list; may be empty.
    pub name: String,
    /// When it had a working path last, seconds since 1970 in universal time; `None` if never, as
    /// far as is known.
    pub last_seen: Option<u64>,
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
    /// What all flows carried, closed ones included.
    #[serde(default)]
    pub carried: CarriedStatus,
}

/// What the flows of a session carried, in bytes of the applications.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedStatus {
    /// Taken from applications at this end.
    pub sent_bytes: u64,
    /// Of these, those that the other end is known to have.
    pub acked_bytes: u64,
    /// Handed to applications at this end.
    pub delivered_bytes: u64,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::control::forecast::{CalibrationStatus, DecileStatus, ForecastStatus};
    use marline_apps::live::status::{LiveDelay, LiveReceived, LiveSent};
    use marline_apps::live::{Content, Wholeness};
    use marline_apps::tun::status::TunnelStanding;
    use marline_proto::path::PathState;

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
                        for_s: 60.0,
                        silent_s: Some(0.1),
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
                        received_packets: 2950,
                        peer_sent_packets: 3000,
                        missing_packets: 50,
                        carrier: Some("quic".into()),
                        datagram_bytes: Some(1_434),
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
                        for_s: 14.0,
                        silent_s: Some(14.2),
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
                        peer_sent_packets: 0,
                        missing_packets: 0,
                        carrier: None,
                        datagram_bytes: None,
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
                    acked_bytes: 900,
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
                    spill_cost: None,
                    spill_wait_ms: None,
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
                carried: CarriedStatus {
                    sent_bytes: 12_300_000,
                    acked_bytes: 12_100_000,
                    delivered_bytes: 1_200_000_000,
                },
            }],
            clients: vec![ClientStatus {
                key: "client-key".into(),
                name: "van".into(),
                last_seen: Some(1_790_000_000),
            }],
            published: vec![PublishedStatus {
                port: "tcp:8443".into(),
                leads_to: "tcp:127.0.0.1:443".into(),
                state: PublishedState::Open,
                about: Some("[::]:8443".into()),
            }],
            live: vec![LiveStatus {
                id: 0,
                name: "cam".into(),
                flows: 1,
                latency_ms: Some(150.0),
                target_bps: Some(10_000_000),
                watched: true,
                excess_bps: Some(2_000_000),
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
                    given_up_waiting: 2,
                    given_up_on: [("wwan0".to_owned(), 4)].into(),
                    repaired: 21,
                    lost: 8,
                    late: 9,
                    duplicated: 10,
                    redundancy: 0.13,
                    delay_ms: Some(LiveDelay {
                        p50: 31.5,
                        p95: 42.5,
                        p99: 57.5,
                        worst: 61.5,
                    }),
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
