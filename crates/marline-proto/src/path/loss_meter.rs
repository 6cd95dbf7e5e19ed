//! How many of a path's packets were lost lately.

/// Outcomes remembered for suspicion.
const RECENT: u32 = 64;
/// This number of losses among them is heavy. An overflowing queue drops about half of a burst;
/// that is congestion control's business.
const HEAVY: u32 = 48;
/// A path that lately lost a larger share of its packets is expected to lose more: one loss says so
/// of the next 500 packets, a burst of four of 900. Bursts that together take one packet in fifty
/// may be as far apart.
pub(crate) const LOSSY: f64 = 0.0005;

/// Weight of one packet in the loss fraction, as 1/n: 2 % is known to a percent (√(0.02 /
/// 256)). A choice, not tuned.
const SMOOTHING: f64 = 256.0;

#[derive(Debug, Default)]
pub(crate) struct LossMeter {
    fraction: f64,
    samples: f64,
    /// The last outcomes, newest in bit 0; 1 is a loss.
    recent: u64,
    known: u32,
    /// What the fraction was when the path fell into doubt, and losses that were counted since
    /// then.
    before: f64,
    since: u32,
    /// Losses that are forgotten, and need not be revoked.
    forgotten: u32,
}

impl LossMeter {
    pub(crate) fn record(&mut self, lost: bool) {
        self.samples = (self.samples + 1.0).min(SMOOTHING);
        self.fraction += (f64::from(u8::from(lost)) - self.fraction) / self.samples;
        self.recent = self.recent << 1 | u64::from(lost);
        self.known = (self.known + 1).min(RECENT);
        self.since = self.since.saturating_add(lost.into());
    }

    /// A packet that was counted as lost arrived after all.
    pub(crate) fn revoke(&mut self) {
        if self.forgotten > 0 {
            self.forgotten -= 1;
            return;
        }
        self.fraction = (self.fraction - 1.0 / self.samples.max(1.0)).max(0.0);
    }

    /// Fraction lost, over some 256 packets.
    pub(crate) fn fraction(&self) -> f64 {
        self.fraction
    }

    /// The path is in doubt from now on.
    pub(crate) fn doubt(&mut self) {
        (self.before, self.since) = (self.fraction, 0);
        self.restart();
    }

    /// The doubt was an outage, and is over: what it took says nothing of what the path loses while
    /// it carries.
    pub(crate) fn on_outage(&mut self) {
        (self.fraction, self.forgotten) = (self.before, self.since);
    }

    /// At least 48 of the last 64 packets were lost.
    pub(crate) fn is_heavy(&self) -> bool {
        self.known == RECENT && self.recent.count_ones() >= HEAVY
    }

    /// Forgets the recent outcomes: what comes next is judged alone.
    pub(crate) fn restart(&mut self) {
        self.known = 0;
        self.recent = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heavy_needs_a_full_window() {
        let mut meter = LossMeter::default();
        for _ in 0..63 {
            meter.record(true);
        }
        assert!(!meter.is_heavy());
        meter.record(true);
        assert!(meter.is_heavy());
        for _ in 0..16 {
            meter.record(false);
        }
        assert!(meter.is_heavy(), "48 of 64");
        meter.record(false);
        assert!(!meter.is_heavy(), "47 of 64");
    }

    #[test]
    fn what_an_outage_took_is_forgotten() {
        let mut meter = LossMeter::default();
        for i in 0..1_000 {
            meter.record(i % 100 == 0);
        }
        let before = meter.fraction();
        meter.doubt();
        for _ in 0..200 {
            meter.record(true);
        }
        assert!(meter.fraction() > 0.5);
        meter.on_outage();
        assert_eq!(meter.fraction(), before);
        // Some of it comes late.
        (0..200).for_each(|_| meter.revoke());
        assert_eq!(meter.fraction(), before);
        meter.revoke();
        assert!(meter.fraction() < before);
    }

    #[test]
    fn the_fraction_starts_as_a_plain_mean() {
        let mut meter = LossMeter::default();
        for i in 0..100 {
            meter.record(i % 10 == 0);
        }
        assert!((meter.fraction() - 0.1).abs() < 1e-9);
        meter.revoke();
        assert!((meter.fraction() - 0.09).abs() < 1e-9);
    }
}
