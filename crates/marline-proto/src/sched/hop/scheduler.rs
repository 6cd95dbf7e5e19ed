//! HOP over a session: `hop-jump`, `hop-leap`, `hop-flip`.
//!
//! All three send blocks as [`Sender`] plans them and differ in what they promise: JUMP that a
//! block of this size arrives by its deadline, LEAP how large a block may be that does, FLIP how
//! short a deadline may be. They want paths without a congestion controller of their own (`none`),
//! because the plan is what bounds the queue (§III), and acknowledgements with arrival times.
//!
//! JUMP (§IV, eq. 1–6) is the smallest schedule of a block whose error probability P_e is at most 1
//! − P_thr. [`Scheduler::admit`] computes the schedule from rate forecast, bytes in flight and
//! bytes queued of each path, and refuses with the best probability there is (`Refusal::Late`);
//! [`Scheduler::plan`] emits the s_i symbols of each path, source symbols first, then repair
//! symbols. LEAP is the same search, run when the application asks how much fits, before it
//! encodes; FLIP is the search for the deadline. With `stage`, a plan emits the head of the block
//! and plans the rest 2 ms later, at the time that [`Scheduler::wake_at`] names.

mod rest;
mod stages;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::any::Any;

use marline_base::{Duration, Instant};

use super::admission::{Aim, Offer};
use super::ahead::Ahead;
use super::arrivals::Arrivals;
use super::beginning::Beginning;
use super::legacy::Legacy;
use super::pacing::Pacing;
use super::promises::BlockPromises;
use super::unit::{MOST_PACKETS, QUANTUM, again, asked, block_of, seconds, source_left, symbol};
use super::{Block, Sender, SenderPath, Settings};
use crate::flow::Fate;
use crate::sched::capacity::{Kalman, Memory};
use crate::sched::entry::Entry;
use crate::sched::{
    Choice, Feedback, Forecast, OptionSpec, Outlook, PathOutlook, PathView, Plan, Refusal,
    Scheduler, Unit,
};
use crate::wire::{FlowKind, MAX_PATHS, PathId};
use stages::Staged;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::number(
        "price",
        super::PRICE,
        (0.0, 1.0),
        "what a packet costs that is left over at the next block, in lateness; 0 plans as the paper",
    ),
    OptionSpec::time(
        "stage",
        Duration::from_millis(2),
        (Duration::ZERO, Duration::from_millis(50)),
        "how long after its head the rest of a block is planned; 0 sends all at once",
    ),
    OptionSpec::number(
        "margin",
        0.73,
        (0.0, 6.0),
        "deviations that the largest block leaves below the mean capacity",
    ),
    OptionSpec::switch(
        "kalman",
        false,
        "forecast by the paper's adaptive filter instead of the bank",
    ),
    OptionSpec::switch(
        "pace",
        false,
        "send no faster than the capacity that is not exceeded in nine of ten cases, for queues that others share",
    ),
    OptionSpec::switch(
        "refuse",
        true,
        "refuse blocks that cannot be on time as surely as asked",
    ),
];

/// Deviations above the mean capacity at which paced blocks are sent: the 90 % quantile.
const PACE: f64 = 1.282;
/// Blocks whose rest is planned later.
const MOST_STAGED: usize = 64;
/// Where all blocks would be refused, one is taken this often.
const TRIAL: Duration = Duration::from_millis(250);

const fn entry(
    name: &'static str,
    help: &'static str,
    new: fn(&Choice) -> Box<dyn Scheduler>,
) -> Entry {
    Entry {
        name,
        publication: "Chiariotti et al., IEEE/ACM ToN 2021",
        help,
        kinds: &[FlowKind::Blocks],
        options: OPTIONS,
        new,
    }
}

pub(in crate::sched) const JUMP: Entry = entry(
    "hop-jump",
    "blocks of a given size by their deadline as surely as asked, with least redundancy",
    |choice| Box::new(Hop::new(Aim::Jump, choice)),
);

