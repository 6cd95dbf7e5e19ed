//! What the demo and its processes say to each other: one JSON document a line.

use super::super::notes::Notes;
use super::super::options::Task;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// What a process is to do; the first line that it reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) role: Role,
    pub(super) task: Task,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Role {
    /// Sends through a session of this scheduler.
    Client { scheduler: String },
    /// Receives what a client of this key sends.
    Server { scheduler: String, client: String },
    /// Sends over TCP connections, of each block this number of bytes over each.
    Sender { shares: Vec<u64> },
    /// Receives that.
    Receiver { shares: Vec<u64> },
}

/// Whereto a sending process sends; the second line that it reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Go {
    /// The server's key, if there is a session.
    pub(super) server: Option<String>,
    /// The relays.
    pub(super) entries: Vec<SocketAddr>,
}

/// What a process says. Times are nanoseconds of the machine's monotonic clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Word {
    /// The client's public key.
    Key(String),
    /// Where a receiving process listens, and the server's key.
    Listens {
        key: Option<String>,
        addrs: Vec<SocketAddr>,
    },
    /// [`Notes::wrote`].
    Wrote(u64),
    /// [`Notes::refused`].
    Refused,
    /// [`Notes::came`].
    Came { number: Option<u64>, at: u64 },
    /// All is sent, with this redundancy.
    Over(f64),
    /// It cannot go on.
    Failed(String),
}

impl Word {
    /// Reads a line; `None` if it is something else, such as one of the log.
    pub(super) fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    /// Writes it as a line of standard output.
    pub(super) fn say(&self) {
        if let Ok(text) = serde_json::to_string(self) {
            let mut out = io::stdout().lock();
            // The process that started this one may be gone; then standard input has ended, too.
            let _ = writeln!(out, "{text}").and_then(|()| out.flush());
        }
    }
}

/// One moment by this process's instants and by the clock that all processes share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    here: Instant,
    shared: u64,
}

impl Anchor {
    pub(super) fn new() -> Self {
        let shared = clock_gettime(ClockId::Monotonic);
        let shared = shared.tv_sec as u64 * 1_000_000_000 + shared.tv_nsec as u64;
        Anchor {
            here: Instant::now(),
            shared,
        }
    }

    fn nanos(&self, at: Instant) -> u64 {
        let after = at.saturating_duration_since(self.here).as_nanos() as u64;
        let before = self.here.saturating_duration_since(at).as_nanos() as u64;
        (self.shared + after).saturating_sub(before)
    }

    pub(super) fn instant(&self, nanos: u64) -> Instant {
        let before = Duration::from_nanos(self.shared.saturating_sub(nanos));
        let after = Duration::from_nanos(nanos.saturating_sub(self.shared));
        self.here.checked_sub(before).unwrap_or(self.here) + after
    }
}

/// Notes that are said aloud.
#[derive(Debug)]
pub(super) struct Aloud(pub(super) Anchor);

impl Notes for Aloud {
    fn wrote(&self, written: Instant) {
        Word::Wrote(self.0.nanos(written)).say();
    }

    fn refused(&self) {
        Word::Refused.say();
    }

    fn came(&self, number: Option<u64>, at: Instant) {
        let at = self.0.nanos(at);
        Word::Came { number, at }.say();
    }

    /// One end does not know what the other has.
    fn is_complete(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_the_same_in_every_process() {
        // Two processes take their anchors at different times.
        let first = Anchor {
            here: Instant::now(),
            shared: 5_000_000_000,
        };
        let later = Duration::from_millis(700);
        let second = Anchor {
            here: first.here + later,
            shared: first.shared + 700_000_000,
        };
        for offset in [0, 300, 700, 900] {
            let at = first.here + Duration::from_millis(offset);
            assert_eq!(second.instant(first.nanos(at)), at);
            assert_eq!(first.instant(second.nanos(at)), at);
        }
    }

    #[test]
    fn words_are_told_from_the_log() {
        let word = Word::Came {
            number: Some(7),
            at: 9,
        };
        let line = serde_json::to_string(&word).unwrap();
        assert_eq!(Word::read(&line), Some(word));
        assert_eq!(Word::read("INFO 7 blocks came"), None);
        assert_eq!(Word::read("\"gone\""), None);
    }
}
