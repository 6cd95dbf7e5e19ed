//! How much redundancy a flow may spend on repair symbols.

/// Bytes that a flow may spend before it has earned any, so that the end of a short message can be
/// repaired too.
const START: u64 = 3_000;
/// Bytes of source symbols whose allowance is saved up at most: a window of 256 symbols.
const SAVED: f64 = 262_144.0;

/// A bucket that every byte of source symbols fills by a fraction of a byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Bytes of repair symbols for each byte of source symbols.
    fraction: f64,
    left: f64,
}

impl Budget {
    pub(super) fn new(fraction: f64) -> Self {
        let left = if fraction > 0.0 { START as f64 } else { 0.0 };
        Self { fraction, left }
    }

    pub(super) fn set(&mut self, fraction: f64) {
        self.fraction = fraction;
        self.left = self.left.min(self.most());
    }

    fn most(&self) -> f64 {
        match self.fraction > 0.0 {
            true => START as f64 + self.fraction * SAVED,
            false => 0.0,
        }
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

    #[test]
    fn spends_a_fraction_of_what_it_earns_and_its_start() {
        let mut budget = Budget::new(0.25);
        let mut spent = 0;
        for _ in 0..10_000 {
            budget.earn(1_000);
            while budget.take(1_000) {
                spent += 1_000;
            }
        }
        assert_eq!(spent, START + 2_500_000);
        assert_eq!(budget.left(), 0);
    }

    #[test]
    fn saves_no_more_than_for_a_window() {
        let mut budget = Budget::new(0.5);
        for _ in 0..1_000 {
            budget.earn(10_000);
        }
        assert_eq!(budget.left(), START + 131_072);
        budget.give_back(1);
        assert_eq!(budget.left(), START + 131_072);
        budget.set(0.0);
        assert!(!budget.take(1));
        budget.earn(1 << 30);
        assert!(!budget.take(1));
    }
}
