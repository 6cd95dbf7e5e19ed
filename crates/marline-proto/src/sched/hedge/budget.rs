//! What a flow may spend on redundancy.

use marline_base::Instant;

use super::super::ols::target::Target;
use super::surplus::Surplus;

/// A flow's account with the bucket of its session.
#[derive(Debug, Default)]
pub(super) struct Budget {
    /// The flow's own where it is alone; else the session's while the flow plans.
    pub(super) bucket: Surplus,
    /// The flow's number in the bucket, once it has one.
    number: Option<u64>,
    /// What all flows need (bytes/s).
    pub(super) need: f64,
    /// Which share of that this one does.
    share: f64,
    /// What is left over of what the paths carry (bytes/s).
    left: f64,
    /// Bytes of the bucket that may be used before the next plan.
    allowance: f64,
    /// Bytes that were used since the last plan.
    owed: f64,
    /// Bytes that were paid for what has not left.
    paid: f64,
}

impl Budget {
    /// The paths carry `all` (bytes/s), and redundancy is worth at most this share of the target.
    /// Until the target is known nothing is left over.
    pub(super) fn fill(&mut self, now: Instant, all: f64, most: f64, target: &Target) {
        (self.need, self.share, self.left) = (f64::INFINITY, 0.0, 0.0);
        if target.is_known() {
            let number = *self.number.get_or_insert_with(|| self.bucket.enter());
            let need = target.bytes_per_second();
            self.need = self.bucket.need(now, number, need);
            self.share = need / self.need.max(1.0);
            let surplus = (all - self.need).max(0.0);
            self.left = surplus.min(most * self.need);
            let most = self.bucket.fill(now, surplus, self.left);
            self.paid = self.paid.min(most);
        }
        self.bucket.tokens -= self.owed;
        self.owed = 0.0;
    }

    /// The plan is over.
    pub(super) fn close(&mut self) {
        self.allowance = self.bucket.tokens * self.share;
    }

    /// Is so much in the bucket?
    pub(super) fn has(&self, bytes: f64) -> bool {
        self.bucket.tokens >= bytes
    }

    /// Bytes a second of the surplus that are this flow's part.
    pub(super) fn part(&self) -> f64 {
        self.left * self.share
    }

    /// Pays for what a plan sends.
    pub(super) fn pay(&mut self, bytes: f64) {
        self.bucket.tokens -= bytes;
        self.paid += bytes;
    }

    /// What a plan sends beside so much else that it is negligible takes nothing from the bucket.
    pub(super) fn waive(&mut self, bytes: f64) {
        self.paid += bytes;
    }

    /// Pays for what is sent between two plans, if the flow's part of what is in the bucket
    /// suffices.
    pub(super) fn insures(&mut self, bytes: f64) -> bool {
        let pays = self.allowance >= bytes;
        if pays {
            self.owe(bytes);
            self.paid += bytes;
        }
        pays
    }

    /// There was no surplus after all; what was owed still is.
    pub(super) fn empty(&mut self) {
        self.bucket.tokens = self.bucket.tokens.min(0.0);
    }

    /// Something left again. What the session rescues from a silent path or sends again after a
    /// loss was not paid for here yet; what was paid for and dropped before it left pays for that.
    pub(super) fn on_left_again(&mut self, bytes: f64) {
        if self.paid >= bytes {
            self.paid -= bytes;
        } else {
            self.owe(bytes);
        }
    }

    fn owe(&mut self, bytes: f64) {
        self.allowance -= bytes;
        self.owed += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A known target of so many bytes a second.
    fn target(bytes: f64) -> Target {
        let mut target = Target::new(8e-6 * bytes);
        target.observe(Instant::ZERO, None, 0);
        target
    }

    const SECOND: Instant = Instant::from_millis(1_000);

    #[test]
    fn what_was_dropped_pays_for_no_more_than_a_bucket() {
        let mut budget = Budget::default();
        for ms in 0..1_000 {
            let now = Instant::from_millis(1_000 + ms);
            budget.fill(now, 300e3, 1e9, &target(200e3));
            // Paid for, and dropped before it left.
            budget.pay(100.0);
        }
        budget.fill(Instant::from_millis(2_000), 300e3, 1e9, &target(200e3));
        for _ in 0..1_000 {
            budget.on_left_again(100.0);
        }
        assert_eq!(budget.owed, 100e3 - 10e3);
    }

    #[test]
    fn what_was_used_between_plans_is_paid_with_the_next() {
        let mut budget = Budget::default();
        budget.fill(SECOND, 300e3, 1e9, &target(200e3));
        budget.close();
        assert!((0..10).all(|_| budget.insures(1_000.0)));
        assert!(!budget.insures(1_000.0), "a bucket");
        assert!(budget.has(10e3));
        budget.fill(SECOND, 300e3, 1e9, &target(200e3));
        assert!(!budget.has(1.0));
    }

    #[test]
    fn what_was_owed_stays_owed_when_the_surplus_is_gone() {
        let mut budget = Budget::default();
        budget.fill(SECOND, 300e3, 1e9, &target(200e3));
        budget.on_left_again(25e3);
        budget.fill(SECOND, 300e3, 1e9, &target(200e3));
        budget.empty();
        assert!(budget.bucket.tokens < -14e3);
        budget.fill(Instant::from_millis(1_100), 300e3, 1e9, &target(200e3));
        assert!(!budget.has(0.0));
        budget.empty();
        budget.fill(Instant::from_millis(1_200), 300e3, 1e9, &target(200e3));
        assert!(budget.has(4e3));
    }

    #[test]
    fn who_knows_no_target_takes_nothing_from_others() {
        let [mut known, mut new] = [Budget::default(), Budget::default()];
        known.fill(SECOND, 300e3, 1e9, &target(200e3));
        new.bucket = known.bucket.clone();
        new.fill(SECOND, 300e3, 1e9, &Target::new(0.0));
        assert_eq!((new.part(), new.need), (0.0, f64::INFINITY));
        assert!(new.has(10e3), "the bucket is as it was");
        new.close();
        assert!(!new.insures(1.0));
    }
}
