use marline_base::Rng;
use marline_link::{Capacity, Delay, LinkConfig, ServiceTime, Trace};
use marline_proto::sched::sos::{Moments, Spacing};

/// Packets from which a sender learns least time and 95th percentile (section 3.2.2).
const SEEN: u32 = 5_000;
/// What is learnt of a distribution is the mean of this number of such senders: one alone may be
/// wrong by an eighth.
const SENDERS: u32 = 40;

/// Where the times of packets come from.
#[derive(Clone, Debug)]
enum Times {
    /// Drawn one by one.
    Drawn(ServiceTime),
    /// The gaps between recorded opportunities, each for one packet.
    Recorded(Trace),
}

/// A link of the model, and what is known of it (ms).
#[derive(Clone, Debug)]
pub(super) struct Way {
    times: Times,
    pub(super) delay: f64,
    /// The distribution's: its least time is 0. Of a recording, that of all of it.
    pub(super) moments: Moments,
    /// The least of [`SEEN`] packets.
    pub(super) least: f64,
}

impl Way {
    /// `None` if the link has neither a service time nor a recording; `rng` is for what is learnt.
    pub(super) fn new(link: &LinkConfig, rng: &mut Rng) -> Option<Self> {
        let (times, moments, least) = match &link.capacity {
            Capacity::Service(service) => {
                let (moments, least) = learnt(service, rng)?;
                (Times::Drawn(*service), moments, least)
            }
            Capacity::Trace(trace) => {
                let all = trace.opportunities() as u64;
                let moments = seen(trace, all, all)?;
                (Times::Recorded(trace.clone()), moments, moments.min)
            }
            _ => return None,
        };
        let delay = match link.delay {
            Delay::Constant(delay) => delay.as_secs_f64() * 1e3,
            _ => 0.0,
        };
        Some(Self {
            times,
            delay,
            moments,
            least,
        })
    }

    /// Does what is known of it depend on when one looks?
    pub(super) fn is_recorded(&self) -> bool {
        matches!(self.times, Times::Recorded(_))
    }
}

/// What senders learn of a distribution, and the least time that they see.
fn learnt(service: &ServiceTime, rng: &mut Rng) -> Option<(Moments, f64)> {
    let mut moments = given(service);
    let mut least = 0.0;
    for _ in 0..SENDERS {
        let mut spacing = Spacing::default();
        (0..SEEN).for_each(|_| spacing.record(millis(service, rng)));
        let seen = spacing.moments()?;
        least += seen.min / f64::from(SENDERS);
        moments.p95 += seen.p95 / f64::from(SENDERS);
    }
    Some((moments, least))
}

/// Mean, deviation and skewness of a distribution (ms).
fn given(service: &ServiceTime) -> Moments {
    let (mean, sd) = (service.mean(), service.sd());
    let (mean, sd) = (mean.as_secs_f64() * 1e3, sd.as_secs_f64() * 1e3);
    let of = |mean: f64, deviation: f64, skewness: f64| Moments {
        mean,
        deviation,
        skewness,
        ..Moments::default()
    };
    let variation = sd / mean.max(f64::MIN_POSITIVE);
    match service {
        _ if sd == 0.0 => of(mean, 0.0, 0.0),
        ServiceTime::Gamma { .. } => of(mean, sd, 2.0 * variation),
        ServiceTime::LogNormal { .. } => of(mean, sd, variation * (variation * variation + 3.0)),
        // Mean and deviation are those before it is cut at 0.
        ServiceTime::Normal { .. } => {
            let a = mean / sd;
            let density = libm::exp(-0.5 * a * a) / libm::sqrt(std::f64::consts::TAU);
            let positive = 0.5 * libm::erfc(-a * std::f64::consts::FRAC_1_SQRT_2);
            let first = a * positive + density;
            let second = (a * a + 1.0) * positive + a * density;
            let third = (a * a + 3.0) * a * positive + (a * a + 2.0) * density;
            let variance = second - first * first;
            let cubes = third - 3.0 * first * second + 2.0 * first * first * first;
            let deviation = libm::sqrt(variance);
            of(sd * first, sd * deviation, cubes / (variance * deviation))
        }
    }
}

/// What a sender knows that saw the `count` packets before opportunity `next`.
fn seen(trace: &Trace, next: u64, count: u64) -> Option<Moments> {
    // Whole loops more change nothing, and there is always something before.
    let next = next + trace.opportunities() as u64 * count.div_ceil(trace.opportunities() as u64);
    let mut spacing = Spacing::of(count as usize);
    for number in next - count..next {
        spacing.record(gap(trace, number));
    }
    spacing.moments()
}

