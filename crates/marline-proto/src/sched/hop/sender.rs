use alloc::vec::Vec;

use super::interval::Interval;
use super::losses::spare;
use super::{Demand, Limits, PRICE, Planner, Schedule, Way};
use crate::sched::capacity::{Backlog, CapacityForecast, Lateness, Skip};

/// How a sender plans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// What redundancy costs: with a price, the hybrid of JUMP and priced schedules; without, JUMP
    /// as in the paper.
    pub price: Option<f64>,
    /// The head of a block goes at once and the rest this many seconds later, when more is known of
    /// the last slot; 0 sends all at once.
    pub stage: f64,
    /// Fewest packets of a block on each path, without which nothing would be learnt of it.
    pub least: u32,
    /// The paper's ε.
    pub tolerance: f64,
    /// JUMP's bound on a path's packets counts what waits there already. The paper's does not.
    pub bound_backlog: bool,
    /// What LEAP subtracts from the mean capacity, in deviations: α of (8), 1.25 in the paper. The
    /// optimal policy for two paths of 40 ± 8 Mb/s sends up to 64 packets over an empty path that
    /// carries 75 ± 15 in time: 0.73.
    pub margin: f64,
}

impl Default for Settings {
    /// Hybrid and staged.
    fn default() -> Self {
        Self {
            price: Some(PRICE),
            stage: 2e-3,
            least: 10,
            tolerance: 0.0,
            bound_backlog: true,
            margin: 0.73,
        }
    }
}

/// Share of a block that goes on each path about which nothing is known, times the number of paths.
const BLIND: f64 = 1.2;
/// The head of a block is what a path carries in this time on average (seconds), so that it does
/// not run dry before the rest comes.
const HEAD: f64 = 6e-3;
/// A path that loses more is not planned with more redundancy.
const MOST_LOSS: f64 = 0.5;
/// Times that a lost packet is sent again at most, as far as plans count on it: with more, a loss
/// of a half would hardly count, and losses come in bursts.
const MOST_TIMES: f64 = 2.0;
/// The least on each path is at most this part of a block: where the other paths suffice it is
/// redundancy,
const SMALL: u32 = 16;
/// and this where arrivals scatter: fewer do not separate the service from the scatter.
const SCATTERED: u32 = 8;

/// Packets on a path that is believed to carry nothing, if a block has twice as many: with fewer
/// nothing would be seen of its capacity, and the belief never change.
const PROBE: u32 = 3;

/// A block to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Block {
    /// When it was written (seconds, on the clock of the paths' estimators).
    pub at: f64,
    /// Time within which it must arrive (seconds), T.
    pub within: f64,
    /// Probability with which it should, P_thr.
    pub reliability: f64,
    /// Packets of which it can be decoded, k.
    pub packets: u32,
    /// Their length (bits).
    pub packet: f64,
}

/// A path as a sender sees it.
#[derive(Clone, Copy, Debug)]
pub struct SenderPath<'a> {
    /// Its estimator.
    pub skip: &'a Skip,
    /// Propagation to the receiver (seconds), without queue and transmission.
    pub delay: f64,
    /// Probability that a packet is lost on it (0..1).
    pub loss: f64,
    /// From when a packet leaves until it is sent again if it was lost (seconds); infinite where
    /// nothing is.
    pub again: f64,
    /// Packets arrive in another rhythm than they leave its bottleneck.
    pub scattered: bool,
    /// What waits at the sender until a congestion controller lets it go (bits), this block's own
    /// packets included; none where there is no controller, as in the paper.
    pub held: f64,
}

/// Sends blocks: the part of HOP that decides how many packets go on each path and when, from the
/// paths' estimators.
#[derive(Clone, Debug)]
pub struct Sender {
    settings: Settings,
    planner: Planner,
    interval: Interval,
}

