use std::collections::VecDeque;

use marline_base::{Duration, Instant};
use marline_link::{ConfigError, Delay, Link, LinkConfig, Verdict};
use marline_proto::sched::capacity::{CapacityForecast, Memory, ServiceMeter, Skip};
use marline_proto::sched::hop::SenderPath;

use super::seconds;

/// A path of the model: its link, what is on its way, and what the sender makes of it.
pub(super) struct Path {
    link: Link,
    delay: Duration,
    /// From the receiver to the sender.
    back: Duration,
    flight: VecDeque<Packet>,
    pub(super) skip: Skip,
    /// The truth that forecasts are held against.
    truth: ServiceMeter,
    forecasts: VecDeque<Forecast>,
    errors: Vec<(f64, CapacityForecast)>,
}

#[derive(Clone, Copy)]
struct Packet {
    sent: Instant,
    /// When it left the bottleneck; `None` if it was lost.
    left: Option<Instant>,
    bits: f64,
}

/// What was forecast of a stretch of time.
#[derive(Clone, Copy)]
struct Forecast {
    from: f64,
    to: f64,
    capacity: CapacityForecast,
}

/// The link's propagation; what varies in it is left out.
pub(super) fn propagation(link: &LinkConfig) -> Duration {
    match link.delay {
        Delay::Constant(delay) => delay,
        _ => Duration::ZERO,
    }
}

impl Path {
    pub(super) fn new(
        link: LinkConfig,
        seed: u64,
        back: Duration,
        memory: Memory,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            delay: propagation(&link),
            link: Link::new(link, seed)?,
            back,
            flight: VecDeque::new(),
            skip: Skip::new(memory),
            truth: ServiceMeter::new(),
            forecasts: VecDeque::new(),
            errors: Vec::new(),
        })
    }

    /// As a sender sees it.
    pub(super) fn seen(&self) -> SenderPath<'_> {
        SenderPath {
            skip: &self.skip,
            delay: self.delay.as_secs_f64(),
            again: f64::INFINITY,
            loss: 0.0,
            scattered: false,
            held: 0.0,
        }
    }

    /// Forgets the queue.
    pub(super) fn empty(&mut self, now: Instant) {
        self.link.set_dark(now, true);
        self.link.set_dark(now, false);
        self.flight.clear();
    }

    /// Sends packets of `size` bytes; answers how many of them arrive until `deadline`.
    pub(super) fn send(&mut self, now: Instant, packets: u32, size: u32, deadline: Instant) -> u32 {
        let bits = f64::from(size) * 8.0;
        let mut in_time = 0;
        for _ in 0..packets {
            let verdict = self.link.offer(now, size);
            let left = match verdict {
                Verdict::Delivered { at, departs, .. } => {
                    in_time += u32::from(at <= deadline);
                    self.truth
                        .on_departure(seconds(now), seconds(departs), bits);
                    Some(departs)
                }
                Verdict::Dropped(_) => None,
            };
            self.flight.push_back(Packet {
                sent: now,
                left,
                bits,
            });
            self.skip.on_sent(seconds(now), bits);
        }
        in_time
    }

    /// Lets the sender know of what arrived early enough to be known at `now`.
    pub(super) fn hear(&mut self, now: Instant) {
        let way = self.delay + self.back;
        // Of what is lost the sender learns by the next packet that arrives.
        let known = |packet: &Packet| packet.left.is_some_and(|left| left + way <= now);
        let Some(last) = self.flight.iter().rposition(known) else {
            return;
        };
        for packet in self.flight.drain(..=last) {
            let came = seconds(packet.sent);
            match packet.left {
                Some(left) => {
                    let heard = seconds(left + way);
                    self.skip
                        .on_departure(heard, came, seconds(left), packet.bits);
                }
                None => self.skip.on_lost(came, packet.bits),
            }
        }
    }

    /// Keeps what is forecast of the time until `deadline`, to be held against what will have been.
    pub(super) fn note_forecast(
        &mut self,
        at: Instant,
        every: f64,
        deadline: Duration,
        counts: bool,
    ) {
        let (from, to) = (seconds(at), seconds(at + deadline - self.delay));
        if let Some(capacity) = self.skip.forecast(every)
            && counts
        {
            self.forecasts.push_back(Forecast { from, to, capacity });
        }
        while let Some(forecast) = self.forecasts.front().copied()
            && forecast.to <= from
        {
            self.forecasts.pop_front();
            let CapacityForecast { mean, sd, .. } = forecast.capacity;
            let seen = self.truth.over(forecast.from, forecast.to);
            if let Some(capacity) = seen.capacity(0.2 * (forecast.to - forecast.from))
                && sd > 0.0
            {
                self.errors
                    .push(((capacity - mean) / sd, forecast.capacity));
            }
        }
    }

    /// Errors of forecasts, in deviations, since the last call.
    pub(super) fn take_errors(&mut self) -> Vec<(f64, CapacityForecast)> {
        std::mem::take(&mut self.errors)
    }
}
