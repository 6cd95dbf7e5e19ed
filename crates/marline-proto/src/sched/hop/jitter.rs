//! How much arrivals scatter about departures.

use marline_base::{Duration, Instant};

/// Triples of packets that the scatter remembers: some blocks.
const MEMORY: f64 = 512.0;
/// Before this number of packets nothing is said.
const FEW: f64 = 64.0;
/// Packets sent at most so far apart follow each other through the bottleneck.
const TOGETHER: Duration = Duration::from_millis(1);
/// Bursts that the way of an unqueued packet remembers.
const BURSTS: f64 = 64.0;
/// Arrivals that are looked at together at most.
const MOST: f64 = 12.0;
/// Weight of a stretch in what service is usual,
const USUAL: f64 = 1.0 / 8.0;
/// and by what factor a single one may deviate from it.
const PLAUSIBLE: f64 = 1.7;
/// Expected loss of a packet's own delay at the deadline, in deviations: E[(x)⁺] of a standard
/// normal x.
const AT_THE_END: f64 = 0.398_942_280_401_432_7;

/// The random part of a path's delay behind its bottleneck, learnt from packets that left together.
///
/// Packets that follow each other through the bottleneck leave at even distances as long as the
/// capacity stays. The second difference of their arrivals in the order of sending is then that of
/// their own delays, whose variance it has six times; a change of capacity shows in one of a slot's
/// many. Where packets cannot overtake each other delays are alike and the second differences
/// smaller: what is measured is what disturbs, not what the link draws.
#[derive(Clone, Debug, Default)]
pub(super) struct Jitter {
    /// Mean square of a packet's own delay (s²).
    square: f64,
    /// Mean distance of arrivals (seconds).
    gap: f64,
    triples: f64,
    /// The two packets before, if they came together and arrived.
    before: [Option<(Instant, f64)>; 2],
    /// Usual service time of a bit (seconds).
    service: Option<f64>,
    /// Mean arrival less sending of a packet that waited nowhere (seconds, on two clocks).
    unqueued: Option<(f64, f64)>,
}

impl Jitter {
    /// The next packet in the order of sending: when it was sent, when it arrived by the peer's
    /// clock (seconds), if it did, and whether its burst ends with it.
    pub(super) fn follow(&mut self, sent: Instant, arrived: Option<f64>, ends: bool) {
        let new = arrived.map(|at| (sent, at));
        if let (Some((first, a)), Some((_, b)), Some((_, c))) =
            (self.before[0], self.before[1], new)
            && sent.since(first) <= TOGETHER
        {
            self.triples = (self.triples + 1.0).min(MEMORY);
            let second = c - 2.0 * b + a;
            self.square += (second * second / 6.0 - self.square) / self.triples;
            self.gap += (0.5 * (c - a) - self.gap) / self.triples;
        }
        self.before = [self.before[1], new];
        if ends {
            self.before = [None; 2];
        }
    }

    /// A packet that waited nowhere took this time from its sending to its arrival, on two clocks.
    pub(super) fn unqueued(&mut self, way: f64) {
        let (mean, count) = self.unqueued.unwrap_or((way, 0.0));
        let count = (count + 1.0).min(BURSTS);
        self.unqueued = Some((mean + (way - mean) / count, count));
    }

    /// Mean of that, as far as it is known.
    pub(super) fn way(&self) -> Option<f64> {
        self.unqueued.map(|(mean, _)| mean)
    }

    /// Deviation of a packet's own delay (seconds).
    pub(super) fn deviation(&self) -> f64 {
        libm::sqrt(self.square)
    }

    /// Mean distance of arrivals (seconds).
    pub(super) fn gap(&self) -> f64 {
        self.gap.max(0.0)
    }

    /// Arrivals that have to be looked at together, to see the bottleneck and not the jitter: those
    /// of packets that leave within a deviation. `None` where each shows its departure.
    pub(super) fn group(&self) -> Option<usize> {
        let many = self.deviation() / self.gap();
        // Also of nothing at all.
        if self.triples < FEW || many.is_nan() || many < 1.5 {
            return None;
        }
        Some(libm::round(many.min(MOST)) as usize)
    }

    /// Is it known that each arrival shows its departure?
    pub(super) fn is_even(&self) -> bool {
        self.triples >= FEW && self.group().is_none()
    }

