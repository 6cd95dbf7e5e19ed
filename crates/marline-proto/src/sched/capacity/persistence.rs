//! How well the last glimpse of a capacity predicts what follows it.

/// Observations that are remembered.
const MEMORY: f64 = 200.0;
/// Weight (in observations) of what is assumed at first.
const PRIOR: f64 = 4.0;
/// Correlation that is assumed at first.
const ASSUMED: f64 = 0.95;

/// The linear relation between the capacity in a short stretch and that in the stretch which
/// follows it unseen, both as deviations from the forecast in units of its spread.
///
/// Just before a block is sent the sender has seen a glimpse of the capacity, and what stands at
/// the bottleneck depends on the capacity since. If it is constant for longer than that, the
/// glimpse predicts it exactly; if it is drawn again in between, not at all. Which of the two, or
/// how much of each, is learnt, because nobody can know how a link's capacity comes about.
#[derive(Clone, Copy, Debug)]
pub struct Persistence {
    observations: f64,
    /// Means of the products.
    glimpse2: f64,
    product: f64,
    follow2: f64,
}

impl Default for Persistence {
    fn default() -> Self {
        Self::new()
    }
}

impl Persistence {
    /// Nothing observed: the glimpse is believed.
    pub const fn new() -> Self {
        Self {
            observations: PRIOR,
            glimpse2: 1.0,
            product: ASSUMED,
            follow2: 1.0,
        }
    }

    /// After `glimpse` came `follow`.
    pub fn observe(&mut self, glimpse: f64, follow: f64) {
        if !(glimpse.is_finite() && follow.is_finite()) {
            return;
        }
        // One freak must not decide for hundreds of blocks.
        let (glimpse, follow) = (glimpse.clamp(-4.0, 4.0), follow.clamp(-4.0, 4.0));
        self.observations = (self.observations + 1.0).min(MEMORY);
        let weight = 1.0 / self.observations;
        self.glimpse2 += weight * (glimpse * glimpse - self.glimpse2);
        self.product += weight * (glimpse * follow - self.product);
        self.follow2 += weight * (follow * follow - self.follow2);
    }

    /// What `glimpse` lets expect: mean and deviation.
    pub fn after(&self, glimpse: f64) -> (f64, f64) {
        if self.glimpse2 <= 0.0 {
            return (0.0, libm::sqrt(self.follow2));
        }
        let slope = (self.product / self.glimpse2).clamp(0.0, 1.0);
        let unexplained = self.follow2 - slope * (2.0 * self.product - slope * self.glimpse2);
        let glimpse = if glimpse.is_finite() { glimpse } else { 0.0 };
        (slope * glimpse, libm::sqrt(unexplained.max(0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_base::Rng;

    fn near(a: f64, b: f64, within: f64) {
        assert!(libm::fabs(a - b) <= within, "{a} is not {b}");
    }

    #[test]
    fn what_persists_is_believed_and_what_does_not_is_not() {
        let mut rng = Rng::new(31);
        let (mut same, mut new, mut half) =
            (Persistence::new(), Persistence::new(), Persistence::new());
        for _ in 0..2_000 {
            let (a, b) = (rng.normal(), rng.normal());
            same.observe(a, a);
            new.observe(a, b);
            half.observe(a, 0.6 * a + 0.8 * b);
        }
        let (mean, sd) = same.after(1.5);
        near(mean, 1.5, 0.01);
        near(sd, 0.0, 0.05);
        // The slope's own deviation over 200 observations is 0.07.
        let (mean, sd) = new.after(1.0);
        near(mean, 0.0, 0.25);
        near(sd, 1.0, 0.2);
        let (mean, sd) = half.after(1.0);
        near(mean, 0.6, 0.2);
        near(sd, 0.8, 0.15);
    }

    #[test]
    fn nonsense_does_no_harm() {
        let mut persistence = Persistence::default();
        for _ in 0..500 {
            persistence.observe(f64::NAN, 1.0);
            persistence.observe(0.0, 0.0);
        }
        let (mean, sd) = persistence.after(f64::NAN);
        assert!(mean == 0.0 && (0.0..0.05).contains(&sd), "{mean} {sd}");
    }
}
