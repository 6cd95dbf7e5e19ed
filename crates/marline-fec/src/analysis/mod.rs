//! What a streaming code costs and gives, in numbers: the analysis of S-EDPF (Garcia-Saavedra,
//! Karzand and Leith, "Low Delay Random Linear Coding and Scheduling Over Multiple Interfaces"),
//! section 3, with its errors corrected.
//!
//! Time is cut into *frames* of τ slots, spread over paths; the last slot of one path carries a
//! coded packet, all others carry information. A slot of path p is lost with probability ε_p. As
//! long as nothing is lost, packets are delivered at once. A loss begins a *decoding period*, which
//! lasts until as many coded packets have arrived as information packets were lost. S is its length
//! in frames; S = 0 is a frame without a lost information packet.
//!
//! In what follows X is the number of slots that a frame loses, m = E\[X\] = τε̄ (the *load*) and
//! v its variance.
//!
//! * The lost slots beyond what coded packets repaired are a random walk with steps X − 1. It goes
//!   down by one at most, so the time until it first returns from r − 1 to 0 has a known law, which
//!   gives P(S = k) exactly ([`Frame::distribution`], equations 11, 12 and 14), and, from
//!   E\[T\] = x/(1 − m) and Var\[T\] = xv/(1 − m)³ for the time T to go down x steps, the moments
//!   ([`Frame::mean`], [`Frame::second_moment`]).
//! * The paper has closed forms that are exact for equal paths only and too high otherwise (up to
//!   9 % in the mean and 25 % in the second moment); [`approximation`] has them for comparison.
//! * Theorem 3's bound of the buffering delay fails for more than one path: its proof takes every
//!   path for the coded one. [`Frame::buffering_bound`] is the corrected one.
//! * Theorem 4 says where coded packets go: [`coded_path`].
//! * [`interval()`] turns it round: the longest τ at which packets wait no longer than they may;
//!   [`wait()`] is its bound for any τ.

pub mod approximation;
mod frame;
mod interval;

pub use frame::{Frame, Invalid, Path};
pub use interval::{interval, wait};

/// The path for coded packets: the lossiest one (Theorem 4), of several the first. `None` without
/// paths or if a loss is not a number.
pub fn coded_path(losses: impl IntoIterator<Item = f64>) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (path, loss) in losses.into_iter().enumerate() {
        if loss.is_nan() {
            return None;
        }
        if best.is_none_or(|(_, highest)| loss > highest) {
            best = Some((path, loss));
        }
    }
    best.map(|(path, _)| path)
}
