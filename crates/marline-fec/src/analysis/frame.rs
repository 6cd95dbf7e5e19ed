//! One frame and the exact law of S.

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// A path's share of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Probability ε that a slot is lost, 0 to 1.
    pub loss: f64,
    /// Slots in a frame, N, the coded packet's included.
    pub slots: u32,
    /// Duration Δ of a slot, in any unit.
    pub slot_time: f64,
}

/// How a frame is laid out.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    paths: Vec<Path>,
    coded: usize,
    /// P(X = r) for r = 0 … τ.
    lost: Vec<f64>,
}

/// Why there is no such frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Invalid {
    /// The coded packet's path does not exist or has no slot for it.
    NoCodedSlot {
        /// The path that was named.
        path: usize,
    },
    /// A path's loss is not between 0 and 1, or its slots' duration not positive.
    Path {
        /// Which path.
        path: usize,
    },
    /// More than [`Frame::MAX_SLOTS`] slots.
    TooLong {
        /// How many.
        slots: u64,
    },
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCodedSlot { path } => write!(f, "path {path} has no slot for coded packets"),
            Self::Path { path } => write!(
                f,
                "path {path} needs a loss between 0 and 1 and slots that last longer than 0"
            ),
            Self::TooLong { slots } => {
                let limit = Frame::MAX_SLOTS;
                write!(f, "a frame of {slots} slots; at most {limit} are supported")
            }
        }
    }
}

impl core::error::Error for Invalid {}

impl Frame {
    /// The most slots in a frame.
    pub const MAX_SLOTS: u64 = 4096;

    /// A frame over `paths`, whose coded packet is the last slot of the path with the index
    /// `coded`.
    pub fn new(paths: &[Path], coded: usize) -> Result<Self, Invalid> {
        if paths.get(coded).is_none_or(|path| path.slots == 0) {
            return Err(Invalid::NoCodedSlot { path: coded });
        }
        let valid = |path: &Path| (0.0..=1.0).contains(&path.loss) && path.slot_time > 0.0;
        if let Some(path) = paths.iter().position(|path| !valid(path)) {
            return Err(Invalid::Path { path });
        }
        let slots = paths.iter().map(|path| u64::from(path.slots)).sum();
        if slots > Self::MAX_SLOTS {
            return Err(Invalid::TooLong { slots });
        }
        let mut lost = vec![1.0];
        for path in paths {
            for _ in 0..path.slots {
                lost = convolve(&lost, &[1.0 - path.loss, path.loss], usize::MAX);
            }
        }
        let paths = paths.to_vec();
        Ok(Self { paths, coded, lost })
    }

    /// τ: the slots of a frame, the coded packet's included.
    pub fn interval(&self) -> usize {
        self.lost.len() - 1
    }

    /// m = τε̄: slots that a frame loses in the mean. From 1 on periods never end.
    pub fn load(&self) -> f64 {
        let lost = |path: &Path| f64::from(path.slots) * path.loss;
        self.paths.iter().map(lost).sum()
    }

    fn variance(&self) -> f64 {
        let variance = |path: &Path| f64::from(path.slots) * path.loss * (1.0 - path.loss);
        self.paths.iter().map(variance).sum()
    }

    /// The loss of each slot that carries information.
    fn information(&self) -> impl Iterator<Item = f64> {
        self.paths.iter().enumerate().flat_map(|(index, path)| {
            let slots = path.slots - u32::from(index == self.coded);
            core::iter::repeat_n(path.loss, slots as usize)
        })
    }

    /// P(S = 0): no information packet is lost (equation 11).
    pub fn idle(&self) -> f64 {
        self.information().map(|loss| 1.0 - loss).product()
    }

    /// P(S = 1): one information packet is lost, the coded one is not (equation 12).
    fn single(&self) -> f64 {
        let mut law = vec![1.0];
        for loss in self.information() {
            law = convolve(&law, &[1.0 - loss, loss], 2);
        }
        law.get(1).copied().unwrap_or(0.0) * (1.0 - self.paths[self.coded].loss)
    }

    /// P(S = k) for k = 0 … `longest`, exactly (equations 11, 12 and 14). Takes time in proportion
    /// to the cube of `longest` at most.
    pub fn distribution(&self, longest: usize) -> Vec<f64> {
        let mut law = vec![self.idle(), self.single()];
        // The law of what the k − 1 frames after the first lose together.
        let mut later = vec![1.0];
        for k in 2..=longest {
            later = convolve(&later, &self.lost, longest);
            let first = self.lost.iter().enumerate().take(k + 1).skip(2);
            let terms = first.map(|(r, probability)| {
                let rest = later.get(k - r).copied().unwrap_or(0.0);
                probability * (r - 1) as f64 / (k - 1) as f64 * rest
            });
            law.push(terms.sum());
        }
        law.truncate(longest + 1);
        law
    }

    /// E\[S\], in frames; infinite from a load of 1 on.
    pub fn mean(&self) -> f64 {
        self.moment(|mean, _| mean)
    }

    /// E\[S²\]; infinite from a load of 1 on.
    pub fn second_moment(&self) -> f64 {
        self.moment(|mean, variance| mean * mean + variance)
    }

    /// The mean of what `of` makes of mean and variance of S, given how much the first frame lost.
    fn moment(&self, of: impl Fn(f64, f64) -> f64) -> f64 {
        let spare = 1.0 - self.load();
        if spare <= 0.0 {
            return f64::INFINITY;
        }
        let down = |r: usize| (r - 1) as f64;
        let given = |r: usize| {
            of(
                1.0 + down(r) / spare,
                down(r) * self.variance() / (spare * spare * spare),
            )
        };
        let first = self.lost.iter().enumerate().skip(2);
        self.single() * of(1.0, 0.0) + first.map(|(r, p)| p * given(r)).sum::<f64>()
    }

    /// An upper bound of the mean time that a slot's packet waits at the receiver for earlier ones,
    /// in the unit of the slots' duration; per slot, the coded ones included. Multiply by
    /// τ/(τ − 1) for the mean over information packets.
    ///
    /// It takes frames to last equally long on all paths, as they do where each path carries its
    /// share: the slots of every path must add up to the same time, or the bound holds for none.
    ///
    /// Theorem 3 as corrected: a period of S frames delays the coded path's packets by at most
    /// Δ·N(N − 1)S²/2 together, another path's by Δ·NS(NS − 1)/2.
    pub fn buffering_bound(&self) -> f64 {
        let (mean, second) = (self.mean(), self.second_moment());
        if mean == f64::INFINITY {
            return f64::INFINITY;
        }
        let waits = self.paths.iter().enumerate().map(|(index, path)| {
            let n = f64::from(path.slots);
            let slots = if index == self.coded {
                n * (n - 1.0) * second
            } else {
                n * n * second - n * mean
            };
            path.slot_time * slots
        });
        waits.sum::<f64>() / (2.0 * self.interval() as f64 * (mean + self.idle()))
    }
}

/// The law of the sum of two independent counts, up to `longest`.
fn convolve(a: &[f64], b: &[f64], longest: usize) -> Vec<f64> {
    let len = (a.len() + b.len() - 1).min(longest.saturating_add(1));
    let mut sum = vec![0.0; len];
    for (i, p) in a.iter().enumerate().take(len) {
        for (s, q) in sum[i..].iter_mut().zip(b) {
            *s += p * q;
        }
    }
    sum
}
