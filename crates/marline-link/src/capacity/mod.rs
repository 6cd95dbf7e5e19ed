//! How fast a link serves its queue.
//!
//! Except for [`ServiceTime`] and [`Bucket`], capacity is a function of time and seed alone: what
//! was sent before does not change what the link can carry later.

mod bucket;
mod draw;
mod rates;
mod service;
mod steps;
mod trace;
mod trace_error;
mod varying;

use crate::delay::nanos_f64;
use crate::outage::Cursor;
use core::time::Duration;
use marline_base::{Instant, Rate, Rng};

pub use bucket::Bucket;
pub use rates::RateTrace;
pub use service::ServiceTime;
pub use trace::Trace;
pub use trace_error::TraceError;
pub use varying::{RateDist, VaryingRate};

/// The capacity process of a link.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Capacity {
    /// Packets leave at once.
    #[default]
    Unlimited,
    /// A constant rate, at least 1 kbit/s.
    Constant(Rate),
    /// A constant rate behind a token bucket.
    Bucket(Bucket),
    /// A rate that is drawn again every interval.
    Varying(VaryingRate),
    /// A service time that is drawn for each packet, whatever its size.
    Service(ServiceTime),
    /// Delivery opportunities of 1500 bytes, recorded by Mahimahi or a program like it.
    Trace(Trace),
    /// Rates that were recorded together with the times at which they changed.
    Rates(RateTrace),
}

impl Capacity {
    /// The mean rate in the long run: `None` when there is no such number, because the capacity
    /// is unlimited or counts packets.
    pub fn mean_rate(&self) -> Option<Rate> {
        match self {
            Self::Unlimited | Self::Service(_) => None,
            Self::Constant(rate) => Some(*rate),
            Self::Bucket(bucket) => Some(bucket.rate),
            Self::Varying(varying) => Some(varying.mean),
            Self::Trace(trace) => Some(trace.mean_rate()),
            Self::Rates(trace) => Some(trace.mean_rate()),
        }
    }
}

/// [`Capacity`] at work on a queue that is first in, first out.
///
/// `now` never decreases from call to call; `dark` says when the server rests.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    kind: Kind,
    /// When the last packet taken up has left.
    free: Instant,
}

#[derive(Clone, Debug)]
enum Kind {
    Unlimited,
    Constant(Rate),
    Bucket(bucket::Tokens),
    Varying(varying::Slots),
    Service(service::Times),
    Trace(trace::Replay),
    Rates(rates::Player),
}

impl Server {
    /// A server that is busy until `free`.
    pub(crate) fn new(capacity: &Capacity, rng: Rng, free: Instant) -> Self {
        Self {
            kind: match capacity {
                Capacity::Unlimited => Kind::Unlimited,
                Capacity::Constant(rate) => Kind::Constant(*rate),
                Capacity::Bucket(bucket) => Kind::Bucket(bucket::Tokens::new(*bucket)),
                Capacity::Varying(varying) => Kind::Varying(varying::Slots::new(*varying, rng)),
                Capacity::Service(times) => Kind::Service(service::Times::new(*times, rng)),
                Capacity::Trace(trace) => Kind::Trace(trace::Replay::new(trace.clone(), free)),
                Capacity::Rates(trace) => Kind::Rates(rates::Player::new(trace.clone())),
            },
            free,
        }
    }

    /// When a packet that is offered at `now` is taken up.
    pub(crate) fn start(&mut self, now: Instant, dark: &mut Cursor) -> Instant {
        match &mut self.kind {
            Kind::Trace(replay) => replay.start(now, dark),
            _ => {
                // Kept, because the walk through the outages never goes back.
                self.free = dark.lit_from(now.max(self.free));
                self.free
            }
        }
    }

    /// Takes up a packet of `size` bytes that was offered at `now`; answers when it has left.
    pub(crate) fn serve(&mut self, now: Instant, size: u32, dark: &mut Cursor) -> Instant {
        let start = self.start(now, dark);
        self.free = match &mut self.kind {
            Kind::Unlimited => start,
            Kind::Constant(rate) => dark.after(start, rate.time_for(size.into())),
            Kind::Bucket(tokens) => tokens.take(start, size, dark),
            Kind::Varying(slots) => steps::carry(slots, start, size, dark),
            Kind::Rates(player) => steps::carry(player, start, size, dark),
            Kind::Service(times) => dark.after(start, times.draw()),
            Kind::Trace(replay) => replay.take(now, size, dark),
        };
        self.free
    }

    /// When the last packet taken up has left.
    pub(crate) const fn free(&self) -> Instant {
        self.free
    }

    /// Forgets what was to leave after `at`: the server is free from then on.
    pub(crate) fn flush(&mut self, at: Instant) {
        self.free = self.free.min(at);
        if let Kind::Trace(replay) = &mut self.kind {
            replay.flush(at);
        }
    }
}

/// Packets that are served within `time` on average.
pub(crate) fn packets_within(times: &ServiceTime, time: Duration) -> f64 {
    nanos_f64(time) / nanos_f64(times.mean())
}
