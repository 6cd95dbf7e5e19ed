//! A mechanism is judged by pairs: the same seeds with it and without it.
//!
//! Figures of one set of seeds move by some per cent with every change of the code; what a
//! mechanism is for does not. So a test says what the mechanism is worth, and fails when less than
//! half of that is left.

use marline_sim::Rng;

/// Where the drawing of seeds begins, any number: seeds of scenarios and of tuning begin at 1.
const DRAWN_FROM: u64 = 0x70a1_5eed;

/// A value of runs with a mechanism and without it, seed by seed.
#[derive(Debug)]
pub(super) struct Paired {
    with: Vec<f64>,
    without: Vec<f64>,
}

impl Paired {
    /// Runs `count` pairs. `MARLINE_PAIRED=NUMBER` draws other seeds.
    pub(super) fn run(
        count: usize,
        with: impl Fn(u64) -> f64,
        without: impl Fn(u64) -> f64,
    ) -> Self {
        let from = std::env::var("MARLINE_PAIRED").ok();
        let from = from.and_then(|text| text.parse().ok());
        let mut rng = Rng::new(from.unwrap_or(DRAWN_FROM));
        let seeds: Vec<u64> = (0..count).map(|_| rng.below(1 << 32)).collect();
        Self {
            with: seeds.iter().map(|seed| with(*seed)).collect(),
            without: seeds.iter().map(|seed| without(*seed)).collect(),
        }
    }

    /// The value is less with the mechanism by at least half of `worth`, in the mean of all pairs,
    /// and in most of them it is less at all.
    #[track_caller]
    pub(super) fn spares_half_of(&self, worth: f64) {
        let spared: Vec<f64> = std::iter::zip(&self.with, &self.without)
            .map(|(with, without)| without - with)
            .collect();
        let mean = spared.iter().sum::<f64>() / spared.len() as f64;
        let better = spared.iter().filter(|spared| **spared > 0.0).count();
        assert!(
            mean >= worth / 2.0 && 2 * better > spared.len(),
            "worth {worth}, spares {mean:.2} in the mean, something in {better} of {}: {self:.1?}",
            spared.len()
        );
    }
}

#[test]
fn half_of_the_worth_in_most_pairs_is_what_a_mechanism_must_keep() {
    let judge = |with: [f64; 3], without: [f64; 3]| {
        let paired = Paired {
            with: with.into(),
            without: without.into(),
        };
        std::panic::catch_unwind(|| paired.spares_half_of(10.0)).is_ok()
    };
    assert!(judge([10.0, 10.0, 10.0], [15.0, 16.0, 15.0]));
    assert!(!judge([10.0, 10.0, 10.0], [14.0, 14.0, 14.0]), "too little");
    assert!(!judge([10.0, 10.0, 10.0], [30.0, 10.0, 10.0]), "luck");
}
