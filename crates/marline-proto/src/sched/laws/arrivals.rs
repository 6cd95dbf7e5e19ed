//! What arrivals on one path were like lately, from arrival times at the receiver.
//!
//! The last packets' delays (arrival by the peer's clock, less departure by ours) give the law of
//! the next one's, D, and of the latest arrival among all that have left, Y, as a delay of the last
//! of them: Z of Theorem 1 with the part of a_{s−δ} in it.
//!
//! * Where packets keep their order, the latest arrival is the last packet's: Y = D.
//! * Where they overtake each other, each delay counts as a draw of its own, and Y is the greatest
//!   of D, D − T, D − 2T, …, with T the time between packets; as many of them as can matter are
//!   joined by Clark's formulas, or the greatest is looked up in what happened.

use alloc::vec::Vec;

use libm::sqrt;
use marline_base::Instant;

use super::gauss::Gauss;
use super::sample::Sample;

/// Packets that are remembered.
const MEMORY: usize = 256;
/// Fewer show nothing.
pub(in crate::sched) const LEAST: usize = 8;
/// A path overtakes if more than one packet in this number arrives before one that left earlier.
const OVERTAKES: usize = 50;
/// Draws that are joined at most.
const LONGEST: usize = 512;

/// The laws as of the last [`Arrivals::refresh`]; delays in µs, relative to [`Arrivals::origin`].
#[derive(Clone, Debug)]
pub(in crate::sched) struct Laws {
    /// A packet's delay.
    pub(in crate::sched) delay: Gauss,
    /// The latest arrival of all that have left, from the departure of the last one.
    pub(in crate::sched) latest: Gauss,
    /// Correlation of the delays of two packets in a row, 0 to 1: 0 where packets overtake each
    /// other; on a path that keeps the order of many packets with random delays it is almost 1.
    pub(in crate::sched) correlation: f64,
    /// The same two laws as they were seen.
    pub(in crate::sched) seen: [Sample; 2],
}

/// The last packets of a path.
#[derive(Debug, Default)]
pub(in crate::sched) struct Arrivals {
    /// Departure and delay (µs), a ring.
    ring: Vec<(u64, f64)>,
    next: usize,
    /// The first delay ever (µs): clocks may be years apart.
    origin: i64,
    laws: Option<Laws>,
}

impl Arrivals {
    /// A packet that left at `sent` arrived at `at_us` on the peer's clock.
    pub(in crate::sched) fn on_arrival(&mut self, sent: Instant, at_us: u64) {
        let delay = at_us as i64 - sent.as_micros() as i64;
        if self.ring.is_empty() {
            self.origin = delay;
        }
        let entry = (sent.as_micros(), (delay - self.origin) as f64);
        if self.ring.len() < MEMORY {
            self.ring.push(entry);
        } else {
            self.ring[self.next] = entry;
        }
        self.next = (self.next + 1) % MEMORY;
    }

    /// What delays are relative to (µs): the peer's clock less ours, and the way.
    pub(in crate::sched) fn origin(&self) -> f64 {
        self.origin as f64
    }

    /// The laws; `None` until a few packets have arrived.
    pub(in crate::sched) fn laws(&self) -> Option<&Laws> {
        self.laws.as_ref()
    }

    /// Learns the laws again.
    pub(in crate::sched) fn refresh(&mut self) {
        if self.ring.len() < LEAST {
            return;
        }
        let mut packets = self.ring.clone();
        // What left at the same time, in a burst, shows no order.
        packets.sort_unstable_by(|a, b| (a.0.cmp(&b.0)).then(a.1.total_cmp(&b.1)));
        let count = packets.len() as f64;
        let mean = packets.iter().map(|p| p.1).sum::<f64>() / count;
        let squares = packets.iter().map(|p| (p.1 - mean) * (p.1 - mean));
        let var = squares.sum::<f64>() / (count - 1.0);
        let delay = Gauss { mean, var };
        let arrival = |p: &(u64, f64)| p.0 as f64 + p.1;
        let inversions = packets
            .windows(2)
            .filter(|pair| arrival(&pair[1]) < arrival(&pair[0]));
        let overtakes = inversions.count() * OVERTAKES > packets.len();
        let products = packets
            .windows(2)
            .map(|p| (p[0].1 - mean) * (p[1].1 - mean));
        let covariance = products.sum::<f64>() / (count - 1.0);
        let correlation = match (overtakes, var > 0.0) {
            // Of the packets that arrived last, those that left early took long: what looks like a
            // trend is only that.
            (true, _) => 0.0,
            (false, true) => (covariance / var).clamp(0.0, 1.0),
            (false, false) => 1.0,
        };
        let first = packets.first().map_or(0, |p| p.0);
        let spacing = packets.last().map_or(0, |p| p.0 - first) as f64 / (count - 1.0);
        let mut delays: Vec<f64> = packets.iter().map(|p| p.1).collect();
        let latest = match overtakes {
            true => greatest(delay, spacing),
            false => delay,
        };
        let mut peak = f64::NEG_INFINITY;
        let mut peaks = Vec::with_capacity(packets.len());
        for packet in &packets {
            peak = arrival(packet).max(peak);
            peaks.push(peak - packet.0 as f64);
        }
        // The first peaks know too little of what left before.
        peaks.drain(..packets.len() / 4);
        self.laws = Some(Laws {
            delay,
            latest,
            correlation,
            seen: [Sample::of(&mut delays), Sample::of(&mut peaks)],
        });
    }
}

