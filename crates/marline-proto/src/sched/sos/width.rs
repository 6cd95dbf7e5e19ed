use libm::{log, sqrt};

use super::{Lane, Moments};
use crate::sched::normal::score;

/// How *w* is made of what is known of a path's spacing: how late it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Hoeffding's bound (3), (b − a)·√(−ln(ε/m)/2), with the least time seen for a and the 95th
    /// percentile for b, as in the paper. That b is no bound, so the result is none: too little
    /// where a few packets are very late, and too much everywhere else.
    Hoeffding,
    /// As if sums were normal, each path for itself: z·σ, where z is exceeded with probability ε/m.
    /// Wrong by a tenth where few packets are very uneven.
    Normal,
    /// The central limit theorem with its next term, which says how skewed a sum still is, and
    /// paths' tails chosen together: no w of each path, but the split by which the last of them is
    /// done soonest.
    Clt,
}

/// [`Width`] for a number of paths and a probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    width: Width,
    factor: f64,
    epsilon: f64,
}

impl Width {
    /// For `paths` of which each is late with probability `epsilon`/`paths` (2).
    pub fn scale(self, epsilon: f64, paths: usize) -> Scale {
        let each = (epsilon / paths.max(1) as f64).clamp(1e-9, 0.5);
        let factor = match self {
            Self::Hoeffding => sqrt(-log(each) / 2.0),
            Self::Normal | Self::Clt => score(each),
        };
        Scale {
            width: self,
            factor,
            epsilon,
        }
    }
}

impl Scale {
    /// *w* of a path with this spacing, for itself: [`Width::Normal`]'s for [`Width::Clt`].
    pub fn spread(&self, moments: &Moments) -> f64 {
        let range = match self.width {
            Width::Hoeffding => moments.p95 - moments.min,
            Width::Normal | Width::Clt => moments.deviation,
        };
        self.factor * range.max(0.0)
    }

    /// A path with this spacing, `delay` (P) and `ahead` (u) packets under way.
    pub fn lane(&self, moments: &Moments, delay: f64, ahead: f64) -> Lane {
        if self.width == Width::Clt {
            let Moments {
                mean,
                deviation,
                skewness,
                ..
            } = *moments;
            return Lane::with_law(mean, deviation, skewness, self.epsilon).behind(delay, ahead);
        }
        Lane::new(moments.mean, self.spread(moments), delay, ahead)
    }
}
