//! What Marline's crates share: an [`Instant`] that is handed in, a [`Rate`], a seeded generator
//! ([`Rng`]) with named sub-streams, and the grammar of what people write ([`text`]).
//!
//! Nothing here reads a clock, the environment or the operating system's randomness: a run is a
//! function of its inputs, so the same seed gives the same run on every machine.

#![no_std]

extern crate alloc;

mod rank;
mod rate;
mod rng;
pub mod text;
mod time;

pub use core::time::Duration;
pub use rank::nearest_rank;
pub use rate::Rate;
pub use rng::Rng;
pub use time::{Instant, micros_f64, nanos_f64};
