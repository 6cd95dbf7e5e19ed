use core::fmt;

use marline_base::Duration;

/// Why a scheduler will not take a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refusal {
    /// It cannot arrive by its deadline as surely as asked; `best` is the highest probability of
    /// being on time that any schedule has now (HOP §IV).
    Late {
        /// Probability, 0..=1.
        best: f64,
    },
    /// It is longer than what arrives in time as surely as asked (HOP §IV-A, LEAP).
    Large {
        /// A unit of this number of bytes would.
        fits: u64,
        /// The same in symbols.
        symbols: u32,
    },
    /// Its deadline is shorter than the shortest that can be kept as surely as asked (HOP §IV-A,
    /// FLIP).
    Short {
        /// The shortest deadline.
        least: Duration,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late { best } => write!(
                f,
                "it cannot arrive in time as surely as asked; the best probability is {best:.3}"
            ),
            Self::Large { fits, symbols } => write!(
                f,
                "it cannot arrive in time as surely as asked; {fits} bytes ({symbols} packets) fit"
            ),
            Self::Short { least } => write!(
                f,
                "it cannot arrive in time as surely as asked; {:.1} ms are needed",
                least.as_secs_f64() * 1e3
            ),
        }
    }
}
