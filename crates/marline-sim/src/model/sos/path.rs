use marline_base::Rng;
use marline_link::{Capacity, Delay, LinkConfig, ServiceTime};
use marline_proto::sched::sos::{Moments, Spacing};

/// Packets from which a sender learns least time and 95th percentile (section 3.2.2).
const SEEN: u32 = 5_000;
/// What is learnt is the mean of so many such senders: one alone may be wrong by an eighth.
const SENDERS: u32 = 40;

/// A link of the model, and what is known of it (ms).
#[derive(Clone, Debug)]
pub(super) struct Way {
    service: ServiceTime,
    pub(super) delay: f64,
    /// The distribution's: its least time is 0.
    pub(super) moments: Moments,
    /// The least of [`SEEN`] packets.
    pub(super) least: f64,
}

impl Way {
    /// `None` if the link has no service time; `rng` is for what is learnt.
    pub(super) fn new(link: &LinkConfig, rng: &mut Rng) -> Option<Self> {
        let Capacity::Service(service) = link.capacity else {
            return None;
        };
        let mut moments = Moments {
            mean: service.mean().as_secs_f64() * 1e3,
            deviation: service.sd().as_secs_f64() * 1e3,
            ..Moments::default()
        };
        let mut least = 0.0;
        for _ in 0..SENDERS {
            let mut spacing = Spacing::default();
            (0..SEEN).for_each(|_| spacing.record(millis(&service, rng)));
            let seen = spacing.moments()?;
            least += seen.min / f64::from(SENDERS);
            moments.p95 += seen.p95 / f64::from(SENDERS);
        }
        let delay = match link.delay {
            Delay::Constant(delay) => delay.as_secs_f64() * 1e3,
            _ => 0.0,
        };
        Some(Self {
            service,
            delay,
            moments,
            least,
        })
    }
}

fn millis(service: &ServiceTime, rng: &mut Rng) -> f64 {
    service.draw(rng).as_nanos() as f64 * 1e-6
}

/// A path that an object is sent over.
pub(super) struct Path<'a> {
    pub(super) way: &'a Way,
    rng: Rng,
    /// When the last packet left the bottleneck (ms).
    free: f64,
}

impl<'a> Path<'a> {
    pub(super) fn new(way: &'a Way, rng: Rng) -> Self {
        Self {
            way,
            rng,
            free: 0.0,
        }
    }

    /// When a packet that is sent now arrives (ms).
    pub(super) fn send(&mut self, now: f64) -> f64 {
        self.free = self.free.max(now) + millis(&self.way.service, &mut self.rng);
        self.free + self.way.delay
    }
}
