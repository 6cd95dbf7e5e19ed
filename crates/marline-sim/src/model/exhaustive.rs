//! The best of all assignments of a unit's packets to paths, by trying every one.

use marline_base::{Duration, Instant, Rng};

use super::{Demand, Model, ModelError};

/// Units that every assignment is tried on: the same draws for each.
const TRIALS: u32 = 4_000;

impl Model {
    /// The least mean in-order delay (ms) that any fixed assignment of a unit's packets gives; a
    /// unit finds empty paths. `None` if the demand has no units, or too many packets in one.
    ///
    /// # Errors
    /// As [`Model::check`].
    pub fn best_assignment(&self, seed: u64) -> Result<Option<f64>, ModelError> {
        let Demand::Units { packets, .. } = self.demand else {
            return Ok(None);
        };
        if packets == 0 || packets > Self::MOST_EXHAUSTIVE || self.paths.is_empty() {
            return Ok(None);
        }
        let mut best = f64::INFINITY;
        let mut assignment = vec![0; packets as usize];
        loop {
            best = best.min(self.mean_of(&assignment, seed)?);
            // The next number in the base of the number of paths.
            let Some(digit) = assignment.iter().position(|d| d + 1 < self.paths.len()) else {
                return Ok(Some(best));
            };
            assignment[digit] += 1;
            assignment[..digit].fill(0);
        }
    }

    fn mean_of(&self, assignment: &[usize], seed: u64) -> Result<f64, ModelError> {
        let rng = Rng::new(seed).stream("exhaustive");
        let mut links = Vec::new();
        for (i, path) in self.paths.iter().enumerate() {
            links.push(path.link(rng.stream(&format!("path {i}")).next_u64())?);
        }
        let mut sum = Duration::ZERO;
        for trial in 0..TRIALS {
            let written = Instant::ZERO + Duration::from_secs(10) * trial;
            let mut delivered = written;
            for &path in assignment {
                // What is lost would be late for ever; it is left out.
                if let Some(at) = links[path].offer(written, self.packet).arrival() {
                    delivered = delivered.max(at);
                }
                sum += delivered.since(written);
            }
        }
        Ok(sum.as_secs_f64() * 1e3 / f64::from(TRIALS) / assignment.len() as f64)
    }
}
