//! All that is estimated of one path, from what was sent and what arrived.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::{Backlog, Bank, Batch, CapacityForecast, Kalman, Persistence, ServiceMeter};
use crate::path::least::Least;

/// A sample needs this part of a block's interval in which the bottleneck was at work.
const SEEN: f64 = 0.02;
/// A glimpse is at most this part of a block's interval, and needs as much as a sample.
const GLIMPSE: f64 = 0.25;
/// For this number of intervals something must have waited, beyond those in which nothing can be
/// known, before silence says that the path carries nothing: the last packet of a block may just be
/// lost, which takes some time to notice.
const SILENT: f64 = 2.0;
/// Whole intervals until what happened is known, at most: blocks every 2 ms over satellites.
const MOST_BEHIND: f64 = 512.0;
/// The least delay of reports of departures is that of the last one or two windows of this many
/// seconds: a route may become longer at any time.
const LATELY: f64 = 0.5;
/// Gaps between packets that show a rate: as many as a line through scattered arrivals needs.
const ENOUGH: u32 = 3;
/// Batches that are kept apart; more are joined.
const MOST_BATCHES: usize = 256;
/// Backlogs whose capacity is not known yet. The oldest is dropped, and nothing is learnt from it.
const MOST_PENDING: usize = 64;

/// How samples become a forecast.
#[derive(Clone, Debug)]
pub enum Memory {
    /// Several memories, the best of which answers.
    Bank(Box<Bank>),
    /// The paper's filter.
    Kalman(Kalman),
    /// Nothing is estimated: the truth, for experiments that separate estimation from scheduling.
    Given(CapacityForecast),
}

impl Memory {
    /// A bank; how far ahead it looks follows from how late departures are reported. At first
    /// between the newest whole interval and the one that is planned lies one that is not known
    /// yet.
    pub fn bank() -> Self {
        Self::Bank(Box::new(Bank::new(2)))
    }
}

/// A path's estimator: capacity samples, their forecast, and the backlog at the bottleneck.
///
/// Times are seconds on one scale: when a packet came to the bottleneck (it was sent, give or take
/// a constant), and when it left (it arrived, less the least that a packet took).
#[derive(Clone, Debug)]
pub struct Skip {
    meter: ServiceMeter,
    memory: Memory,
    persistence: Persistence,
    /// What is not known to have left, in the order of sending.
    batches: Vec<Batch>,
    /// Least time from a departure until it is reported, and when the last report came.
    lag: Least<f64, f64>,
    heard: f64,
    /// Until when departures are known, beyond what was measured.
    progress: f64,
    pending: VecDeque<Unseen>,
    /// Something was lost: the next departure does not show how long it took.
    gap: bool,
    /// Departures are known except for a constant.
    relative: bool,
    passed: Passed,
}

/// Packets in a row. They show how much the bottleneck carries at least: as much as came.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    /// When the first and the last of them left.
    first: f64,
    last: f64,
    /// Those after the first, and their bits.
    count: u32,
    bits: f64,
    /// The highest rate (bit/s) since the last block.
    rate: f64,
}

impl Passed {
    fn begin(&mut self, left: f64) {
        *self = Self {
            first: left,
            last: left,
            rate: self.rate,
            ..Self::default()
        };
    }

    fn go_on(&mut self, left: f64, bits: f64) {
        self.count += 1;
        self.bits += bits;
        self.last = self.last.max(left);
        let lasts = self.last - self.first;
        if self.count >= ENOUGH && lasts > 0.0 {
            self.rate = self.rate.max(self.bits / lasts);
        }
    }

    fn take(&mut self) -> Option<f64> {
        let rate = core::mem::take(&mut self.rate);
        (rate > 0.0).then_some(rate)
    }
}

/// A stretch of time in which the capacity is not observed.
#[derive(Clone, Copy, Debug)]
struct Unseen {
    from: f64,
    to: f64,
    /// The glimpse before it, in deviations of the forecast.
    glimpse: Option<f64>,
    forecast: CapacityForecast,
}

