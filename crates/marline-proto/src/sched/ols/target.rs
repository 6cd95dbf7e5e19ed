//! The throughput that the application needs, for schedulers that spend only what is left over.

use alloc::collections::VecDeque;

use marline_base::{Duration, Instant, Rate};

use crate::sched::OptionSpec;

/// How a user gives it.
pub(in crate::sched) const OPTION: OptionSpec = OptionSpec::number(
    "target",
    0.0,
    (0.0, 100_000.0),
    "throughput that the application needs (Mb/s); 0 takes what it says, or measures it",
);
/// Bytes written are counted in intervals of this length.
const BIN: Duration = Duration::from_millis(100);
/// A rate is taken over so many intervals: one second.
const BINS: usize = 10;
/// Rates remembered, one an interval.
const RATES: usize = 30;

/// Given by the user, or measured: the 90th percentile of the rates, each over a second, at which
/// the application wrote during the last three seconds, but not before its last silence of a second.
#[derive(Debug)]
pub(in crate::sched) struct Target {
    configured: Option<Rate>,
    /// As the application said last.
    said: Option<Rate>,
    /// Bytes that the flow has sent for the first time.
    sent: u64,
    /// Bytes that the application had written at the end of each interval, oldest first.
    written: VecDeque<u64>,
    /// Bytes written in the seconds that ended with the last intervals.
    rates: VecDeque<u64>,
    next: Instant,
    measured: f64,
}

impl Target {
    /// `given` Mb/s, or what the application says or does if that is zero.
    pub(in crate::sched) fn new(given: f64) -> Self {
        Self {
            configured: (given > 0.0).then(|| Rate::from_bps((given * 1e6) as u64)),
            said: None,
            sent: 0,
            written: VecDeque::with_capacity(BINS + 1),
            rates: VecDeque::with_capacity(RATES),
            next: Instant::ZERO,
            measured: f64::INFINITY,
        }
    }

    /// The flow sent so many bytes for the first time.
    pub(in crate::sched) fn sent(&mut self, len: u32) {
        self.sent += u64::from(len);
    }

    /// So many bytes of these did not leave, and wait to be sent again for the first time.
    pub(in crate::sched) fn taken_back(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_sub(bytes);
    }

    /// The application says that it needs `given`, and so many bytes wait to be sent now.
    pub(in crate::sched) fn observe(&mut self, now: Instant, given: Option<Rate>, unsent: u64) {
        self.said = given;
        if let Some(rate) = self.given() {
            // Measured again, nothing may be left from before: the bytes of all the time between would count
            // as those of a second. Until there is something new, what was given holds.
            self.written.clear();
            self.rates.clear();
            self.next = now;
            self.measured = rate.as_bps() as f64 / 8.0;
            return;
        }
        if now < self.next {
            return;
        }
        let passed = now.since(self.next).as_nanos() / BIN.as_nanos() + 1;
        if self.written.is_empty() || passed > BINS as u128 {
            return self.begin(now);
        }
        let written = self.sent + unsent;
        // Intervals that passed in silence count as empty ones.
        for _ in 0..passed {
            if self.written.len() > BINS {
                self.written.pop_front();
            }
            self.written.push_back(written);
            if let Some(first) = self.written.front().filter(|_| self.written.len() > BINS) {
                if self.rates.len() == RATES {
                    self.rates.pop_front();
                }
                self.rates.push_back(written.saturating_sub(*first));
            }
        }
        self.next = now + BIN;
        self.measured = self.upper();
    }

    /// A measurement begins, at first or after a second of silence: what is written from now on counts.
    fn begin(&mut self, now: Instant) {
        if let (1, Some(first)) = (self.written.len(), self.written.front()) {
            // One burst, and the next one only now.
            let seconds = (now.since(self.next) + BIN).as_secs_f64();
            self.measured = self.sent.saturating_sub(*first) as f64 / seconds;
        }
        self.written.clear();
        self.rates.clear();
        self.written.push_back(self.sent);
        self.next = now + BIN;
    }

    fn upper(&self) -> f64 {
        if self.written.len() < 2 {
            return self.measured;
        }
        let seconds = BIN.as_secs_f64() * BINS as f64;
        if self.rates.is_empty() {
            // Less than a second was seen: what was written, in the time that it took.
            let seen = (self.written.len() - 1) as f64 * BIN.as_secs_f64();
            let first = self.written.front().copied().unwrap_or(0);
            let last = self.written.back().copied().unwrap_or(0);
            // What expires unsent is not written any more.
            return last.saturating_sub(first) as f64 / seen;
        }
        let mut rates: alloc::vec::Vec<u64> = self.rates.iter().copied().collect();
        rates.sort_unstable();
        let place = (rates.len() * 9).div_ceil(10) - 1;
        rates[place] as f64 / seconds
    }

    fn given(&self) -> Option<Rate> {
        self.configured.or(self.said)
    }

    /// Does anybody know yet? Not in the first tenth of a second of the first measurement, or, of a burst now and then,
    /// before the second one: then nothing is left over. Later measurements begin with what was known.
    pub(in crate::sched) fn is_known(&self) -> bool {
        self.bytes_per_second().is_finite()
    }

    /// The target (bytes/s); infinite as long as nobody knows.
    pub(in crate::sched) fn bytes_per_second(&self) -> f64 {
        match self.given() {
            Some(rate) => rate.as_bps() as f64 / 8.0,
            None => self.measured,
        }
    }
}
