use super::stats::DirectionStats;
use marline_base::Instant;
use marline_link::{ConfigError, Link, LinkConfig, Verdict};
use std::fmt;

/// One of the two ways through an emulator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// From the clients to the target, or from the near device to the far one.
    Up,
    /// From the target to the clients, or from the far device to the near one.
    Down,
}

impl Direction {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Up, Self::Down];

    /// `up` or `down`, also the name of the direction's stream of randomness.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A link and what is counted around it.
#[derive(Debug)]
pub(super) struct Lane {
    link: Link,
    pub(super) stats: DirectionStats,
    pub(super) in_flight_bytes: usize,
}

impl Lane {
    pub(super) fn new(link: Link) -> Self {
        Self {
            link,
            stats: DirectionStats::default(),
            in_flight_bytes: 0,
        }
    }

    pub(super) fn offer(&mut self, now: Instant, bytes: u32) -> Verdict {
        self.link.offer(now, bytes)
    }

    pub(super) fn set_dark(&mut self, now: Instant, dark: bool) {
        self.link.set_dark(now, dark);
    }

    pub(super) fn reconfigure(
        &mut self,
        now: Instant,
        config: LinkConfig,
    ) -> Result<(), ConfigError> {
        self.link.reconfigure(now, config)
    }

    pub(super) fn stats(&self, now: Instant) -> DirectionStats {
        DirectionStats {
            link: *self.link.counters(),
            queued_bytes: self.link.queued_bytes(now),
            ..self.stats
        }
    }
}
