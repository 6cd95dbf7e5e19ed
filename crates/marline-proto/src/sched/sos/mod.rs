//! Whole objects over paths whose delay is random: the planning of SOS (Fahmi, Leith, Kucera and
//! Claussen, "Low Delay Scheduling of Objects Over Multiple Wireless Paths").
//!
//! Of an object only the arrival of its last packet matters. A path that delivers a packet every μ,
//! give or take, delivers n of them within nμ + √n·w with high probability: what a packet may be
//! late grows with n, what all of them may be late only with its root. So a shaky path is of use
//! for many packets and not for few, and everything here follows from that.
//!
//! | item | what |
//! | --- | --- |
//! | [`Spacing`] | what is known of the time between a path's arrivals (§3.2.2) |
//! | [`Width`] | how late it may be, from that: by Hoeffding's bound (eq. 3) or the central limit theorem |
//! | [`Lane`] | a path as a split sees it: T_U and P (eq. 2, 7) |
//! | [`split()`] | how many packets of an object go on each path (eq. 5) |
//! | [`redundant()`] | the same with repair symbols on each path (eq. 8, 9) |
//! | [`Reach`] | how many packets a path should have under way, for `sos-rateless` |
//! | [`helps()`] | whether one more symbol could make an object arrive sooner |

mod arrivals;
mod gaps;
mod joint;
mod lane;
mod lanes;
mod owed;
mod quotas;
mod rateless;
mod reach;
mod redundant;
pub(in crate::sched) mod scheduler;
mod spacing;
mod split;
mod sums;
mod tail;
#[cfg(test)]
mod tests;
mod width;

pub use joint::split;
pub use lane::Lane;
pub use rateless::helps;
pub use reach::Reach;
pub use redundant::redundant;
pub use spacing::{Moments, Spacing};
pub use split::Split;
pub use width::{Scale, Width};

/// Probability that an object takes longer than planned, ε.
pub const EPSILON: f64 = 0.05;