    /// How long the service of `bits` lasted that seems to have lasted `lasted` (seconds): what
    /// jitter has squeezed or stretched beyond belief counts as the most that is believed. A
    /// capacity that changes by more is followed within some stretches.
    pub(super) fn plausible(&mut self, lasted: f64, bits: f64) -> f64 {
        let each = lasted / bits;
        let usual = self.service.unwrap_or(each);
        self.service = Some(usual + USUAL * (each - usual));
        each.clamp(usual / PLAUSIBLE, usual * PLAUSIBLE) * bits
    }

    /// By how much a packet's own delay brings the last packets of a block behind the least delay,
    /// which is `least` on the scale of [`way`](Self::way) (seconds).
    ///
    /// Of a block's packets those count that are there at the deadline: as many as left in time on
    /// average, but for the end of the block, where those that are quicker than the average are
    /// missing.
    pub(super) fn hold_up(&self, least: f64) -> f64 {
        if self.group().is_none() {
            return 0.0;
        }
        let mean = self.way().map_or(0.0, |way| (way - least).max(0.0));
        mean + AT_THE_END * self.deviation()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_base::Rng;

    /// Bursts of 50 packets at 0.3 ms, whose own delay has this deviation (seconds).
    fn bursts(deviation: f64, overtaking: bool, count: u64) -> Jitter {
        let mut rng = Rng::new(7);
        let mut jitter = Jitter::default();
        for burst in 0..count {
            let sent = Instant::from_millis(25 * burst);
            let mut last = 0.0_f64;
            for packet in 0..50 {
                let left = burst as f64 * 25e-3 + f64::from(packet) * 0.3e-3;
                let mut at = left + 10e-3 + deviation * rng.normal();
                if !overtaking {
                    at = at.max(last);
                }
                last = last.max(at);
                jitter.follow(sent, Some(at), packet == 49);
            }
        }
        jitter
    }

    #[test]
    fn second_differences_tell_the_scatter_and_not_the_service() {
        let jitter = bursts(3e-3, true, 40);
        assert!((jitter.deviation() / 3e-3 - 1.0).abs() < 0.15, "{jitter:?}");
        assert!((jitter.gap() / 0.3e-3 - 1.0).abs() < 0.5, "{jitter:?}");
        assert!(jitter.group().is_some_and(|group| group >= 6), "{jitter:?}");
        // What is held back by those before it scatters less, but does.
        let kept = bursts(3e-3, false, 40);
        assert!(
            kept.deviation() < 1e-3 && kept.group().is_some(),
            "{kept:?}"
        );
    }

    #[test]
    fn even_service_has_no_jitter_whatever_its_rate() {
        let mut jitter = bursts(0.0, true, 20);
        assert!(jitter.deviation() < 1e-6);
        // The capacity halves within each burst.
        for burst in 20..40 {
            let sent = Instant::from_millis(25 * burst);
            for packet in 0..50_u32 {
                let left = 0.3e-3 * f64::from(packet.min(30))
                    + 0.6e-3 * f64::from(packet.saturating_sub(30));
                jitter.follow(sent, Some(burst as f64 * 25e-3 + left), packet == 49);
            }
        }
        assert_eq!(jitter.group(), None, "{jitter:?}");
        jitter.unqueued(5.0);
        assert_eq!(jitter.hold_up(1.0), 0.0);
    }

    #[test]
    fn packets_that_did_not_arrive_or_left_apart_tell_nothing() {
        let mut jitter = Jitter::default();
        for packet in 0..1_000_u32 {
            let arrived = (packet % 3 > 0).then(|| f64::from(packet * packet));
            jitter.follow(Instant::from_millis(u64::from(packet)), arrived, false);
            jitter.follow(Instant::from_millis(u64::from(packet)), None, false);
        }
        assert_eq!((jitter.deviation(), jitter.group()), (0.0, None));
    }

    #[test]
    fn the_last_packets_wait_for_the_mean_of_the_jitter() {
        let mut jitter = bursts(3e-3, true, 40);
        for way in [12e-3, 8e-3, 10e-3] {
            jitter.unqueued(way);
        }
        let expected = 7e-3 + AT_THE_END * jitter.deviation();
        assert!((jitter.hold_up(3e-3) - expected).abs() < 1e-9, "{jitter:?}");
    }

    #[test]
    fn a_freak_counts_as_the_most_that_is_believed() {
        let mut jitter = Jitter::default();
        assert_eq!(jitter.plausible(1.0, 100.0), 1.0);
        assert!((jitter.plausible(0.1, 100.0) - 1.0 / PLAUSIBLE).abs() < 1e-9);
        // What stays is believed at last.
        for _ in 0..40 {
            jitter.plausible(0.2, 100.0);
        }
        assert!((jitter.plausible(0.2, 100.0) - 0.2).abs() < 0.01);
    }
}
