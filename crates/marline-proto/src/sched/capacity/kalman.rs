//! The paper's forecast: an adaptive Kalman filter with modes for steps and outages (HOP §V-A).

use super::CapacityForecast;

/// Samples after which a step or an outage counts as lasting (t_thr).
const LASTING: usize = 3;
/// Where the filter begins, and begins again after an outage: 50 kB/s.
const FLOOR: f64 = 400e3;
/// Relative deviations that are assumed of the first sample: of its noise, and of the state's walk.
const FIRST: (f64, f64) = (0.25, 0.05);
/// Samples over which the probability of falls is averaged.
const RARE: f64 = 200.0;

/// How the filter takes samples (HOP Fig. 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Looking for the capacity of a new link from below, at most twice the last estimate.
    SlowStart,
    /// As a Kalman filter does.
    Normal,
    /// Capacity fell by more than three deviations: samples are kept out, the variance grows.
    DownStep,
    /// Capacity rose by more than three deviations, or at the end of an outage.
    UpStep,
    /// Nothing was served for three samples.
    Outage,
}

impl Mode {
    /// Its name for status and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlowStart => "slow-start",
            Self::Normal => "normal",
            Self::DownStep => "down-step",
            Self::UpStep => "up-step",
            Self::Outage => "outage",
        }
    }
}

/// Tracks a capacity that walks at random and is seen with noise (17), (18). Both variances are
/// estimated on the way by the recursion of Gao et al., "Adaptive Kalman filtering with recursive
/// noise estimator" (the paper's \[54\]).
#[derive(Clone, Debug)]
pub struct Kalman {
    /// Estimate x̂ (bit/s) and its variance P after the latest sample.
    estimate: f64,
    variance: f64,
    /// Variances of the walk, Q, and of the noise, R.
    walk: f64,
    noise: f64,
    /// Forgetting factor of the noise recursion, and its power after all samples so far.
    memory: f64,
    faded: f64,
    mode: Mode,
    /// Samples in the present step.
    steps: usize,
    before: Before,
    recent: [f64; LASTING],
    seen: u64,
    /// Share of samples that began a fall, and the mean capacity in falls.
    falls: f64,
    fallen: f64,
}

/// What held before the present up-step.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    /// The error beyond which (20) sees an up-step.
    limit: f64,
    /// Q and R.
    walk: f64,
    noise: f64,
}

impl Kalman {
    /// A filter that saw nothing. `memory` is the forgetting factor b of the noise recursion, below
    /// 1; 0.97 remembers about 33 samples.
    pub fn new(memory: f64) -> Self {
        Self {
            estimate: FLOOR,
            variance: 0.0,
            walk: 0.0,
            noise: 0.0,
            memory: memory.clamp(0.0, 0.9999),
            faded: 1.0,
            mode: Mode::SlowStart,
            steps: 0,
            before: Before::default(),
            recent: [f64::NAN; LASTING],
            seen: 0,
            falls: 0.0,
            fallen: FLOOR,
        }
    }

    /// A filter of known state: x̂, P, Q and R.
    pub fn with(estimate: f64, variance: f64, walk: f64, noise: f64) -> Self {
        Self {
            estimate,
            variance,
            walk,
            noise,
            mode: Mode::Normal,
            ..Self::new(0.97)
        }
    }

    /// How samples are taken now.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Was there any sample?
    pub const fn has_samples(&self) -> bool {
        self.seen > 0
    }

    /// The estimate x̂ (bit/s).
    pub const fn estimate(&self) -> f64 {
        self.estimate
    }

    /// Estimate and deviation of the next sample before it comes: √(P + Q + R), the Σ of (20)
    /// without counting Q twice.
    pub fn prior(&self) -> (f64, f64) {
        let sum = self.variance + self.walk + self.noise;
        (self.estimate, libm::sqrt(sum))
    }

    /// Takes a sample of the capacity (bit/s); nonsense is left out.
    pub fn update(&mut self, capacity: f64) {
        if !(capacity >= 0.0 && capacity.is_finite()) {
            return;
        }
        self.seen += 1;
        self.recent.rotate_left(1);
        self.recent[LASTING - 1] = capacity;
        let silent = self.recent == [0.0; LASTING];
        if silent && self.estimate > 0.0 {
            // (19), with t_thr samples as in (21).
            if self.mode != Mode::Outage {
                self.fell(true);
            }
            self.estimate = FLOOR;
            self.mode = Mode::Outage;
            self.fallen = FLOOR;
            return;
        }
        match self.mode {
            Mode::SlowStart => self.climb(capacity),
            // Nothing was served yet, so the link is still a new one.
            Mode::Outage if self.noise == 0.0 => self.climb(capacity),
            _ => self.track(capacity),
        }
    }

