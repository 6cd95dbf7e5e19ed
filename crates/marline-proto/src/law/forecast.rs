//! The law in short: what schedulers that compute with a time and a spread go by.

use libm::sqrt;
use marline_base::{Duration, Instant};

use super::{Carries, Left, PathLaw};

/// 95th percentile of a standard normal variable.
const Z95: f64 = 1.644_854;
/// What should have arrived is missing when it is later than this many 95th percentiles: of normal
/// delays one in two thousand is.
const MISSING: f64 = 2.0;

/// When a packet would arrive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArrivalForecast {
    /// Expected arrival of a packet that meets no queue of ours: peer's clock minus ours (µs).
    /// Only differences between paths of one session mean anything.
    pub offset_us: f64,
    /// How much later a packet is of use, on average: when those sent before it on the path are
    /// there as well (µs). Zero where packets keep their order.
    pub behind_us: f64,
    /// 95th percentile of how much later than expected packets arrive, by the middle of their law
    /// (µs): late packets are later than by any normal law, and say nothing of the others.
    pub late_us: f64,
    /// 95th percentile of when packets arrived over the last thousand or so, if they met no queue
    /// of ours, whatever was expected: peer's clock minus ours (µs).
    pub ceiling_us: f64,
    /// How far that is beyond their mean (µs).
    pub swing_us: f64,
    /// When feedback of the first packet after the newest acknowledged one is due, on our clock:
    /// if there is still none, packets arrive later than expected by at least the time since.
    pub due: Option<Instant>,
    /// When the bottleneck will have served all that was sent, on our clock; the past if it is
    /// idle.
    pub free: Instant,
    /// How long the bottleneck serves a byte (µs).
    pub service_us: f64,
}

impl Left {
    /// What the packet was to wait behind others of ours.
    pub(crate) fn waits(&self) -> Duration {
        Duration::from_nanos((1e3 * self.wait) as u64)
    }
}

impl PathLaw {
    /// What a packet that leaves now has to expect; `None` before the first arrival. `unheard` is
    /// the packet that should be acknowledged next: when it left, and what was believed then.
    pub(crate) fn forecast(
        &self,
        carries: Carries,
        unheard: Option<(Instant, &Left)>,
    ) -> Option<ArrivalForecast> {
        let origin = self.origin? as f64;
        let late = self.late(self.wander.variance(0.0));
        let report = self.report.lag() + Z95 * sqrt(self.report.variance());
        let unheard = unheard.filter(|(_, left)| left.beginning == self.beginning);
        Some(ArrivalForecast {
            offset_us: origin + self.wander.level(),
            behind_us: self.overtaking.wait(),
            late_us: late,
            ceiling_us: origin + self.ceiling.percentile(),
            swing_us: self.ceiling.swing(),
            due: unheard.map(|(sent, left)| {
                let trip = self.wander.level() + f64::from(left.wait) + late + report;
                sent + Duration::from_nanos((1e3 * trip.max(0.0)) as u64)
            }),
            free: self.service.free(),
            service_us: self.service.a_byte(carries.rate),
        })
    }

    /// When a packet that left at `sent` has arrived, on the peer's clock (µs), if nothing happened
    /// to it; `None` before the first arrival.
    pub(crate) fn arrives_by(&self, sent: Instant, left: &Left) -> Option<i64> {
        if left.beginning != self.beginning {
            return None;
        }
        let late = self.late(self.wander.usual());
        let trip = self.wander.level() + f64::from(left.wait) + MISSING * late;
        // The peer names any times.
        let left = self.origin?.saturating_add(sent.as_micros() as i64);
        Some(left.saturating_add(trip as i64))
    }

    /// 95th percentile of how much later than expected packets of this variance (µs²) arrive, by
    /// the middle of their law (µs).
    fn late(&self, variance: f64) -> f64 {
        Z95 * self.scatter.spread() * sqrt(variance)
    }
}
