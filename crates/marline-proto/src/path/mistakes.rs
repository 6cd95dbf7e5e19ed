use marline_base::{Duration, Instant};

/// A mistaken suspicion adds the round trip divided by this to what feedback may be late by.
const PER_MISTAKE: u32 = 4;
/// At most this number counts.
const MOST_MISTAKES: u32 = 4;
/// Mistakes, and outages, are forgotten when this time passes without another.
pub(super) const REMEMBERED: Duration = Duration::from_secs(30);

/// Suspicions of a path that proved wrong, because all that was in flight arrived, or all that
/// followed a burst of losses. What was sent elsewhere meanwhile only delayed what the other paths
/// carry, so the next suspicion takes longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mistakes {
    count: u32,
    last: Instant,
}

impl Mistakes {
    pub(crate) const NONE: Self = Self {
        count: 0,
        last: Instant::ZERO,
    };

    /// It was only late.
    pub(crate) fn on_mistake(&mut self, now: Instant) {
        self.count = (self.count + 1).min(MOST_MISTAKES);
        self.last = now;
    }

    pub(crate) fn forget(&mut self, now: Instant) {
        if now.since(self.last) > REMEMBERED {
            self.count = 0;
        }
    }

    /// What they add to the time that feedback may take.
    pub(super) fn patience(&self, round_trip: Duration) -> Duration {
        match self.count {
            0 => Duration::ZERO,
            count => round_trip / PER_MISTAKE * count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_give_patience_of_a_round_trip_at_most_and_are_forgotten() {
        let mut mistakes = Mistakes::NONE;
        let trip = Duration::from_millis(100);
        assert_eq!(mistakes.patience(trip), Duration::ZERO);
        for n in 1..=6 {
            mistakes.on_mistake(Instant::from_millis(20_000 * n));
        }
        assert_eq!(mistakes.patience(trip), trip);
        mistakes.forget(Instant::from_millis(150_000));
        assert_eq!(mistakes.patience(trip), trip);
        mistakes.forget(Instant::from_millis(150_001));
        assert_eq!(mistakes.patience(trip), Duration::ZERO);
        mistakes.on_mistake(Instant::from_millis(150_002));
        assert_eq!(mistakes.patience(trip), trip / 4);
    }
}