/// From the opportunity before this one to it (ms).
fn gap(trace: &Trace, number: u64) -> f64 {
    // The first of all has the loop before it, like those of later loops.
    let number = number + trace.opportunities() as u64;
    let gap = trace.time(number).since(trace.time(number - 1));
    gap.as_nanos() as f64 * 1e-6
}

fn millis(service: &ServiceTime, rng: &mut Rng) -> f64 {
    service.draw(rng).as_nanos() as f64 * 1e-6
}

/// A path that an object is sent over.
pub(super) struct Path<'a> {
    pub(super) way: &'a Way,
    rng: Rng,
    /// The next opportunity, if they are recorded.
    next: u64,
    /// When the last packet left the bottleneck (ms).
    free: f64,
}

impl<'a> Path<'a> {
    /// A recording begins at an opportunity that is drawn.
    pub(super) fn new(way: &'a Way, mut rng: Rng) -> Self {
        let next = match &way.times {
            Times::Drawn(_) => 0,
            Times::Recorded(trace) => rng.below(trace.opportunities() as u64),
        };
        Self {
            way,
            rng,
            next,
            free: 0.0,
        }
    }

    /// The way as a sender knows it that saw the last [`SEEN`] packets before now.
    pub(super) fn known(&self) -> Way {
        let moments = match &self.way.times {
            Times::Drawn(_) => None,
            Times::Recorded(trace) => seen(trace, self.next, SEEN.into()),
        };
        let mut way = self.way.clone();
        if let Some(moments) = moments {
            (way.least, way.moments) = (moments.min, moments);
        }
        way
    }

    /// When a packet that is sent now arrives (ms).
    pub(super) fn send(&mut self, now: f64) -> f64 {
        self.serve(now) + self.way.delay
    }

    /// When a packet that is sent now has left the bottleneck (ms).
    pub(super) fn serve(&mut self, now: f64) -> f64 {
        let time = match &self.way.times {
            Times::Drawn(service) => millis(service, &mut self.rng),
            Times::Recorded(trace) => {
                self.next += 1;
                gap(trace, self.next - 1)
            }
        };
        self.free = self.free.max(now) + time;
        self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_that_are_given_are_those_of_draws() {
        let ms = Duration::from_millis;
        for service in [
            ServiceTime::Gamma {
                mean: ms(10),
                sd: ms(8),
            },
            ServiceTime::LogNormal {
                mean: ms(10),
                sd: ms(3),
            },
            // A sixth of it is cut off.
            ServiceTime::Normal {
                mean: ms(10),
                sd: ms(10),
            },
            ServiceTime::Normal {
                mean: ms(10),
                sd: ms(0),
            },
        ] {
            let mut rng = Rng::new(5);
            let mut spacing = Spacing::of(300_000);
            (0..300_000).for_each(|_| spacing.record(millis(&service, &mut rng)));
            let (given, seen) = (given(&service), spacing.moments().unwrap());
            let near = |a: f64, b: f64, within: f64| (a - b).abs() <= within;
            assert!(near(given.mean, seen.mean, 0.08), "{given:?} {seen:?}");
            assert!(
                near(given.deviation, seen.deviation, 0.1),
                "{given:?} {seen:?}"
            );
            assert!(
                near(given.skewness, seen.skewness, 0.1),
                "{given:?} {seen:?}"
            );
        }
    }

    #[test]
    fn recorded_gaps_are_served_in_their_order_and_known_before() {
        let trace = Trace::parse("t", "2\n3\n10\n").unwrap();
        let link = LinkConfig {
            capacity: Capacity::Trace(trace),
            delay: Delay::Constant(Duration::from_millis(5)),
            ..LinkConfig::default()
        };
        let way = Way::new(&link, &mut Rng::new(1)).unwrap();
        assert!(way.is_recorded());
        // A loop of 10 ms has three packets, after 2, 1 and 7 ms.
        assert!((way.moments.mean - 10.0 / 3.0).abs() < 1e-9);
        assert_eq!((way.moments.min, way.least), (1.0, 1.0));
        let mut path = Path::new(&way, Rng::new(2));
        let known = path.known();
        assert!((known.moments.mean - 10.0 / 3.0).abs() < 0.01);
        let times: Vec<f64> = (0..4).map(|_| path.send(0.0)).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let cycle = [2.0, 1.0, 7.0, 2.0, 1.0, 7.0];
        assert!(cycle.windows(3).any(|three| three == gaps), "{gaps:?}");
    }
}
