//! What runs measure: the [`catalogue`] of names, the meters that collect, and what samples
//! sessions and links every tenth of a second.
//!
//! Memory is bounded whatever a run's length: distributions are histograms, series have at most
//! [`sampler::MOST_SAMPLES`] values.

pub mod catalogue;
mod histogram;
mod meter;
mod sampler;
mod waiting;

pub(crate) use catalogue::is_less_better;
pub use catalogue::{CATALOGUE, Entry, Form, Measure, Scope};
pub use histogram::Histogram;
pub(crate) use histogram::endings;
pub use meter::Meter;
pub use sampler::{EVERY, MOST_SAMPLES};
pub(crate) use sampler::{Sampler, Timeline};
pub(crate) use waiting::Waiting;