impl Skip {
    /// An estimator of a path about which nothing is known.
    pub fn new(memory: Memory) -> Self {
        Self {
            meter: ServiceMeter::new(),
            memory,
            persistence: Persistence::new(),
            batches: Vec::new(),
            lag: Least::default(),
            heard: f64::NEG_INFINITY,
            progress: f64::NEG_INFINITY,
            pending: VecDeque::new(),
            gap: false,
            relative: false,
            passed: Passed::default(),
        }
    }

    /// The same where departures are known except for a constant, as from arrivals less the least
    /// that a packet took. Then a packet that came to an idle bottleneck seems to take no time, and
    /// is not measured.
    pub fn relative(memory: Memory) -> Self {
        Self {
            relative: true,
            ..Self::new(memory)
        }
    }

    /// What is known of the path, for who sends other packets over it from now on.
    #[must_use]
    pub fn heir(&self) -> Self {
        Self {
            batches: Vec::new(),
            pending: VecDeque::new(),
            gap: true,
            passed: Passed::default(),
            ..self.clone()
        }
    }

    /// Packets of `bits` in all came to the bottleneck.
    pub fn on_sent(&mut self, came: f64, bits: f64) {
        let full = self.batches.len() >= MOST_BATCHES;
        match self.batches.last_mut() {
            Some(last) if full || last.came == came => last.bits += bits,
            _ => self.batches.push(Batch { came, bits }),
        }
    }

    /// At `heard` it became known that a packet that came at `came` had left at `left`. In the
    /// order of departure.
    pub fn on_departure(&mut self, heard: f64, came: f64, left: f64, bits: f64) {
        self.measure(heard, came, left, bits);
        self.on_gone(came, bits);
    }

    /// The same of what is no longer waited for ([`on_gone`](Self::on_gone)).
    pub fn measure(&mut self, heard: f64, came: f64, left: f64, bits: f64) {
        // What came with one that took no time waited for it.
        let idle = self.relative && self.meter.last().is_none_or(|last| last < came);
        let gap = core::mem::take(&mut self.gap);
        match gap {
            true => self.passed.begin(left),
            false => self.passed.go_on(left, bits),
        }
        match gap || idle {
            true => self.meter.skip(left),
            false => self.meter.on_departure(came, left, bits),
        }
        self.hear(heard, left);
    }

    /// The same of a stretch in which `bits` were served without a pause, where single packets show
    /// nothing: at `heard` it became known that one had left at `first` and, after them, one at
    /// `last`.
    pub fn on_stretch(&mut self, heard: f64, first: f64, last: f64, bits: f64) {
        self.gap = false;
        self.meter.skip(first);
        self.meter.on_departure(first, last, bits);
        self.on_progress(last);
        self.hear(heard, first);
    }

    /// At `heard` it became known what had left at `left`.
    fn hear(&mut self, heard: f64, left: f64) {
        if heard.is_finite() && left.is_finite() {
            self.lag.note(heard, LATELY, (heard - left).max(0.0));
        }
        self.heard = self.heard.max(heard);
    }

    /// All has left the bottleneck that was to leave until then, although it cannot be measured
    /// yet.
    pub fn on_progress(&mut self, left: f64) {
        self.progress = self.progress.max(left);
    }

    /// A packet that came at `came` does not wait any more.
    pub fn on_gone(&mut self, came: f64, bits: f64) {
        // First in, first out: what came before has left, or was lost, whether reported or not.
        let older = self.batches.partition_point(|batch| batch.came < came);
        self.batches.drain(..older);
        self.forget(came, bits);
    }

    /// A packet that came at `came` was lost, or its departure is not known.
    pub fn on_lost(&mut self, came: f64, bits: f64) {
        self.interrupt();
        self.forget(came, bits);
    }

    /// The next departure does not show how long it took, because of something before it nothing is
    /// known.
    pub fn interrupt(&mut self) {
        self.gap = true;
    }