pub(in crate::sched) const LEAP: Entry = entry(
    "hop-leap",
    "says how large a block may be to arrive by its deadline as surely as asked",
    |choice| Box::new(Hop::new(Aim::Leap, choice)),
);

pub(in crate::sched) const FLIP: Entry = entry(
    "hop-flip",
    "says how soon a block can arrive as surely as asked",
    |choice| Box::new(Hop::new(Aim::Flip, choice)),
);

#[derive(Debug)]
struct Hop {
    aim: Aim,
    refuse: bool,
    kalman: bool,
    stage: Duration,
    sender: Sender,
    paths: BTreeMap<PathId, Arrivals>,
    /// Blocks that were offered or sent, which the estimators know.
    beginning: Beginning,
    /// Blocks that wait for their turn.
    ahead: Ahead,
    /// Blocks whose head has been sent, the oldest first.
    staged: VecDeque<Staged>,
    /// The newest block that was begun, in order.
    newest: Option<u64>,
    /// Time between blocks (seconds), as it was last.
    every: f64,
    promises: BlockPromises,
    /// When a block was last taken, or first refused.
    taken: Option<Instant>,
    /// What waits for its turn, if blocks are paced.
    pacing: Option<Pacing>,
}

impl Hop {
    fn new(aim: Aim, choice: &Choice) -> Self {
        let price = choice.number("price");
        let stage = choice.time("stage");
        let settings = Settings {
            price: (price > 0.0).then_some(price),
            stage: stage.as_secs_f64(),
            margin: choice.number("margin"),
            ..Settings::default()
        };
        Self {
            aim,
            refuse: choice.switch("refuse"),
            kalman: choice.switch("kalman"),
            stage,
            sender: Sender::new(settings),
            paths: BTreeMap::new(),
            beginning: Beginning::default(),
            ahead: Ahead::default(),
            staged: VecDeque::new(),
            newest: None,
            every: 0.0,
            promises: BlockPromises::default(),
            taken: None,
            pacing: choice.switch("pace").then(Pacing::default),
        }
    }

    fn arrivals(&mut self, path: PathId) -> &mut Arrivals {
        let kalman = self.kalman;
        let memory = || match kalman {
            true => Memory::Kalman(Kalman::new(0.97)),
            false => Memory::bank(),
        };
        let path = self.paths.entry(path);
        path.or_insert_with(|| Arrivals::new(memory()))
    }

    /// Brings the estimators of these paths up to date, and forgets paths that are gone.
    fn digest(&mut self, views: &[PathView]) {
        for view in views {
            self.arrivals(view.id).digest();
        }
        // A path that is silent may come back; one that was opened again has another number.
        while self.paths.len() > 2 * MAX_PATHS {
            let gone = |id: &&PathId| views.iter().all(|view| view.id != **id);
            let Some(oldest) = self.paths.keys().find(gone).copied() else {
                break;
            };
            self.paths.remove(&oldest);
            if let Some(pacing) = &mut self.pacing {
                pacing.forget(oldest);
            }
        }
    }

    /// A block begins when it is offered: whether it is taken or not, and however much later it is
    /// sent.
    fn begin(&mut self, now: Instant, id: u64, block: &Block) {
        if !self.beginning.offer(id, now, self.every) {
            return;
        }
        let every = self.sender.on_block(block);
        self.every = every;
        for arrivals in self.paths.values_mut() {
            arrivals.skip.on_block(block.at, every);
        }
    }

    /// Packets that leave before those of a block that is offered now, and must arrive by its
    /// deadline, too.
    fn packets_ahead(&self) -> u32 {
        let rest = |staged: &Staged| {
            let sent = staged.sent.iter().map(|(_, packets)| packets).sum();
            staged.block.packets.saturating_sub(sent)
        };
        let rests = self.staged.iter().map(rest);
        rests.fold(self.ahead.packets(), u32::saturating_add)
    }

