//! What a running Marline reports about its live entries. Fields may be added.

use crate::live::{Content, Wholeness};
use std::collections::BTreeMap;

use marline_proto::stats::Delays;
use serde::{Deserialize, Serialize};

/// One `--live` entry with all its flows, closed ones included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveStatus {
    /// Number of the entry, in the order of the configuration, counted from 0.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Flows that are open now: one for each local sender, or each client's.
    pub flows: u64,
    /// How long the receiver waits for a missing datagram, milliseconds; a server does not know.
    pub latency_ms: Option<f64>,
    /// The rate that was said to be needed, bits per second; `None` where it is measured, or
    /// nothing measures it.
    pub target_bps: Option<u64>,
    /// Whether it is looked after that the paths carry what is needed, as said or measured: for
    /// flows of datagrams from local programs, and not for video frames with a deadline or what
    /// travels as objects.
    #[serde(default)]
    pub watched: bool,
    /// What local programs send beyond the rate that was said to be needed, bits per second; `None`
    /// while it is less than a twentieth of that rate.
    #[serde(default)]
    pub excess_bps: Option<u64>,
    /// What the paths carry, bits per second, while that is less than what is needed.
    pub capacity_bps: Option<u64>,
    /// From local programs into the session.
    pub sent: LiveSent,
    /// From the session to local programs.
    pub received: LiveReceived,
}

/// What local programs sent, and how it fared. Counts are in datagrams, since the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveSent {
    /// Taken from local programs.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their rate over the last second, bits per second.
    pub rate_bps: u64,
    /// What they carry.
    pub content: Content,
    /// What was wrong with them already.
    pub input: Wholeness,
    /// Not given to the session, which was not there or had no room in time.
    pub refused: u64,
    /// Given up because their latency budget was over before the peer had them.
    pub given_up: u64,
    /// Of those given up, not sent whole before half of their budget was over: no path had room for
    /// them in time. Of frames and objects nothing is known here.
    #[serde(default)]
    pub given_up_waiting: u64,
    /// Of those given up, sent in time: by the name of the path that carried them first, and lost
    /// or delayed them.
    #[serde(default)]
    pub given_up_on: BTreeMap<String, u64>,
    /// Lost on their way, and brought all the same by a copy or a retransmission.
    pub repaired: u64,
    /// Given up by the other end and never seen there, as it said last. Of frames and objects it
    /// says nothing.
    #[serde(default)]
    pub lost: u64,
    /// Given up there, and came later.
    #[serde(default)]
    pub late: u64,
    /// Copies that were not needed there.
    #[serde(default)]
    pub duplicated: u64,
    /// (bytes sent − source bytes) / source bytes.
    pub redundancy: f64,
    /// From a local program's datagram until this end knows that the other has it, milliseconds,
    /// since the start; `None` before anything was acknowledged.
    #[serde(default)]
    pub delay_ms: Option<LiveDelay>,
}

/// Quantiles of a delay, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LiveDelay {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub worst: f64,
}

impl LiveDelay {
    pub(super) fn of(delays: &Delays) -> Option<Self> {
        let ms = |delay: marline_base::Duration| delay.as_secs_f64() * 1e3;
        let at = |q| delays.quantile(q).map(ms);
        Some(LiveDelay {
            p50: at(0.5)?,
            p95: at(0.95)?,
            p99: at(0.99)?,
            worst: ms(delays.worst()),
        })
    }
}

/// What the session delivered. Counts are in datagrams, since the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LiveReceived {
    /// Handed to local programs.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their rate over the last second, bits per second.
    pub rate_bps: u64,
    /// What they carry.
    pub content: Content,
    /// What is still wrong with them.
    pub output: Wholeness,
    /// Given up and never seen.
    pub lost: u64,
    /// Given up, and came later.
    pub late: u64,
    /// Copies that were not needed.
    pub duplicated: u64,
    /// Came after later ones, in time; handed over in order.
    pub reordered: u64,
}
