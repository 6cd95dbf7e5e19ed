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
    pub(crate) use crate::control::example::example;

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
