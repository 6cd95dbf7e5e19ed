//! Is redundancy stable? (HOP §VI-A, Figures 3 and 4)
//!
//! From a queue that stands on every path a block is planned, and the next one from the queue that
//! it leaves behind. A state is stable if the next block is feasible and needs no more redundancy:
//! then queues do not feed on themselves. The printed (37) has the difference the wrong way round;
//! its text is what counts here. Of a block that is not feasible the paper's rule would say that
//! its redundancy, which is at its bound, does not grow; such a state is not stable here.

use marline_base::{Duration, Rng};
use marline_link::LinkConfig;
use marline_proto::sched::capacity::{Backlog, CapacityForecast, Lateness, Memory};
use marline_proto::sched::hop::{Demand, Limits, Planner, Schedule, Settings, Way};
use marline_proto::sched::normal::quantile;

use super::path::propagation;
use super::{Experiment, Variant};
use crate::results::Fraction;

/// Next states that are looked at.
const DRAWS: u64 = 2_000;

/// A path in a state.
struct Place {
    capacity: CapacityForecast,
    /// Time in which packets must leave it (seconds).
    window: f64,
    /// Waits there (bits).
    backlog: f64,
}

impl Experiment {
    /// How often the state after this one is no worse, if `queue` stands on every path at its mean
    /// capacity and the capacities are drawn from their distributions, which the planner knows.
    pub(super) fn stability(&self, variant: &Variant, queue: Duration, seed: u64) -> Fraction {
        let phase = self.phase.unwrap_or_default();
        let place = |link: &LinkConfig| {
            let window = self.deadline.saturating_sub(propagation(link));
            let Memory::Given(capacity) = Variant::IdealJump.memory(link, phase, window) else {
                return None;
            };
            Some(Place {
                capacity,
                window: window.as_secs_f64(),
                backlog: capacity.mean * queue.as_secs_f64(),
            })
        };
        let mut places: Vec<Place> = self.links.iter().filter_map(place).collect();
        let planner = Planner::new();
        let settings = variant.settings();
        let now = self.planned(&planner, &settings, &places);
        let packet = f64::from(self.packet) * 8.0;
        let every = self.every.as_secs_f64();
        let mut rng = Rng::new(seed).stream("stability");
        let before: Vec<f64> = places.iter().map(|place| place.backlog).collect();
        let mut stable = Fraction::default();
        for _ in 0..DRAWS {
            for ((place, before), sent) in places.iter_mut().zip(&before).zip(&now.packets) {
                let CapacityForecast { mean, sd, .. } = place.capacity;
                let capacity = (mean + sd * quantile(rng.uniform().max(1e-12))).max(0.0);
                // (35), as it must read: bits that a slot does not carry away.
                place.backlog = (before + f64::from(*sent) * packet - capacity * every).max(0.0);
            }
            let next = self.planned(&planner, &settings, &places);
            stable.trials += 1;
            stable.hits += u64::from(next.feasible && next.total() <= now.total());
        }
        stable
    }

    fn planned(&self, planner: &Planner, settings: &Settings, places: &[Place]) -> Schedule {
        let k = self.block.div_ceil(u64::from(self.packet)) as u32;
        let demand = Demand {
            reliability: self.reliability,
            tolerance: settings.tolerance,
        };
        let way = |place: &Place| {
            let lateness = Lateness {
                backlog: Backlog::known(place.backlog),
                capacity: place.capacity,
                window: place.window,
                slots: 1,
                packet: f64::from(self.packet) * 8.0,
            };
            let most = match (settings.price, settings.bound_backlog) {
                (Some(_), _) => k,
                (None, true) => lateness.bound(),
                (None, false) => {
                    let bits = place.capacity.mean * place.window;
                    (bits / lateness.packet) as u32
                }
            };
            Way {
                lateness,
                limits: Limits {
                    least: settings.least,
                    most,
                },
                loss: 0.0,
            }
        };
        let ways: Vec<Way> = places.iter().map(way).collect();
        match settings.price {
            Some(price) => {
                let every = self.every.as_secs_f64();
                planner.hybrid(&ways, k, demand, (price, every))
            }
            None => planner.jump(&ways, k, demand),
        }
    }
}