    fn forget(&mut self, came: f64, bits: f64) {
        let found = self.batches.iter().rposition(|batch| batch.came <= came);
        if let Some(index) = found {
            self.batches[index].bits -= bits;
            if self.batches[index].bits <= 0.0 {
                self.batches.remove(index);
            }
        }
    }

    /// A block is written at `now`, and such blocks come `every` seconds: takes the sample of the
    /// last whole interval that can be known.
    pub fn on_block(&mut self, now: f64, every: f64) {
        self.settle(every);
        let passed = self.passed.take();
        let to = now - every * self.behind(every);
        let from = to - every;
        let seen = self.meter.over(from, to);
        let silent = || {
            let long = from - SILENT * every;
            let waits = self.batches.first().is_some_and(|batch| batch.came < long);
            // A path about which nothing is known is not known to carry nothing. Nor is one that
            // still reports: its way became longer.
            let known = self.forecast(every).is_some() && self.heard < now - SILENT * every;
            known && waits && self.meter.last().is_some_and(|last| last < from)
        };
        let sample = match seen.capacity(SEEN * every) {
            None if silent() => Some(0.0),
            // Small blocks may never fill a path: that it carries what came is better than nothing.
            None if self.forecast(every).is_none() => passed,
            sample => sample,
        };
        if let Some(capacity) = sample {
            let ahead = self.behind(every) as usize + 1;
            match &mut self.memory {
                Memory::Bank(bank) => {
                    bank.look(ahead);
                    bank.update(capacity);
                }
                Memory::Kalman(kalman) => kalman.update(capacity),
                Memory::Given(_) => {}
            }
        }
    }

    /// Whole intervals until what happened is known; what is missing of a part does not matter.
    fn behind(&self, every: f64) -> f64 {
        match self.lag.get() {
            Some(lag) => libm::ceil(lag / every - GLIMPSE).clamp(1.0, MOST_BEHIND),
            None => 1.0,
        }
    }

    /// What is expected of the interval that begins now; `None` before the first sample.
    pub fn forecast(&self, every: f64) -> Option<CapacityForecast> {
        match &self.memory {
            Memory::Bank(bank) => bank.forecast(),
            Memory::Kalman(kalman) => {
                let forecast = kalman.forecast(self.behind(every) as u32, 1);
                kalman.has_samples().then_some(forecast)
            }
            Memory::Given(forecast) => Some(*forecast),
        }
    }