    /// The paths as the sender sees them; those that reported nothing yet are left out.
    fn seen<'a>(&'a self, views: &[PathView]) -> Vec<SenderPath<'a>> {
        let path = |view: &PathView| {
            let path = self.paths.get(&view.id)?;
            Some(SenderPath {
                skip: &path.skip,
                delay: path.delay(view.min_rtt) + path.hold_up(),
                loss: view.loss,
                again: again(view),
                scattered: path.scatters(),
                held: view.queued as f64 * 8.0,
            })
        };
        views.iter().filter_map(path).collect()
    }

    fn knows_all(&self, block: &Block, views: &[PathView]) -> bool {
        let every = self.sender.every(block);
        let known = |view: &PathView| {
            let path = self.paths.get(&view.id);
            path.is_some_and(|path| path.skip.forecast(every).is_some())
        };
        views.iter().all(known)
    }

    /// Sends `packets` more of a block on the path at `index`, at once or when it is their turn:
    /// source symbols, then repair symbols. Answers how many there are, as far as that is known.
    fn give(
        &mut self,
        plan: &mut Plan<'_>,
        id: u64,
        source: &mut u32,
        (index, packets): (usize, u32),
    ) -> u32 {
        match (&mut self.pacing, plan.paths().get(index)) {
            (Some(pacing), Some(view)) => {
                let at_once = pacing.owe(id, view.id, packets);
                Self::emit(plan, id, source, index, at_once) + packets - at_once
            }
            _ => Self::emit(plan, id, source, index, packets),
        }
    }

    /// Sends what waits for its turn, as far as it has come.
    fn pay(&mut self, plan: &mut Plan<'_>) {
        let now = plan.now();
        let Some(mut pacing) = self.pacing.take() else {
            return;
        };
        while let Some(owed) = pacing.ready(now) {
            if plan.paths().is_empty() {
                break;
            }
            // Of a path that is gone another one takes the packets.
            let index = plan.paths().iter().position(|view| view.id == owed.path);
            let index = index.unwrap_or(0);
            let mut source = source_left(plan, owed.block);
            if Self::emit(plan, owed.block, &mut source, index, 1) == 0 {
                pacing.drop(&owed);
            } else {
                pacing.paid(now, &owed, self.gap(&plan.paths()[index]));
            }
        }
        self.pacing = Some(pacing);
    }

    /// From a packet to the next at the highest rate that is to be expected of the path.
    fn gap(&self, view: &PathView) -> Duration {
        let path = self.paths.get(&view.id);
        let forecast = path.and_then(|path| path.skip.forecast(self.every));
        let rate = forecast.map_or(0.0, |forecast| forecast.mean + PACE * forecast.sd);
        let gap = f64::from(view.symbol) * 8.0 / rate;
        // Nothing is known, or nothing is expected: as without pacing.
        if gap < 1.0 {
            Duration::from_secs_f64(gap)
        } else {
            Duration::ZERO
        }
    }

    /// Sends `packets` more of a block on the path at `index` now: source symbols, then repair
    /// symbols. Answers how many there were.
    fn emit(plan: &mut Plan<'_>, id: u64, source: &mut u32, index: usize, packets: u32) -> u32 {
        for emitted in 0..packets {
            if *source > 0 && plan.next_len().is_some() {
                plan.send(index);
                *source -= 1;
            } else if plan.repair_of(id, index).is_none() {
                return emitted;
            }
        }
        packets
    }
}

impl Scheduler for Hop {
    fn admit(
        &mut self,
        now: Instant,
        paths: &[PathView],
        unit: &Unit,
    ) -> Result<Option<Forecast>, Refusal> {
        self.digest(paths);
        // If it was taken before, it was not written after all.
        self.ahead.forget(unit.id);
        let block = block_of(now, unit, paths);
        self.begin(now, unit.id, &block);
        if paths.is_empty() || !self.knows_all(&block, paths) {
            self.ahead.write(unit.id, block.packets);
            return Ok(None);
        }
        let offer = Offer {
            block,
            ahead: self.packets_ahead(),
            symbol: symbol(paths),
        };
        let fits = || offer.check(self.aim, &self.sender, &self.seen(paths));
        // What has no deadline cannot be late, however long it takes.
        if self.refuse
            && unit.deadline.is_some()
            && let Err(refusal) = fits()
        {
            // Of paths that carry nothing nothing would be learnt, and all be refused for ever.
            let since = *self.taken.get_or_insert(now);
            if now.since(since) < TRIAL {
                return Err(refusal);
            }
        }
        self.taken = Some(now);
        self.ahead.write(unit.id, block.packets);
        let seen = self.seen(paths);
        let all = offer.with_ahead();
        let schedule = self.sender.plan(seconds(now), &all, &[], &seen);
        let failure = match unit.deadline {
            Some(_) => schedule.failure,
            None => 0.0,
        };
        Ok(Some(Forecast {
            on_time: 1.0 - failure,
            redundancy: schedule.total() as f64 / f64::from(all.packets.max(1)) - 1.0,
        }))
    }