    /// Follows from below until the capacity is within reach.
    fn climb(&mut self, capacity: f64) {
        let reach = 2.0 * self.estimate.max(FLOOR);
        if capacity > reach {
            self.estimate = reach;
            self.mode = Mode::SlowStart;
            return;
        }
        let square = |part: f64| (part * capacity) * (part * capacity);
        self.estimate = capacity.max(FLOOR);
        if self.noise == 0.0 {
            (self.noise, self.walk) = (square(FIRST.0), square(FIRST.1));
        }
        self.variance = self.noise;
        self.mode = Mode::Normal;
        self.steps = 0;
    }

    fn track(&mut self, capacity: f64) {
        let error = capacity - self.estimate;
        // (20).
        let limit = 3.0 * self.prior().1;
        if self.mode != Mode::UpStep {
            self.before = Before {
                // An outage ends in an up-step, whatever the deviation was before it.
                limit: match self.mode {
                    Mode::Outage => 0.0,
                    _ => limit,
                },
                walk: self.walk,
                noise: self.noise,
            };
        }
        // An up-step goes on by the deviation before it: the filter evolves normally in it, so that
        // the recursion takes the step for noise, and the second sample would seem to be no step.
        let mode = if error < -limit {
            Mode::DownStep
        } else if error > self.before.limit {
            Mode::UpStep
        } else {
            Mode::Normal
        };
        self.steps = match mode == self.mode && mode != Mode::Normal {
            true => self.steps + 1,
            false => usize::from(mode != Mode::Normal),
        };
        self.fell(mode == Mode::DownStep && self.mode != Mode::DownStep);
        self.mode = mode;
        if mode == Mode::DownStep {
            self.fallen += (capacity - self.fallen) / self.steps.clamp(1, LASTING) as f64;
        }
        if self.steps >= LASTING {
            // (21). That the capacity changed was no noise.
            if mode == Mode::UpStep {
                (self.walk, self.noise) = (self.before.walk, self.before.noise);
            }
            let sum: f64 = self.recent.iter().sum();
            self.estimate = sum / LASTING as f64;
            self.variance = self.noise / LASTING as f64;
            self.mode = Mode::Normal;
            self.steps = 0;
        } else if mode == Mode::DownStep {
            // In open chain: prediction only.
            self.variance += self.walk;
        } else {
            self.correct(error);
        }
    }

    /// One step of the filter, and of the recursion for its noises.
    fn correct(&mut self, error: f64) {
        let prior = self.variance + self.walk;
        let gain = match prior + self.noise > 0.0 {
            true => prior / (prior + self.noise),
            false => 1.0,
        };
        let posterior = (1.0 - gain) * prior;
        self.faded *= self.memory;
        let weight = (1.0 - self.memory) / (1.0 - self.faded * self.memory);
        let square = error * error;
        let moved = gain * gain * square + posterior - self.variance;
        self.noise += weight * ((square - prior).max(0.0) - self.noise);
        self.walk += weight * (moved.max(0.0) - self.walk);
        self.estimate = (self.estimate + gain * error).max(0.0);
        self.variance = posterior;
    }

    fn fell(&mut self, fell: bool) {
        let seen = (self.seen as f64).max(1.0);
        self.falls += (f64::from(u8::from(fell)) - self.falls) / seen.min(RARE);
    }

    /// The variance S = P + (ℓ+1)Q of the state `lag` + 1 steps after the last sample.
    fn ahead(&self, lag: f64) -> f64 {
        self.variance + (lag + 1.0) * self.walk
    }

    /// Mean capacity over `slots` steps that begin `lag` steps after the last sample (32), (33):
    /// the variance of the sum is k²(P + (ℓ+1)Q) + Q(k−1)k(2k−1)/6 + kR. In a fall or an outage
    /// the mean that was seen in it.
    pub fn forecast(&self, lag: u32, slots: u32) -> CapacityForecast {
        let k = f64::from(slots.max(1));
        let sum = k * k * self.ahead(f64::from(lag))
            + self.walk * (k - 1.0) * k * (2.0 * k - 1.0) / 6.0
            + k * self.noise;
        let falling = matches!(self.mode, Mode::DownStep | Mode::Outage);
        CapacityForecast {
            mean: if falling { self.fallen } else { self.estimate },
            sd: libm::sqrt(sum) / k,
            outage: self.falls,
            falling,
        }
    }
}

#[cfg(test)]
mod tests;
