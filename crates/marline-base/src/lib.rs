//! What Marline's pure crates share: an [`Instant`] that is handed in, a [`Rate`], and a seeded
//! generator ([`Rng`]) with named sub-streams.
//!
//! Nothing here reads a clock, the environment or the operating system's randomness: a run is a
//! function of its inputs, so the same seed gives the same run on every machine.

#![no_std]

mod rate;
mod rng;
mod time;

pub use core::time::Duration;
pub use rate::Rate;
pub use rng::Rng;
pub use time::Instant;
