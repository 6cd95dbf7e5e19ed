//! The throughput that the application needs, for schedulers that spend only what is left over.

use marline_base::{Instant, Rate};

use crate::flow::WriteRate;
use crate::sched::OptionSpec;

/// How a user gives it.
pub(in crate::sched) const OPTION: OptionSpec = OptionSpec::number(
    "target",
    0.0,
    (0.0, 100_000.0),
    "throughput that the application needs (Mb/s); 0 takes what it says, or measures it",
);

/// Given by the user, or measured.
#[derive(Debug)]
pub(in crate::sched) struct Target {
    configured: Option<Rate>,
    /// As the application said last.
    said: Option<Rate>,
    /// Bytes that the flow has sent for the first time.
    sent: u64,
    written: WriteRate,
    measured: f64,
}

impl Target {
    /// `given` Mb/s, or what the application says or does if that is zero.
    pub(in crate::sched) fn new(given: f64) -> Self {
        Self {
            configured: (given > 0.0).then(|| Rate::from_bps((given * 1e6) as u64)),
            said: None,
            sent: 0,
            written: WriteRate::default(),
            measured: f64::INFINITY,
        }
    }

    /// The flow sent `len` bytes for the first time.
    pub(in crate::sched) fn sent(&mut self, len: u32) {
        self.sent += u64::from(len);
    }

    /// `bytes` bytes of these did not leave, and wait to be sent again for the first time.
    pub(in crate::sched) fn taken_back(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_sub(bytes);
    }

    /// The application says that it needs `given`, and `unsent` bytes wait to be sent now.
    pub(in crate::sched) fn observe(&mut self, now: Instant, given: Option<Rate>, unsent: u64) {
        self.said = given;
        if let Some(rate) = self.given() {
            // Until there is something new, what was given holds.
            self.written.forget(now);
            self.measured = rate.as_bps() as f64 / 8.0;
        } else if self.written.observe(now, self.sent, self.sent + unsent) {
            self.measured = self.written.early().unwrap_or(self.measured);
        }
    }

    fn given(&self) -> Option<Rate> {
        self.configured.or(self.said)
    }

    /// Is it known yet? Not in the first tenth of a second of the first measurement, or, of a burst
    /// now and then, before the second one: then nothing is left over. Later measurements begin
    /// with what was known.
    pub(in crate::sched) fn is_known(&self) -> bool {
        self.bytes_per_second().is_finite()
    }

    /// The target (bytes/s); infinite as long as it is not known.
    pub(in crate::sched) fn bytes_per_second(&self) -> f64 {
        match self.given() {
            Some(rate) => rate.as_bps() as f64 / 8.0,
            None => self.measured,
        }
    }
}
