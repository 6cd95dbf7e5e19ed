//! Promised probabilities against what happened.

/// What was promised with a probability in one tenth of 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decile {
    /// How many promises.
    pub promises: u64,
    /// How many of them came true.
    pub kept: u64,
    /// Sum of the promised probabilities.
    pub promised: f64,
}

impl Decile {
    /// Mean promised probability and observed frequency; `None` without promises.
    pub fn rates(&self) -> Option<(f64, f64)> {
        let n = self.promises as f64;
        (self.promises > 0).then(|| (self.promised / n, self.kept as f64 / n))
    }
}

/// Counts promises by their probability: an estimator that is right keeps what it promises with
/// probability p in a fraction p of the cases, whatever p is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Calibration {
    deciles: [Decile; 10],
}

impl Calibration {
    /// No promises yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Something was promised with `probability` and did or did not happen. NaN counts as 0.
    pub fn record(&mut self, probability: f64, happened: bool) {
        let probability = if probability > 0.0 {
            probability.min(1.0)
        } else {
            0.0
        };
        let decile = &mut self.deciles[((probability * 10.0) as usize).min(9)];
        decile.promises += 1;
        decile.kept += u64::from(happened);
        decile.promised += probability;
    }

    /// The tenths in ascending order.
    pub const fn deciles(&self) -> &[Decile; 10] {
        &self.deciles
    }

    /// All promises together.
    pub fn total(&self) -> Decile {
        self.deciles
            .iter()
            .fold(Decile::default(), |sum, one| Decile {
                promises: sum.promises + one.promises,
                kept: sum.kept + one.kept,
                promised: sum.promised + one.promised,
            })
    }

    /// Adds the promises of another.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.deciles.iter_mut().zip(other.deciles) {
            mine.promises += theirs.promises;
            mine.kept += theirs.kept;
            mine.promised += theirs.promised;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promises_fall_into_their_tenth() {
        let mut calibration = Calibration::new();
        calibration.record(0.98, true);
        calibration.record(1.0, false);
        calibration.record(0.05, false);
        calibration.record(f64::NAN, true);
        calibration.record(7.0, true);
        let deciles = calibration.deciles();
        assert_eq!((deciles[9].promises, deciles[9].kept), (3, 2));
        assert_eq!((deciles[0].promises, deciles[0].kept), (2, 1));
        let (promised, kept) = deciles[9].rates().unwrap();
        assert!((promised - 2.98 / 3.0).abs() < 1e-12 && (kept - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(deciles[5].rates(), None);
        let mut both = calibration;
        both.merge(&calibration);
        assert_eq!(both.total().promises, 10);
    }
}
