//! The file: a header, and then a line of JSON for each path and each 20 ms in which something
//! happened on it, in the order of time.
//!
//! ```text
//! {"marline_recording":1,"step_ms":20,"began":"2026-03-01T10:00:00Z","by":"marline 0.1.0"}
//! {"ms":40,"path":"wlan0","session":0,"up":{"sent":10,"lost":1,"arrived":10800,"bulk":0,"delays":[[41.2,15.8]]}}
//! ```

use serde::{Deserialize, Serialize};

/// Version of the file.
pub(super) const FORMAT: u32 = 1;
/// Length of a window (ms): some ten packets of a live stream, and less than a round trip.
pub(super) const STEP_MS: u64 = 20;

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the file, 1.
    pub marline_recording: u32,
    /// Length of a window, milliseconds.
    pub step_ms: u64,
    /// When it began, for people.
    #[serde(default)]
    pub began: String,
    /// What wrote it, for people.
    #[serde(default)]
    pub by: String,
}

impl Header {
    /// The header of a recording that begins now.
    pub fn now() -> Self {
        let now = std::time::SystemTime::now();
        Self {
            marline_recording: FORMAT,
            step_ms: STEP_MS,
            began: humantime::format_rfc3339_seconds(now).to_string(),
            by: format!("marline {}", env!("CARGO_PKG_VERSION")),
        }
    }
}

/// A window of a path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// When it begins, milliseconds from the beginning; a multiple of the header's step.
    pub ms: u64,
    /// The path's name.
    pub path: String,
    /// Number of the session: each has clocks of its own.
    #[serde(default)]
    pub session: u64,
    /// From the client to the server, or from the end that recorded to the other.
    #[serde(default, skip_serializing_if = "Way::is_empty")]
    pub up: Way,
    /// Back.
    #[serde(default, skip_serializing_if = "Way::is_empty")]
    pub down: Way,
}

impl Line {
    /// The same in a recording that began at `ms` of this one; `None` if it was before.
    #[must_use]
    pub fn from(mut self, ms: u64) -> Option<Self> {
        self.ms = self.ms.checked_sub(ms)?;
        for way in [&mut self.up, &mut self.down] {
            for (at, _) in &mut way.delays {
                *at = ((*at - ms as f64) * 1e3).round() / 1e3;
            }
        }
        Some(self)
    }
}

/// A window of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Way {
    /// Packets sent in the window; of what the peer sent, those that arrived in it or were missing.
    pub sent: u64,
    /// Of these, packets that were lost.
    pub lost: u64,
    /// Bytes that arrived in the window.
    pub arrived: u64,
    /// Of these, bytes of long streams: where most are, the path was asked for all that it had.
    pub bulk: u64,
    /// Some packets: when each was sent (ms from the beginning), and how long it took (ms), by
    /// clocks that differ by the same for all of a session.
    pub delays: Vec<(f64, f64)>,
}

impl Way {
    /// Did nothing happen?
    pub fn is_empty(&self) -> bool {
        self.sent == 0 && self.arrived == 0 && self.delays.is_empty()
    }
}
