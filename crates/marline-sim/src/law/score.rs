//! Scores of laws by what happened.

use marline_proto::law::{Calibration, Law};

/// An arrival is known to this (µs): the likelihood of a packet is the probability that its law
/// gave to the millisecond about its arrival.
const EITHER_SIDE: f64 = 500.0;
/// Of every law a hundredth is taken to be even over ten seconds, so that one packet that somebody
/// held for impossible costs no more than twelve nats.
const ANYTHING: f64 = 0.01;
const EVEN: f64 = 2.0 * EITHER_SIDE / 10e6;
/// Nor is a loss held for more certain, or less, than one in ten thousand.
const SURE: f64 = 1e-4;
/// The cost is the mean of those of these quantiles.
const QUANTILES: usize = 19;

/// Sums over packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Score {
    /// Packets that arrived, and their log-likelihood (nats).
    arrived: f64,
    likelihood: f64,
    /// How far quantiles were from arrivals, weighted (pinball loss, µs).
    off: f64,
    calibration: Calibration,
    /// Log-likelihood of being lost or not (nats), of all packets.
    fate: f64,
}

impl Score {
    /// A packet arrived then (µs).
    pub fn on_arrived(&mut self, law: &Law, at: f64) {
        self.arrived += 1.0;
        let near = law.share(at + EITHER_SIDE) - law.share(at - EITHER_SIDE);
        self.likelihood += ((1.0 - ANYTHING) * near + ANYTHING * EVEN).ln();
        let arrives = 1.0 - law.loss();
        for n in 1..=QUANTILES {
            let share = n as f64 / (QUANTILES + 1) as f64;
            let Some(quantile) = law.quantile(share * arrives) else {
                continue;
            };
            let miss = at - quantile;
            let weight = if miss > 0.0 { share } else { share - 1.0 };
            // Twice the mean: of a single time that is its distance.
            self.off += 2.0 * weight * miss / QUANTILES as f64;
        }
        self.calibration.on_arrived(law, at);
        self.fate += (1.0 - law.loss().clamp(SURE, 1.0 - SURE)).ln();
    }

    /// A packet was lost.
    pub fn on_lost(&mut self, law: &Law) {
        self.calibration.on_lost(law.loss());
        self.fate += law.loss().clamp(SURE, 1.0 - SURE).ln();
    }

    /// Packets.
    pub fn packets(&self) -> u64 {
        self.calibration.packets()
    }

    /// Mean log-likelihood of an arrival, to the millisecond (nats): more is better.
    pub fn likelihood(&self) -> f64 {
        self.likelihood / self.arrived.max(1.0)
    }

    /// Mean distance of a law from what happened (CRPS, ms): less is better.
    pub fn off_ms(&self) -> f64 {
        self.off / 1e3 / self.arrived.max(1.0)
    }

    /// Mean log-likelihood of being lost or not (nats): more is better.
    pub fn fate(&self) -> f64 {
        self.fate / self.packets().max(1) as f64
    }

    /// Deciles and losses.
    pub fn calibration(&self) -> &Calibration {
        &self.calibration
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_scores_what_it_gave_to_the_millisecond() {
        let law = Law::normal(50e3, 10e3, 0.1);
        let mut score = Score::default();
        score.on_arrived(&law, 50e3);
        // A straight line between 40 and 60 % holds 0.2/5067 µs.
        let near: f64 = 0.99 * 1e3 * 0.2 / 5_066.94 + 1e-6;
        assert!((score.likelihood() - near.ln()).abs() < 1e-6);
        assert!((score.fate() - 0.9_f64.ln()).abs() < 1e-12);
        // CRPS of a normal law at its mean: σ(√2 − 1)/√π, by nineteen quantiles.
        assert!(
            (score.off_ms() / 2.337 - 1.0).abs() < 0.1,
            "{}",
            score.off_ms()
        );
        score.on_lost(&law);
        assert!((score.fate() - (0.9_f64.ln() + 0.1_f64.ln()) / 2.0).abs() < 1e-12);
        assert_eq!(score.packets(), 2);
        let sure = Law::normal(0.0, 1.0, 0.0);
        let mut score = Score::default();
        score.on_arrived(&sure, 1e9);
        assert!(
            (score.likelihood() + 13.8).abs() < 0.1,
            "{}",
            score.likelihood()
        );
        assert!((score.off_ms() - 1e6).abs() < 1.0);
    }
}
