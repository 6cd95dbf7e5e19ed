//! What a path will carry, as a distribution: SKIP, the capacity forecast of HOP (Chiariotti et
//! al., "The HOP Protocol", IEEE/ACM ToN 2021, §V), and what follows from it for a packet.
//!
//! | module | what |
//! | --- | --- |
//! | [`Skip`] | one path's estimator, made of what follows |
//! | [`ServiceMeter`] | capacity of the bottleneck from arrivals, packet by packet |
//! | [`Kalman`] | the paper's adaptive filter with its step and outage modes |
//! | [`Bank`] | several memories at once, each judged on the horizon at which it is used |
//! | [`Persistence`] | how well the last glimpse predicts what follows it |
//! | [`Backlog`] | what stands at the bottleneck, as far as can be known |
//! | [`Lateness`] | the probability that a packet is late |
//! | [`Calibration`] | promised probabilities against what happened |
//!
//! Times are seconds and capacities bits a second as `f64`, because all of it is arithmetic of
//! distributions; nothing here decides an order of events.

mod backlog;
mod bank;
mod calibration;
mod kalman;
mod lateness;
mod mixture;
mod outage;
mod persistence;
mod service;
mod skip;

pub use backlog::{Backlog, Batch, NODES};
pub use bank::Bank;
pub use calibration::{Calibration, Decile};
pub use kalman::{Kalman, Mode};
pub use lateness::Lateness;
pub use outage::erlang;
pub use persistence::Persistence;
pub use service::{Sample, ServiceMeter};
pub use skip::{Memory, Skip};

/// Is it a number above 0? A comparison alone would let nonsense pass as "not above".
fn positive(x: f64) -> bool {
    x > 0.0
}

/// What is expected of a path's capacity over a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityForecast {
    /// Mean (bit/s), at least 0.
    pub mean: f64,
    /// Standard deviation (bit/s), at least 0.
    pub sd: f64,
    /// Probability that the path falls into an outage instead, 0..=1.
    pub outage: f64,
    /// Capacity is in an outage or a fall: exponential with mean [`CapacityForecast::mean`] in each
    /// slot (HOP §V-C, before VI), instead of normal.
    pub falling: bool,
}

impl CapacityForecast {
    /// A normal capacity without outages.
    pub const fn normal(mean: f64, sd: f64) -> Self {
        Self {
            mean,
            sd,
            outage: 0.0,
            falling: false,
        }
    }
}
