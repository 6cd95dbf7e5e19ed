use alloc::vec::Vec;

use smallvec::SmallVec;

use super::losses::spare;
use super::{Found, Lane, Limits, Order, flip, jump, leap, priced};
use crate::sched::capacity::Lateness;
use crate::sched::normal::Table;
use crate::wire::MAX_PATHS;

/// Packets that JUMP, LEAP and FLIP count one by one; larger blocks are planned in steps of
/// several.
const FINE: u32 = 512;
/// The same for priced schedules, which look at more of them.
const COARSE: u32 = 128;

/// A path to plan over.
#[derive(Clone, Debug)]
pub struct Way {
    /// How likely packets are late on it.
    pub lateness: Lateness,
    /// How many it may get.
    pub limits: Limits,
    /// Probability that a packet is lost on it (0..1).
    pub loss: f64,
}

/// What a block asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Packets of which any k suffice to decode it are on time with this probability, P_thr.
    pub reliability: f64,
    /// Of paths whose next packets differ by less in lateness the one with fewer packets is taken,
    /// the paper's ε.
    pub tolerance: f64,
}

/// How many packets of a block go on each path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schedule {
    /// Packets on each path, what was sent before included.
    pub packets: SmallVec<[u32; 4]>,
    /// Probability that the last packet of each path is late, if it is not lost.
    pub late: SmallVec<[f64; 4]>,
    /// Probability that fewer than k of them are on time, P_e.
    pub failure: f64,
    /// That is at most what was asked for.
    pub feasible: bool,
}

impl Schedule {
    /// All packets.
    pub fn total(&self) -> u64 {
        self.packets.iter().copied().map(u64::from).sum()
    }
}

/// Plans blocks. Holds the tables that plans need; cheap to use, not to make.
///
/// Of blocks that are planned in steps of several packets a step is lost as a whole, which is on
/// the safe side.
///
/// Whatever it is asked, a plan looks at [`MAX_PATHS`] paths and at most 512 steps a path.
#[derive(Clone, Debug, Default)]
pub struct Planner {
    table: Table,
}

impl Planner {
    /// A planner.
    pub fn new() -> Self {
        Self::default()
    }

    /// The table of the normal distribution that lateness is computed with.
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// JUMP: the smallest schedule of a block of `k` packets that meets the demand, or, if none
    /// does, the largest, which is not feasible.
    pub fn jump(&self, ways: &[Way], k: u32, demand: Demand) -> Schedule {
        let step = k.div_ceil(FINE).max(1);
        let lanes = self.lanes(ways, k, step, None);
        let order = Order::new(&lanes, demand.tolerance);
        self.jump_over((&lanes, &order), ways, (k, step), demand)
    }

    fn jump_over(
        &self,
        (lanes, order): (&[Lane], &Order),
        ways: &[Way],
        (k, step): (u32, u32),
        demand: Demand,
    ) -> Schedule {
        let steps = k.div_ceil(step) as usize;
        let found = jump(lanes, order, steps, 1.0 - demand.reliability);
        self.schedule(ways, step, &found)
    }

    /// LEAP: the most packets, up to `most`, that a block may have to meet the demand within the
    /// ways' limits, and its schedule; none if no block does.
    pub fn leap(&self, ways: &[Way], most: u32, demand: Demand) -> Option<(u32, Schedule)> {
        let room = ways.iter().map(|way| {
            let Limits { least, most } = way.limits;
            most.min(way.lateness.hopeless()).max(least)
        });
        let most = most.min(room.fold(0, u32::saturating_add));
        let step = most.div_ceil(FINE).max(1);
        let lanes = self.lanes(ways, most, step, None);
        let (k, found) = leap(&lanes, demand.tolerance, 1.0 - demand.reliability)?;
        let k = (k as u32).saturating_mul(step);
        if k <= most {
            return Some((k, self.schedule(ways, step, &found)));
        }
        Some((most, self.jump(ways, most, demand)))
    }

