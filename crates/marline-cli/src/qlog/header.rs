//! What a file begins with.

use super::vantage;
use marline_base::Instant;
use marline_proto::Side;
use serde_json::{Map, Value, json};
use std::time::SystemTime;

/// What the times of a trace count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The session's monotonic clock, which stood at that when the session began, at about this
    /// time of day.
    Monotonic(Instant, SystemTime),
    /// The simulator's virtual time.
    Virtual,
}

/// One session at one end.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What its files are called, without `marline-`, number and extension.
    pub name: String,
    /// Which end.
    pub side: Side,
    /// Its clock.
    pub clock: Clock,
    /// What is simulated, if it is: a scenario's name, and what tells its runs apart.
    pub scenario: Option<(String, Map<String, Value>)>,
}

/// Our own events, and what a trace of the simulator begins with. The first is private, in the
/// words of section 8.1: it must not look like one that the IETF registers, and names the
/// namespace.
const SCHEMAS: [&str; 2] = [
    "urn:x-marline:qlog:events:marline",
    "urn:ietf:params:qlog:events:simulation",
];

impl Trace {
    /// A session of a program that was started then, the session's number counted from 0.
    pub(super) fn of_session(side: Side, now: Instant, started: SystemTime, number: u64) -> Self {
        let started = humantime::format_rfc3339_seconds(started).to_string();
        let started: String = started.chars().filter(|c| !"-:".contains(*c)).collect();
        let (side_name, process) = (vantage(side), std::process::id());
        Self {
            name: format!("{started}-{side_name}-{process}-{number}"),
            side,
            clock: Clock::Monotonic(now, SystemTime::now()),
            scenario: None,
        }
    }

    /// When its times begin, on the session's clock.
    pub(super) const fn zero(&self) -> Instant {
        match self.clock {
            Clock::Monotonic(began, _) => began,
            Clock::Virtual => Instant::ZERO,
        }
    }

    /// `QlogFileSeq` (section 5) with its `TraceSeq` (5.1).
    pub(super) fn header(&self) -> Value {
        let version = env!("CARGO_PKG_VERSION");
        let reference = match self.clock {
            // Section 7.1: a monotonic clock has no epoch.
            Clock::Monotonic(_, began) => json!({
                "clock_type": "monotonic",
                "epoch": "unknown",
                "wall_clock_time": humantime::format_rfc3339_millis(began).to_string(),
            }),
            Clock::Virtual => json!({ "clock_type": "virtual", "epoch": "unknown" }),
        };
        let schemas = match self.scenario {
            Some(_) => &SCHEMAS[..],
            None => &SCHEMAS[..1],
        };
        json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": format!("marline {version}, {}", vantage(self.side)),
            "trace": {
                "vantage_point": { "name": format!("marline {version}"), "type": vantage(self.side) },
                "common_fields": {
                    "time_format": "relative_to_epoch",
                    "reference_time": reference,
                    "group_id": self.name,
                },
                "event_schemas": schemas,
            },
        })
    }
}