    fn capacity(
        &self,
        now: Instant,
        paths: &[PathView],
        within: Duration,
        reliability: f64,
    ) -> Option<u64> {
        let symbol = symbol(paths);
        let block = Block {
            at: seconds(now),
            within: within.as_secs_f64(),
            reliability: asked(reliability),
            packets: MOST_PACKETS,
            packet: f64::from(symbol) * 8.0,
        };
        if paths.is_empty() || !self.knows_all(&block, paths) {
            return None;
        }
        let fits = self.sender.capacity(&block, &self.seen(paths));
        let packets = fits.map_or(0, |(packets, _)| {
            packets.saturating_sub(self.packets_ahead())
        });
        Some(u64::from(packets) * u64::from(symbol))
    }

    fn deadline(
        &self,
        now: Instant,
        paths: &[PathView],
        len: u64,
        reliability: f64,
    ) -> Option<Duration> {
        let unit = Unit {
            reliability: Some(reliability),
            ..Unit::new(0, len)
        };
        let block = block_of(now, &unit, paths).after(self.packets_ahead());
        if paths.is_empty() || !self.knows_all(&block, paths) {
            return None;
        }
        let found = self.sender.deadline(&block, QUANTUM, &self.seen(paths));
        found.map(Duration::from_secs_f64)
    }

    fn plan(&mut self, plan: &mut Plan<'_>) {
        self.digest(plan.paths());
        loop {
            while let Some(staged) = self.staged.front()
                && staged.due <= plan.now()
                && !plan.paths().is_empty()
            {
                if let Some(staged) = self.staged.pop_front() {
                    self.finish(plan, &staged);
                }
            }
            if self.start(plan) || self.resume(plan) {
                continue;
            }
            let unit = plan.unit().map(|unit| unit.id);
            self.pay(plan);
            // When all of a block has left it is the next one's turn.
            if plan.unit().map(|unit| unit.id) == unit {
                return;
            }
        }
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        self.arrivals(feedback.path).on_feedback(now, feedback);
    }

    fn on_unit(&mut self, _: Instant, unit: u64, fate: Fate) {
        self.ahead.forget(unit);
        match fate {
            Fate::OnTime => self.promises.settle(unit, true),
            Fate::Late | Fate::Lost => self.promises.settle(unit, false),
            Fate::Cancelled(_) | Fate::Refused(_) => self.promises.forget(unit),
        }
    }

    fn outlook(&self) -> Option<Outlook> {
        let path = |(id, path): (&PathId, &Arrivals)| {
            Some(PathOutlook {
                path: *id,
                capacity: path.skip.forecast(self.every)?,
                mode: path.skip.mode(),
                calibration: *path.promises.calibration(),
            })
        };
        Some(Outlook {
            paths: self.paths.iter().filter_map(path).collect(),
            units: *self.promises.calibration(),
        })
    }

    fn inherits(&self) -> bool {
        true
    }

    fn legacy(&self) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(Legacy::of(&self.paths)))
    }

    fn inherit(&mut self, legacy: &dyn Any) {
        self.paths = Legacy::paths(legacy).unwrap_or_default();
    }

    fn wake_at(&self) -> Option<Instant> {
        let paced = self.pacing.as_ref().and_then(Pacing::due);
        let staged = self.staged.front().map(|staged| staged.due);
        [paced, staged].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