    /// How the forecast comes about, in a word, for status and metrics.
    pub fn mode(&self) -> &'static str {
        match &self.memory {
            Memory::Bank(_) => "bank",
            Memory::Kalman(kalman) => kalman.mode().name(),
            Memory::Given(_) => "given",
        }
    }

    /// Bits that came before `at` and will wait at the bottleneck still at `at`, by what is known
    /// at `now`. Blocks come `every` seconds.
    ///
    /// Between the last departure reported and `at` the capacity was not observed. It is the
    /// forecast, corrected by the last glimpse as far as glimpses have predicted what follows them.
    pub fn backlog(&self, at: f64, now: f64, every: f64) -> Backlog {
        let older = self.before(at);
        let Some(unseen) = self.unseen(at, now, every) else {
            return Backlog::known(older.iter().map(|batch| batch.bits).sum());
        };
        let CapacityForecast { mean, sd, .. } = unseen.forecast;
        let (shift, left) = match unseen.glimpse {
            Some(glimpse) => self.persistence.after(glimpse),
            None => (0.0, 1.0),
        };
        Backlog::unseen(older, unseen.from, at, mean + sd * shift, sd * left)
    }

    /// Learns, once it has been seen, what the capacity was on which the [`backlog`](Self::backlog)
    /// of the same times depends. Call once a block, when it is planned.
    pub fn expect(&mut self, at: f64, now: f64, every: f64) {
        if let Some(unseen) = self.unseen(at, now, every)
            && unseen.glimpse.is_some()
        {
            if self.pending.len() == MOST_PENDING {
                self.pending.pop_front();
            }
            self.pending.push_back(unseen);
        }
    }

    fn before(&self, at: f64) -> &[Batch] {
        &self.batches[..self.batches.partition_point(|batch| batch.came < at)]
    }

    /// The stretch until `at` in which the bottleneck works on what waits without being seen.
    fn unseen(&self, at: f64, now: f64, every: f64) -> Option<Unseen> {
        let oldest = self.before(at).first()?.came;
        let forecast = self.forecast(every)?;
        let known = self.lag.get().map_or(oldest, |lag| now - lag);
        let near = known - GLIMPSE * every;
        // Without a departure for long it is not the capacity that is uncertain but the link.
        let last = self.meter.last().unwrap_or(oldest).max(self.progress);
        let glimpsed = self.meter.over((at - every).max(near), known);
        let glimpse = glimpsed.capacity(0.5 * SEEN * every);
        Some(Unseen {
            from: oldest.max(last).max(near),
            to: at,
            glimpse: glimpse
                .filter(|_| forecast.sd > 0.0)
                .map(|capacity| (capacity - forecast.mean) / forecast.sd),
            forecast,
        })
    }

    /// Learns from backlogs that have been seen through since.
    fn settle(&mut self, every: f64) {
        let last = self.meter.last().unwrap_or(f64::NEG_INFINITY);
        while let Some(pending) = self.pending.front().copied() {
            if pending.to > last {
                return;
            }
            self.pending.pop_front();
            let seen = self.meter.over(pending.from, pending.to);
            let CapacityForecast { mean, sd, .. } = pending.forecast;
            if let (Some(capacity), Some(glimpse)) = (seen.capacity(SEEN * every), pending.glimpse)
            {
                self.persistence.observe(glimpse, (capacity - mean) / sd);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const EVERY: f64 = 25e-3;

    /// Bursts of 60 packets of 12 000 bit every 25 ms over capacities that change with the slot;
    /// what left is reported 25 ms later. Calls `look` at each block with the capacity of the slot
    /// before.
    fn run(capacities: &[f64], memory: Memory, mut look: impl FnMut(usize, &mut Skip, f64)) {
        let mut skip = Skip::new(memory);
        let mut free = 0.0_f64;
        let mut flight: VecDeque<(f64, f64)> = VecDeque::new();
        for (n, capacity) in capacities.iter().enumerate() {
            let at = n as f64 * EVERY;
            while let Some((came, left)) = flight.front().copied() {
                if left + 25e-3 > at + 2e-3 {
                    break;
                }
                flight.pop_front();
                skip.on_departure(left + 25e-3, came, left, 12_000.0);
            }
            skip.on_block(at, EVERY);
            look(n, &mut skip, at);
            skip.on_sent(at, 60.0 * 12_000.0);
            for _ in 0..60 {
                let start = free.max(at);
                let slot = (start / EVERY + 1e-9) as usize;
                let rate = capacities.get(slot).unwrap_or(capacity);
                free = start + 12_000.0 / rate;
                flight.push_back((at, free));
            }
        }
    }

    #[test]
    fn two_milliseconds_of_the_last_slot_tell_the_backlog() {
        // 20 and 40 Mb/s in turn: in a slow slot 41 or 42 packets leave and some stay behind.
        let slots: Vec<f64> = (0..400)
            .map(|n| if n % 2 == 0 { 40e6 } else { 20e6 })
            .collect();
        let mut spread = 0.0_f64;
        run(&slots, Memory::bank(), |n, skip, at| {
            let backlog = skip.backlog(at, at + 2e-3, EVERY);
            skip.expect(at, at + 2e-3, EVERY);
            if n > 250 {
                let packets = backlog.mean() / 12_000.0;
                let expected = if n % 2 == 0 { 60.0 - 41.7 } else { 0.0 };
                assert!((packets - expected).abs() < 3.0, "{n}: {packets}");
                let low = backlog
                    .nodes()
                    .iter()
                    .map(|(bits, _)| *bits)
                    .fold(f64::INFINITY, f64::min);
                spread = spread.max(backlog.mean() - low);
            }
        });
        // A packet that crosses into the next slot blurs the glimpse; without it there would be 23.
        assert!(spread < 8.0 * 12_000.0, "{spread}");
    }

    /// The rate (bit/s) that is expected after eight blocks of four packets of 12 000 bit, of which
    /// these are the times (seconds into the block) at which they come and leave.
    fn after_small_blocks(packets: [(f64, f64); 4]) -> f64 {
        let mut skip = Skip::relative(Memory::bank());
        for block in 0..8 {
            let at = f64::from(block) * EVERY;
            skip.on_block(at, EVERY);
            skip.interrupt();
            for (came, left) in packets {
                skip.on_departure(at + 40e-3, at + came, at + left, 12_000.0);
            }
        }
        skip.forecast(EVERY).expect("something passed").mean
    }

    #[test]
    fn a_path_that_is_never_filled_is_known_by_what_passed() {
        // Each finds the bottleneck idle.
        let mean = after_small_blocks([0.0, 1e-3, 2e-3, 3e-3].map(|at| (at, at)));
        assert!((mean / 12e6 - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn what_came_together_waited_for_each_other() {
        // How long the first took is not known.
        let mean = after_small_blocks([0.0, 0.5e-3, 1e-3, 1.5e-3].map(|left| (0.0, left)));
        assert!((mean / 24e6 - 1.0).abs() < 0.01, "{mean}");
    }

    #[test]
    fn silence_is_a_sample_of_nothing() {
        let mut slots = vec![40e6; 40];
        slots.extend([1.0; 12]);
        let mut outage = false;
        run(&slots, Memory::Kalman(Kalman::new(0.97)), |n, skip, _| {
            if n == 39 {
                let forecast = skip.forecast(EVERY).unwrap();
                assert!((forecast.mean / 40e6 - 1.0).abs() < 0.01, "{forecast:?}");
            }
            outage |= skip.mode() == "outage";
        });
        assert!(outage);
    }

    #[test]
    fn a_lost_last_packet_is_no_outage() {
        let mut skip = Skip::relative(Memory::bank());
        // Blocks of four packets every 25 ms, 10 ms on their way; of the second block the last is
        // lost, which is noticed 80 ms later.
        for block in 0..6 {
            let at = f64::from(block) * EVERY;
            skip.on_block(at, EVERY);
            if block >= 3 {
                let forecast = skip.forecast(EVERY).unwrap();
                assert!(forecast.mean > 30e6, "{block}: {forecast:?}");
            }
            skip.on_sent(at, 48_000.0);
            let heard = if block == 1 { 3 } else { 4 };
            for packet in 1..=heard {
                let left = at + 0.3e-3 * f64::from(packet);
                skip.on_departure(left + 20e-3, at, left, 12_000.0);
            }
        }
        // Of a path that never reported anything nothing is known, however long.
        let mut unknown = Skip::relative(Memory::bank());
        unknown.on_sent(0.0, 12_000.0);
        for block in 1..40 {
            unknown.on_block(f64::from(block) * EVERY, EVERY);
        }
        assert_eq!(unknown.forecast(EVERY), None);
    }

    #[test]
    fn what_is_lost_does_not_wait() {
        let mut skip = Skip::new(Memory::Given(CapacityForecast::normal(40e6, 0.0)));
        skip.on_sent(0.0, 24_000.0);
        skip.on_sent(1e-3, 12_000.0);
        skip.on_lost(0.0, 12_000.0);
        skip.on_lost(0.0, 12_000.0);
        assert_eq!(skip.batches.len(), 1);
        // A later departure shows that all before it are gone.
        skip.on_sent(2e-3, 12_000.0);
        skip.on_departure(30e-3, 2e-3, 5e-3, 12_000.0);
        assert!(skip.batches.is_empty());
        for i in 0..5_000 {
            skip.on_sent(f64::from(i), 1.0);
        }
        assert!(skip.batches.len() <= MOST_BATCHES);
        skip.on_lost(-1.0, 1.0);
    }
}
