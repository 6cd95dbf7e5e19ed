//! Packets that come whatever becomes of them.

use marline_base::{Duration, Instant, Rate, Rng};
use marline_link::{Link, Verdict};

use crate::measure::{Measure, Meter};

/// When the next packet comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arrivals {
    /// At fixed intervals.
    Constant,
    /// At exponential intervals.
    Poisson,
    /// At fixed intervals during exponential on-times with these means.
    OnOff {
        /// Mean time on.
        on: Duration,
        /// Mean time off.
        off: Duration,
    },
}

/// A source of packets of one size.
#[derive(Debug)]
pub(super) struct Raw {
    arrivals: Arrivals,
    /// Time that a packet takes at the source's rate.
    every: Duration,
    size: u32,
    rng: Rng,
    next: Instant,
    /// End of the present on-time.
    on_until: Instant,
    stops: Instant,
}

impl Raw {
    pub(super) fn new(
        (arrivals, rate, size): (Arrivals, Rate, u32),
        (starts, stops): (Instant, Instant),
        rng: Rng,
    ) -> Self {
        let mut source = Self {
            arrivals,
            every: rate.time_for(u64::from(size)),
            size,
            rng,
            next: starts,
            on_until: starts,
            stops,
        };
        match arrivals {
            Arrivals::Constant => {}
            Arrivals::Poisson => source.next = starts + source.draw(source.every),
            Arrivals::OnOff { on, .. } => source.on_until = starts + source.draw(on),
        }
        source
    }

    fn draw(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(self.rng.exponential())
    }

    /// When it sends next; `None` when it has stopped.
    pub(super) fn next_at(&self) -> Option<Instant> {
        (self.next < self.stops).then_some(self.next)
    }

    /// Offers the link the packet that is due.
    pub(super) fn send(&mut self, now: Instant, link: &mut Link, meter: &mut Meter) {
        let verdict = link.offer(now, self.size);
        let arrival = verdict.arrival();
        meter.trial(Measure::CrossLost, now, arrival.is_none());
        if let Verdict::Delivered { at, .. } = verdict {
            meter.delay(Measure::CrossDelay, now, at);
            meter.delivered(now, u64::from(self.size));
        }
        let gap = match self.arrivals {
            Arrivals::Poisson => self.draw(self.every),
            Arrivals::Constant | Arrivals::OnOff { .. } => self.every,
        };
        self.next += gap;
        if let Arrivals::OnOff { on, off } = self.arrivals {
            while self.next >= self.on_until {
                self.next = self.next.max(self.on_until) + self.draw(off);
                self.on_until = self.next + self.draw(on);
            }
        }
    }
}
