//! How often a path failed: what it carried was lost, and was sent again on another because the
//! path was silent. What is lost otherwise is mended by repair symbols, or one by one.
//!
//! A path that goes dark every other second measures well in between, by round trips and by losses
//! of the last moments alike. So this remembers for longer, and by time: a path that is avoided
//! carries little else than probes, and deserves another trial.

use marline_base::{Duration, Instant};

/// Packets of the running span and of the one before it count. As long as the least round trip is
/// remembered (`rtt.rs`): paths that fail every few seconds show it several times.
const SPAN: Duration = Duration::from_secs(10);

/// Packets whose fate is known, and those of them that the path failed to deliver.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    all: u32,
    failed: u32,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Failures {
    spans: [Count; 2],
    began: Instant,
}

impl Failures {
    /// What became of a packet.
    pub(super) fn record(&mut self, now: Instant, failed: bool) {
        if now.since(self.began) > SPAN {
            let is_over = now.since(self.began) > SPAN * 2;
            let before = if is_over {
                Count::default()
            } else {
                self.spans[0]
            };
            self.spans = [Count::default(), before];
            self.began = now;
        }
        self.spans[0].all += 1;
        self.spans[0].failed += u32::from(failed);
    }

    /// A packet that was counted as failed arrived after all.
    pub(super) fn revoke(&mut self) {
        self.spans[0].failed = self.spans[0].failed.saturating_sub(1);
    }

    /// Share of the packets of the last 10 to 20 s that failed.
    pub(super) fn share(&self) -> f64 {
        let failed: u32 = self.spans.iter().map(|span| span.failed).sum();
        let all: u32 = self.spans.iter().map(|span| span.all).sum();
        f64::from(failed) / f64::from(all.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_remembered_for_ten_to_twenty_seconds() {
        let mut failures = Failures::default();
        let at = Instant::from_millis;
        for n in 0..1_000 {
            failures.record(at(10 * n), n < 20);
        }
        assert_eq!(failures.share(), 0.02);
        failures.record(at(10_010), false);
        assert_eq!(failures.share(), 20.0 / 1_001.0);
        failures.record(at(20_020), false);
        assert_eq!(failures.share(), 0.0);
    }

    #[test]
    fn what_a_path_did_long_ago_is_forgotten_with_the_next_packet() {
        let mut failures = Failures::default();
        let at = Instant::from_millis;
        (0..10).for_each(|n| failures.record(at(n), true));
        assert_eq!(failures.share(), 1.0);
        failures.record(at(20_001), false);
        assert_eq!(failures.share(), 0.0);
    }
}