/// The greatest of `delay`, and the same one, two, … times `spacing` (µs) earlier.
fn greatest(delay: Gauss, spacing: f64) -> Gauss {
    let mut greatest = delay;
    for earlier in 1..LONGEST {
        let draw = delay.shifted(-(earlier as f64) * spacing);
        // Three deviations below it moves nothing any more.
        if draw.mean + 3.0 * sqrt(draw.var) < greatest.mean {
            break;
        }
        greatest = greatest.max(draw, 0.0);
    }
    greatest
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_base::Rng;

    const EPOCH: u64 = 1_000_000_000;

    fn seen(mut delay: impl FnMut() -> f64, overtaking: bool) -> (Arrivals, Laws) {
        let mut arrivals = Arrivals::default();
        let mut last = 0.0_f64;
        for n in 0..MEMORY as u64 {
            let sent = 1_200 * n;
            let mut at = sent as f64 + delay();
            if !overtaking {
                at = at.max(last);
            }
            last = at;
            arrivals.on_arrival(Instant::from_micros(sent), EPOCH + at as u64);
        }
        arrivals.refresh();
        let laws = arrivals.laws().unwrap().clone();
        (arrivals, laws)
    }

    #[test]
    fn a_steady_path_has_its_delay_and_no_spread() {
        let (arrivals, laws) = seen(|| 50_000.0, false);
        assert_eq!(arrivals.origin() + laws.delay.mean, EPOCH as f64 + 50_000.0);
        assert_eq!((laws.delay.var, laws.correlation), (0.0, 1.0));
        assert_eq!(laws.latest, laws.delay);
    }

    #[test]
    fn the_latest_of_overtaking_packets_is_the_greatest_of_many_draws() {
        let mut rng = Rng::new(4);
        let mut draw = move || (50_000.0 + 20_000.0 * rng.normal()).max(1_000.0);
        let (_, laws) = seen(&mut draw, true);
        assert!(laws.correlation < 0.2, "{laws:?}");
        // By brute force: the latest of 400 packets, seen from the last one's departure.
        let (mut rng, mut sum) = (Rng::new(5), 0.0);
        let trials = 2_000;
        for _ in 0..trials {
            let arrival = |i: u32| 50_000.0 + 20_000.0 * rng.normal() - 1_200.0 * f64::from(i);
            sum += (0..400).map(arrival).fold(f64::MIN, f64::max);
        }
        let truth = sum / f64::from(trials);
        let excess = laws.latest.mean - laws.delay.mean + 50_000.0;
        // The moments come from 256 packets, and Clark's formulas are exact for two.
        assert!((excess - truth).abs() < 4_000.0, "{excess} and {truth} µs");
        let mean = laws.seen[1].mean() - laws.seen[0].mean() + 50_000.0;
        assert!((mean - truth).abs() < 6_000.0, "{mean} and {truth} µs");
    }

    #[test]
    fn packets_that_are_reported_as_they_arrive_are_still_independent() {
        // 2000 packets in the order of their arrival: of the last ones, the oldest are the latest.
        let mut rng = Rng::new(6);
        let mut packets: Vec<(u64, u64)> = (0..2_000)
            .map(|n| {
                let sent = 1_200 * n;
                let delay = (50_000.0 + 100_000.0 * rng.normal()).max(1_000.0);
                (sent + delay as u64, sent)
            })
            .collect();
        packets.sort_unstable();
        let mut arrivals = Arrivals::default();
        for &(at, sent) in packets.iter().take(1_500) {
            arrivals.on_arrival(Instant::from_micros(sent), EPOCH + at);
        }
        arrivals.refresh();
        assert_eq!(arrivals.laws().unwrap().correlation, 0.0);
    }

    #[test]
    fn jitter_that_keeps_the_order_is_not_overtaking() {
        let mut rng = Rng::new(4);
        let mut draw = move || (50_000.0 + 20_000.0 * rng.normal()).max(1_000.0);
        let (_, laws) = seen(&mut draw, false);
        assert!(laws.correlation > 0.8, "{laws:?}");
        assert_eq!(laws.latest, laws.delay);
    }

    #[test]
    fn a_burst_that_leaves_at_once_and_keeps_its_order_is_not_overtaking() {
        let mut arrivals = Arrivals::default();
        for n in 0..3 * MEMORY as u64 / 2 {
            // Bursts of 100 that the bottleneck spreads over 60 ms.
            let sent = 70_000 * (n / 100);
            let at = sent + 50_000 + 600 * (n % 100);
            arrivals.on_arrival(Instant::from_micros(sent), EPOCH + at);
        }
        arrivals.refresh();
        let laws = arrivals.laws().unwrap();
        assert!(laws.correlation > 0.8, "{laws:?}");
    }

    #[test]
    fn a_few_packets_tell_nothing() {
        let mut arrivals = Arrivals::default();
        for n in 0..LEAST as u64 - 1 {
            arrivals.on_arrival(Instant::from_micros(n), n + 5);
        }
        arrivals.refresh();
        assert!(arrivals.laws().is_none());
    }
}