    /// FLIP: the shortest deadline (seconds) up to `longest`, to within `quantum`, at which a block
    /// of `k` packets meets the demand, and its schedule. `at` makes the ways for a deadline.
    pub fn flip(
        &self,
        mut at: impl FnMut(f64) -> Vec<Way>,
        k: u32,
        demand: Demand,
        (longest, quantum): (f64, f64),
    ) -> Option<(f64, Schedule)> {
        let step = k.div_ceil(FINE).max(1);
        let target = 1.0 - demand.reliability;
        let lanes = |deadline: f64| self.lanes(&at(deadline), k, step, None);
        let steps = k.div_ceil(step) as usize;
        let limits = (longest, quantum);
        let (deadline, found) = flip(lanes, steps, target, demand.tolerance, limits)?;
        Some((deadline, self.schedule(&at(deadline), step, &found)))
    }

    /// The schedule with the least P_e + `price` · expected packets that wait still `every` seconds
    /// from now.
    pub fn priced(&self, ways: &[Way], k: u32, price: f64, every: f64) -> Schedule {
        let step = k.div_ceil(COARSE).max(1);
        let lanes = self.lanes(ways, k, step, Some(every));
        let order = Order::new(&lanes, 0.0);
        self.priced_over((&lanes, &order), ways, (k, step), price)
    }

    fn priced_over(
        &self,
        (lanes, order): (&[Lane], &Order),
        ways: &[Way],
        (k, step): (u32, u32),
        price: f64,
    ) -> Schedule {
        let found = priced(lanes, order, k.div_ceil(step) as usize, price);
        self.schedule(ways, step, &found)
    }

    /// JUMP while what it sends is feasible and no more than the priced schedule, else that one:
    /// little redundancy where little is needed, and no more than pays where much would be.
    ///
    /// JUMP aims at a quarter less failures than demanded, because estimates err and blocks that
    /// follow a late one are late more often.
    pub fn hybrid(
        &self,
        ways: &[Way],
        k: u32,
        demand: Demand,
        (price, every): (f64, f64),
    ) -> Schedule {
        let careful = Demand {
            reliability: 1.0 - 0.75 * (1.0 - demand.reliability),
            ..demand
        };
        let (fine, coarse) = (k.div_ceil(FINE).max(1), k.div_ceil(COARSE).max(1));
        let lanes = self.lanes(ways, k, coarse, Some(every));
        let order = Order::new(&lanes, demand.tolerance);
        let small = match fine == coarse {
            true => self.jump_over((&lanes, &order), ways, (k, coarse), careful),
            false => self.jump(ways, k, careful),
        };
        // No schedule has fewer packets than the block.
        if small.feasible && small.total() <= u64::from(k) {
            return small;
        }
        let mut priced = self.priced_over((&lanes, &order), ways, (k, coarse), price);
        if small.feasible && small.total() <= priced.total() {
            return small;
        }
        priced.feasible = priced.failure <= 1.0 - demand.reliability;
        priced
    }

    fn lanes(&self, ways: &[Way], k: u32, step: u32, every: Option<f64>) -> Vec<Lane> {
        let lane = |way: &Way| {
            // More than k packets on one path never help (§IV), except for what is lost of them.
            let useful = k.saturating_add(spare(k, way.loss));
            let limits = Limits {
                least: way.limits.least.min(useful),
                most: way.limits.most.min(useful),
            };
            let lane = Lane::new(&self.table, &way.lateness, limits, step, every);
            lane.with_loss(way.loss)
        };
        ways.iter().take(MAX_PATHS).map(lane).collect()
    }

    /// Steps as packets, within the limits.
    fn schedule(&self, ways: &[Way], step: u32, found: &Found) -> Schedule {
        let steps = |i: usize| found.packets.get(i).map_or(0, |n| *n as u32);
        let packets = |(i, way): (usize, &Way)| {
            let Limits { least, most } = way.limits;
            steps(i).saturating_mul(step).clamp(least, most.max(least))
        };
        let packets: SmallVec<[u32; 4]> = ways.iter().enumerate().map(packets).collect();
        let late = ways.iter().zip(&packets);
        let late = late.map(|(way, packets)| way.lateness.of(&self.table, *packets));
        Schedule {
            late: late.collect(),
            packets,
            failure: found.failure,
            feasible: found.feasible,
        }
    }
}
