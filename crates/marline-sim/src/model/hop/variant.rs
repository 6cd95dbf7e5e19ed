use std::fmt;
use std::str::FromStr;

use marline_base::Duration;
use marline_link::{Bucket, Capacity, LinkConfig, VaryingRate};
use marline_proto::sched::capacity::{CapacityForecast, Kalman, Memory};
use marline_proto::sched::hop::Settings;

/// Who plans, and from what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// No scheduler: every path carries the whole block and its queue is empty when a block comes.
    /// No sender can do better.
    Bound,
    /// JUMP with the true distribution of the capacity.
    IdealJump,
    /// JUMP with the adaptive filter: the paper's HOP with its equations corrected.
    Hop,
    /// JUMP with the bank, its bounds less the backlog.
    JumpBank,
    /// Hybrid and bank, everything at once.
    Unstaged,
    /// Hybrid, bank, staged.
    Hybrid,
    /// Hybrid and staged with the true distribution.
    IdealHybrid,
    /// Blocks as large as the paper's LEAP allows: α = 1.25 and the adaptive filter.
    HopLeap,
    /// Blocks as large as LEAP allows; hybrid, bank, staged.
    Leap,
}

const NAMES: [(&str, Variant); 9] = [
    ("bound", Variant::Bound),
    ("ideal-jump", Variant::IdealJump),
    ("hop", Variant::Hop),
    ("jump-bank", Variant::JumpBank),
    ("hybrid-unstaged", Variant::Unstaged),
    ("hybrid", Variant::Hybrid),
    ("ideal-hybrid", Variant::IdealHybrid),
    ("hop-leap", Variant::HopLeap),
    ("leap", Variant::Leap),
];

impl Variant {
    /// Every variant's name.
    pub const NAMES: [&'static str; NAMES.len()] = {
        let mut names = [""; NAMES.len()];
        let mut i = 0;
        while i < NAMES.len() {
            names[i] = NAMES[i].0;
            i += 1;
        }
        names
    };

    pub(super) fn settings(&self) -> Settings {
        let paper = Settings {
            price: None,
            stage: 0.0,
            bound_backlog: false,
            margin: 1.25,
            ..Settings::default()
        };
        match self {
            Self::Bound | Self::IdealJump | Self::Hop | Self::HopLeap => paper,
            Self::JumpBank => Settings {
                bound_backlog: true,
                ..paper
            },
            Self::Unstaged => Settings {
                stage: 0.0,
                ..Settings::default()
            },
            Self::Hybrid | Self::IdealHybrid | Self::Leap => Settings::default(),
        }
    }

    /// Does the application take as much as LEAP allows?
    pub(super) const fn leaps(&self) -> bool {
        matches!(self, Self::Leap | Self::HopLeap)
    }

    /// The memory of a path whose link this is, for blocks whose packets have `window` from `phase`
    /// on to leave it.
    pub(super) fn memory(&self, link: &LinkConfig, phase: Duration, window: Duration) -> Memory {
        let truth = match link.capacity {
            Capacity::Varying(varying) => Some(over(&varying, phase, window)),
            Capacity::Constant(rate) | Capacity::Bucket(Bucket { rate, .. }) => {
                Some(CapacityForecast::normal(rate.as_bps() as f64, 0.0))
            }
            _ => None,
        };
        match (self, truth) {
            (Self::IdealJump | Self::IdealHybrid, Some(truth)) => Memory::Given(truth),
            (Self::Hop | Self::HopLeap, _) => Memory::Kalman(Kalman::new(0.97)),
            _ => Memory::bank(),
        }
    }
}

/// The distribution of the mean rate over the `window` that begins at `phase`: that of a slot, with
/// less spread if the window reaches over several. Normal, with the moments of what it is.
fn over(varying: &VaryingRate, phase: Duration, window: Duration) -> CapacityForecast {
    let every = varying.every.as_secs_f64();
    let window = window.as_secs_f64().max(1e-6);
    let into = (phase + varying.phase).as_secs_f64() % every;
    let (mut left, mut part, mut squares) = (window, (every - into).min(window), 0.0);
    while left > 1e-12 {
        squares += (part / window) * (part / window);
        left -= part;
        part = every.min(left);
    }
    let (mean, sd) = (varying.mean.as_bps() as f64, varying.sd.as_bps() as f64);
    CapacityForecast::normal(mean, sd * squares.sqrt())
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, variant)| variant == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = NAMES.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, variant)| *variant)
            .ok_or_else(|| format!("no variant `{text}`; there are {}", Self::NAMES.join(", ")))
    }
}
