//! Does the path go dark again and again?
//!
//! A path that is dark every other second measures well in between. As with routes that flap
//! (RFC 2439), one outage is bad luck and says nothing of what follows; from the second on, until
//! none has come for long, the path is one that flaps.

use marline_base::{Duration, Instant};

/// Outages are forgotten when this time passes without another.
pub(super) const REMEMBERED: Duration = Duration::from_secs(30);

/// As many outages, none longer than [`REMEMBERED`] after the one before, are more than bad luck.
const FLAPS: u32 = 2;

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outages {
    count: u32,
    last: Instant,
}

impl Outages {
    /// One is over in which packets were lost.
    pub(crate) fn on_outage(&mut self, now: Instant) {
        self.forget(now);
        self.count += 1;
        self.last = now;
    }

    pub(crate) fn forget(&mut self, now: Instant) {
        if now.since(self.last) > REMEMBERED {
            self.count = 0;
        }
    }

    /// Is another one to be expected?
    pub(super) fn flaps(&self) -> bool {
        self.count >= FLAPS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_flaps_from_the_second_outage_on_until_none_comes_for_long() {
        let mut outages = Outages::default();
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        outages.on_outage(at(10));
        assert!(!outages.flaps());
        outages.on_outage(at(41));
        assert!(!outages.flaps(), "long after the first");
        outages.on_outage(at(71));
        assert!(outages.flaps());
        outages.forget(at(101));
        assert!(outages.flaps());
        outages.forget(at(102));
        assert!(!outages.flaps());
    }
}
