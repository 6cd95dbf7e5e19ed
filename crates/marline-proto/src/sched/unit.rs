use core::fmt;

use marline_base::{Duration, Instant};

/// A unit that an application hands over, as a scheduler sees it: before it is taken, and while it
/// is under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Its number in its flow; the session counts.
    pub id: u64,
    /// Its length (bytes). In a [`Plan`](super::Plan): what is left of it to emit for the first
    /// time.
    pub len: u64,
    /// After this it is worth nothing; `None` if it always is.
    pub deadline: Option<Instant>,
    /// Probability, 0..=1, with which the deadline should be kept, if the application asked.
    pub reliability: Option<f64>,
    /// 0 (most urgent) to 7, among the units of its flow.
    pub urgency: u8,
    /// How its code stands; `None` for messages of a packets flow, which have none.
    pub code: Option<UnitCode>,
}

/// How the block code of a unit stands: any `symbols` different symbols bring it back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnitCode {
    /// Length (bytes) of its symbols; the last source symbol may be shorter.
    pub symbol: u32,
    /// Its source symbols: *k*.
    pub symbols: u32,
    /// Different symbols, source or repair, that the peer is known to have.
    pub acked: u32,
    /// Symbols that wait or are in flight and about which nothing is known yet.
    pub open: u32,
    /// Repair symbols emitted so far.
    pub repairs: u32,
    /// Repair symbols that may still be emitted
    /// ([`Plan::repair_of`](super::Plan::repair_of)).
    pub spare: u32,
}

impl Unit {
    /// A unit of `len` bytes without a deadline or a code.
    pub const fn new(id: u64, len: u64) -> Self {
        Self {
            id,
            len,
            deadline: None,
            reliability: None,
            urgency: 3,
            code: None,
        }
    }
}

/// What a scheduler expects of a unit that it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Forecast {
    /// Probability, 0..=1, that it arrives by its deadline.
    pub on_time: f64,
    /// Repair symbols that it means to add, as a fraction of the source symbols.
    pub redundancy: f64,
}

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
