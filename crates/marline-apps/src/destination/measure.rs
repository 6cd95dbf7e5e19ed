//! What a path carries, measured between its two ends:
//!
//! ```text
//! version (1) = 6 | way (1): 0 up, 1 down | seconds (1), 1 to 30 | most bytes (8), big endian
//! ```
//! The server reads and throws away what comes up, or sends zeros down.

use bytes::Bytes;
use std::time::Duration;

pub(super) const VERSION: u8 = 6;
/// Longest measurement (s): enough for a window to grow on any path, and no time in which others
/// would have to wait.
pub const MOST_SECONDS: u8 = 30;

/// The direction that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// A measurement that a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// The direction.
    pub way: Way,
    seconds: u8,
    /// It ends when this many bytes have passed.
    pub bytes: u64,
}

impl Measure {
    /// Of 1 to [`MOST_SECONDS`] seconds, rounded up.
    pub fn new(way: Way, time: Duration, bytes: u64) -> Self {
        let seconds = time.as_secs_f64().ceil() as u8;
        Measure {
            way,
            seconds: seconds.clamp(1, MOST_SECONDS),
            bytes,
        }
    }

    /// How long it takes at most.
    pub fn time(&self) -> Duration {
        Duration::from_secs(u64::from(self.seconds))
    }

    /// The bytes that open the flow.
    pub fn encode(self) -> Bytes {
        let way = match self.way {
            Way::Up => 0,
            Way::Down => 1,
        };
        [&[VERSION, way, self.seconds], &self.bytes.to_be_bytes()[..]]
            .concat()
            .into()
    }

    /// Reads what [`encode`](Self::encode) wrote; `None` for everything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let [VERSION, way, seconds @ 1..=MOST_SECONDS, bytes @ ..] = bytes else {
            return None;
        };
        let way = match way {
            0 => Way::Up,
            1 => Way::Down,
            _ => return None,
        };
        let bytes = u64::from_be_bytes(bytes.try_into().ok()?);
        Some(Measure {
            way,
            seconds: *seconds,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_bounded_by_both_ends() {
        let time = |ms| Measure::new(Way::Down, Duration::from_millis(ms), 1).time();
        assert_eq!(time(0), Duration::from_secs(1));
        assert_eq!(time(2_500), Duration::from_secs(3));
        assert_eq!(time(1_000_000), Duration::from_secs(30));
        let bytes = Measure::new(Way::Up, Duration::from_secs(5), 7).encode();
        assert_eq!(&bytes[..], b"\x06\x00\x05\x00\x00\x00\x00\x00\x00\x00\x07");
        for seconds in [0, 31, 255] {
            let mut longer = bytes.to_vec();
            longer[2] = seconds;
            assert_eq!(Measure::decode(&longer), None);
        }
    }
}
