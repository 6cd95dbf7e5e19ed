//! How much redundancy flows may spend on repair symbols.
//!
//! A flow's [`Budget`] is a fraction of its own bytes. The end of a short message could not be
//! repaired with that alone: a repair symbol is as long as a packet. So flows may spend some bytes
//! before they have earned them, and borrow these from their session's [`Advance`]. There is one
//! for all flows of a session, because many short ones would exceed the fraction otherwise, each by
//! its own advance. What flows earned and did not spend goes there when they end.

/// Bytes that a session has to lend before any flow has ended, and the most that a flow may owe.
const START: f64 = 3_000.0;
/// Bytes of source symbols whose allowance is saved up at most: a window of 256 symbols.
const SAVED: f64 = 262_144.0;

/// What the flows of a session may borrow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advance {
    left: f64,
    most: f64,
}

impl Advance {
    /// For flows that may spend this fraction of their bytes, unless set otherwise.
    pub(crate) fn new(fraction: f64) -> Self {
        let most = START + fraction * SAVED;
        Self { left: START, most }
    }

    fn put(&mut self, bytes: f64) {
        self.left = (self.left + bytes).min(self.most);
    }
}

/// A bucket that every byte of source symbols fills by a fraction of a byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Bytes of repair symbols for each byte of source symbols.
    fraction: f64,
    left: f64,
    /// Bytes that were borrowed.
    owed: f64,
}

impl Budget {
    pub(super) fn new(fraction: f64) -> Self {
        Self {
            fraction,
            left: 0.0,
            owed: 0.0,
        }
    }

    pub(super) fn set(&mut self, fraction: f64) {
        self.fraction = fraction;
        self.left = self.left.min(self.most());
    }

    fn most(&self) -> f64 {
        match self.fraction > 0.0 {
            true => START + self.fraction * SAVED,
            false => 0.0,
        }
    }

    /// Borrows as much as there is, and the flow may owe.
    pub(super) fn borrow(&mut self, from: &mut Advance) {
        if self.fraction > 0.0 {
            let bytes = (START - self.owed).min(from.left).max(0.0);
            from.left -= bytes;
            self.owed += bytes;
            self.left += bytes;
        }
    }

    /// Gives back what was borrowed, as far as it is there.
    pub(super) fn repay(&mut self, to: &mut Advance) {
        let bytes = self.owed.min(self.left);
        self.owed -= bytes;
        self.left -= bytes;
        to.put(bytes);
    }

    /// Leaves what is there to other flows: this one ends.
    pub(super) fn leave(&mut self, to: &mut Advance) {
        to.put(self.left);
        self.left = 0.0;
    }

    /// So many bytes of source symbols are sent.
    pub(super) fn earn(&mut self, bytes: u64) {
        let more = self.fraction * bytes as f64;
        self.left = (self.left + more).min(self.most());
    }

    /// Spends so many bytes, if they are left.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        let affordable = bytes as f64 <= self.left;
        if affordable {
            self.left -= bytes as f64;
        }
        affordable
    }

    /// So many bytes were not spent after all.
    pub(super) fn give_back(&mut self, bytes: u64) {
        self.left = (self.left + bytes as f64).min(self.most());
    }

    /// Bytes that may be spent now.
    pub(super) fn left(&self) -> u64 {
        self.left as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spends all that there is, in symbols of 1000 bytes.
    fn spend(budget: &mut Budget) -> u64 {
        let mut spent = 0;
        while budget.take(1_000) {
            spent += 1_000;
        }
        spent
    }

    #[test]
    fn spends_a_fraction_of_what_it_earns_and_what_it_borrowed() {
        let (mut advance, mut budget) = (Advance::new(0.25), Budget::new(0.25));
        let mut spent = 0;
        for _ in 0..10_000 {
            budget.borrow(&mut advance);
            budget.earn(1_000);
            spent += spend(&mut budget);
            budget.repay(&mut advance);
        }
        assert_eq!(spent, 3_000 + 2_500_000);
        assert_eq!(budget.left(), 0);
    }

    #[test]
    fn many_flows_spend_no_more_than_one() {
        let mut advance = Advance::new(0.25);
        let mut spent = 0;
        for _ in 0..100 {
            let mut budget = Budget::new(0.25);
            budget.earn(1_000);
            budget.borrow(&mut advance);
            spent += spend(&mut budget);
            budget.repay(&mut advance);
            budget.leave(&mut advance);
        }
        assert_eq!(spent, 3_000 + 25_000);
    }

    #[test]
    fn what_a_flow_leaves_is_for_others() {
        let mut advance = Advance::new(0.5);
        let mut first = Budget::new(0.5);
        first.earn(10_000);
        first.leave(&mut advance);
        let mut second = Budget::new(0.5);
        second.borrow(&mut advance);
        assert_eq!(second.left(), 3_000, "a flow owes no more");
        let mut third = Budget::new(0.5);
        third.borrow(&mut advance);
        let mut fourth = Budget::new(0.5);
        fourth.borrow(&mut advance);
        assert_eq!((third.left(), fourth.left()), (3_000, 2_000));
        // There is an end to what is kept.
        for _ in 0..10 {
            let mut one = Budget::new(0.5);
            one.earn(1 << 30);
            one.leave(&mut advance);
        }
        assert_eq!(advance.left, START + 0.5 * SAVED);
    }

    #[test]
    fn saves_no_more_than_for_a_window() {
        let mut budget = Budget::new(0.5);
        for _ in 0..1_000 {
            budget.earn(10_000);
        }
        assert_eq!(budget.left(), 3_000 + 131_072);
        budget.give_back(1);
        assert_eq!(budget.left(), 3_000 + 131_072);
        budget.set(0.0);
        assert!(!budget.take(1));
        budget.earn(1 << 30);
        budget.borrow(&mut Advance::new(0.5));
        assert!(!budget.take(1));
    }
}
