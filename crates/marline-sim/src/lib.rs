//! Marline sessions over modelled links in virtual time.
//!
//! [`World`] holds two real `marline-proto` sessions and the links between them. Its clock jumps
//! from event to event; ties are broken by insertion order, so a run is a function of its inputs
//! and its seed.

pub mod hostile;
pub mod results;
pub mod scenario;
pub mod traces;
mod world;

pub use marline_base::{Duration, Instant, Rate, Rng};
pub use world::{Cable, End, World, WorldConfig};