impl Sender {
    /// A sender that has sent nothing.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            planner: Planner::new(),
            interval: Interval::default(),
        }
    }

    /// Time between blocks (seconds): measured, or until then what a block may take.
    pub fn every(&self, block: &Block) -> f64 {
        self.interval.get().unwrap_or(block.within)
    }

    /// A block is written. Call first, once for each block; what is answered is the interval for
    /// [`Skip::on_block`].
    pub fn on_block(&mut self, block: &Block) -> f64 {
        self.interval.on_block(block.at);
        self.every(block)
    }

    /// How many packets go on each path at once: the head of the block if it is staged, which at
    /// [`Settings::stage`] later is to be finished by [`plan`](Self::plan); else all of it.
    pub fn head(&self, block: &Block, paths: &[SenderPath<'_>]) -> Vec<u32> {
        if self.settings.stage <= 0.0 {
            let schedule = self.plan(block.at, block, &[], paths);
            return schedule.packets.into_vec();
        }
        let every = self.every(block);
        // A path that is hardly needed gets no more in advance than it is to get at all.
        let whole = self.plan(block.at, block, &[], paths).packets;
        let most = block.packets.div_ceil(2);
        let head = |(path, whole): (&SenderPath<'_>, &u32)| match path.skip.forecast(every) {
            _ if *whole == 0 => 0,
            Some(forecast) => (libm::ceil(forecast.mean * HEAD / block.packet) as u32)
                .min(*whole)
                .clamp(1, most.max(1)),
            None => blind(block.packets, paths.len()),
        };
        paths.iter().zip(&whole).map(head).collect()
    }

    /// The schedule of a block of which `sent` packets went on each path before (none if empty),
    /// by what is known at `now`.
    pub fn plan(
        &self,
        now: f64,
        block: &Block,
        sent: &[u32],
        paths: &[SenderPath<'_>],
    ) -> Schedule {
        let every = self.every(block);
        let ways = self.ways(now, block, sent, paths);
        let demand = self.demand(block);
        match self.settings.price {
            Some(price) => self
                .planner
                .hybrid(&ways, block.packets, demand, (price, every)),
            None => self.planner.jump(&ways, block.packets, demand),
        }
    }

    /// JUMP: the smallest schedule for the block if it is written now, or, if none is reliable
    /// enough, the most reliable one.
    pub fn jump(&self, block: &Block, paths: &[SenderPath<'_>]) -> Schedule {
        let ways = self.ways(block.at, block, &[], paths);
        self.planner.jump(&ways, block.packets, self.demand(block))
    }

    /// LEAP: how many packets a block written at `block.at` may have (up to `block.packets`), and
    /// the probability that it would be late.
    pub fn capacity(&self, block: &Block, paths: &[SenderPath<'_>]) -> Option<(u32, f64)> {
        let mut ways = self.ways(block.at, block, &[], paths);
        for way in &mut ways {
            let capacity = way.lateness.capacity;
            let mean = capacity.mean - self.settings.margin * capacity.sd;
            let careful = Lateness {
                capacity: CapacityForecast { mean, ..capacity },
                ..way.lateness.clone()
            };
            way.limits.most = careful.bound();
        }
        let demand = self.demand(block);
        let (packets, schedule) = self.planner.leap(&ways, block.packets, demand)?;
        Some((packets, schedule.failure))
    }

    /// FLIP: the shortest time within which the block would arrive, up to `block.within`, to within
    /// `quantum` (seconds).
    pub fn deadline(&self, block: &Block, quantum: f64, paths: &[SenderPath<'_>]) -> Option<f64> {
        let limits = (block.within, quantum);
        let demand = self.demand(block);
        let at = |within: f64| self.ways(block.at, &Block { within, ..*block }, &[], paths);
        let found = self.planner.flip(at, block.packets, demand, limits);
        found.map(|(within, _)| within)
    }

    fn demand(&self, block: &Block) -> Demand {
        Demand {
            reliability: block.reliability,
            tolerance: self.settings.tolerance,
        }
    }

    fn ways(&self, now: f64, block: &Block, sent: &[u32], paths: &[SenderPath<'_>]) -> Vec<Way> {
        let every = self.every(block);
        // Where the way alone takes too long, packets do a block no good; and as long as they are
        // under way, nothing is sent again that they could stand for.
        let reaches = |path: &SenderPath<'_>| path.delay < block.within;
        let count = paths.iter().filter(|path| reaches(path)).count();
        let way = |(i, path): (usize, &SenderPath<'_>)| {
            let sent = sent.get(i).copied().unwrap_or(0);
            if count > 0 && !reaches(path) {
                return unknown(block, sent);
            }
            let Some(capacity) = path.skip.forecast(every) else {
                return unknown(block, sent.max(blind(block.packets, paths.len())));
            };
            let window = block.within - path.delay;
            // What waits leaves in order, so of this block's packets those sent last are held.
            let older = path.held - f64::from(sent) * block.packet;
            let loss = missing(path, window);
            let lateness = Lateness {
                backlog: path.skip.backlog(block.at, now, every).and(older),
                capacity,
                window,
                slots: libm::ceil(window / every).clamp(1.0, 64.0) as u32,
                packet: block.packet,
            };
            let most = match (self.settings.price, self.settings.bound_backlog) {
                (Some(_), _) => block.packets.saturating_add(spare(block.packets, loss)),
                (None, true) => lateness.bound(),
                (None, false) => (capacity.mean * window.max(0.0) / block.packet) as u32,
            };
            // Of a small block a few packets a path must do.
            let small = if path.scattered { SCATTERED } else { SMALL };
            let mut least = self.settings.least.min(block.packets.div_ceil(small));
            if lateness.hopeless() <= PROBE {
                least = least.max(PROBE.min(block.packets / 2));
            }
            let least = sent.max(least);
            Way {
                lateness,
                limits: Limits { least, most },
                loss,
            }
        };
        paths.iter().enumerate().map(way).collect()
    }
}

/// Probability that a packet is not there after `window` seconds because it was lost each time that
/// it was sent. The paper sends each packet once.
fn missing(path: &SenderPath<'_>, window: f64) -> f64 {
    let times = 1.0 + libm::floor(window.max(0.0) / path.again).min(MOST_TIMES);
    libm::pow(path.loss.clamp(0.0, MOST_LOSS), times)
}

/// Packets for a path about which nothing is known.
fn blind(packets: u32, paths: usize) -> u32 {
    let share = BLIND * f64::from(packets) / paths.max(1) as f64;
    (libm::ceil(share) as u32).min(packets)
}

/// A path on which nothing is relied.
fn unknown(block: &Block, packets: u32) -> Way {
    Way {
        lateness: Lateness {
            backlog: Backlog::known(0.0),
            capacity: CapacityForecast::normal(0.0, 0.0),
            window: 0.0,
            slots: 1,
            packet: block.packet,
        },
        limits: Limits {
            least: packets,
            most: packets,
        },
        loss: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::capacity::Memory;

    #[test]
    fn what_can_go_again_in_time_is_missing_only_if_it_is_lost_each_time() {
        let skip = Skip::new(Memory::bank());
        let path = |loss, again| SenderPath {
            skip: &skip,
            delay: 10e-3,
            loss,
            again,
            scattered: false,
            held: 0.0,
        };
        assert_eq!(missing(&path(0.1, 30e-3), 20e-3), 0.1);
        assert!((missing(&path(0.1, 30e-3), 40e-3) - 0.01).abs() < 1e-12);
        assert!((missing(&path(0.1, 30e-3), 10.0) - 0.001).abs() < 1e-12);
        // As in the paper.
        assert_eq!(missing(&path(0.1, f64::INFINITY), 10.0), 0.1);
        assert_eq!(missing(&path(0.9, 30e-3), -1.0), MOST_LOSS);
        assert_eq!(missing(&path(0.0, 0.0), 1.0), 0.0);
    }

    #[test]
    fn what_a_controller_holds_on_a_path_is_ahead_of_the_block() {
        let carries =
            |mbps: f64| Skip::new(Memory::Given(CapacityForecast::normal(mbps * 1e6, 1e6)));
        let skips = [carries(50.0), carries(40.0)];
        let planned = |held: f64| {
            let path = |(skip, held)| SenderPath {
                skip,
                delay: 10e-3,
                loss: 0.0,
                again: f64::INFINITY,
                scattered: false,
                held,
            };
            let paths: Vec<_> = skips.iter().zip([held, 0.0]).map(path).collect();
            let block = Block {
                at: 1.0,
                within: 50e-3,
                reliability: 0.98,
                packets: 60,
                packet: 1e4,
            };
            Sender::new(Settings::default())
                .jump(&block, &paths)
                .packets
        };
        // 60 packets are 12 ms of one path and 15 ms of the other; 40 ms are left.
        let (free, held) = (planned(0.0), planned(50e6 * 100e-3));
        assert!(free[0] > 20, "{free:?}");
        assert!(held[0] <= 10 && held[1] >= 60, "{held:?}");
    }

    #[test]
    fn a_path_whose_way_alone_takes_too_long_gets_nothing_unless_all_do() {
        let skips = [
            Skip::new(Memory::Given(CapacityForecast::normal(50e6, 1e6))),
            Skip::new(Memory::bank()),
        ];
        let planned = |within: f64| {
            let path = |(skip, delay)| SenderPath {
                skip,
                delay,
                loss: 0.0,
                again: f64::INFINITY,
                scattered: false,
                held: 0.0,
            };
            let paths: Vec<_> = skips.iter().zip([10e-3, 80e-3]).map(path).collect();
            let block = Block {
                at: 1.0,
                within,
                reliability: 0.98,
                packets: 60,
                packet: 1e4,
            };
            let sender = Sender::new(Settings::default());
            let planned = sender.plan(1.0, &block, &[], &paths);
            (planned, sender.head(&block, &paths))
        };
        let (schedule, head) = planned(60e-3);
        assert!(
            schedule.feasible && schedule.packets[1] == 0,
            "{schedule:?}"
        );
        assert!(head[0] > 0 && head[1] == 0, "{head:?}");
        // Nothing is known of it, but it may be of use.
        let (schedule, head) = planned(90e-3);
        assert!(schedule.packets[1] > 0 && head[1] > 0, "{schedule:?}");
        let (schedule, _) = planned(5e-3);
        assert!(schedule.total() > 0, "{schedule:?}");
    }
}
