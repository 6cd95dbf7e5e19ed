//! Time passes.

use alloc::collections::BTreeSet;

use marline_base::{Duration, Instant};

use super::Session;
use super::flow::Flow;
use super::share::Scope;
use super::spill::paid;
use crate::config::Config;
use crate::event::CloseReason;
use crate::flow::{Assigned, RecvHalf, SendHalf};
use crate::path::quiet::Range;
use crate::path::{Control, EmissionKind, Path, PathState, PathTimer, SentFrame};
use crate::sched::PathView;
use crate::wire::{FlowId, Params, PathId, PathQuiet};

/// Why a session asks to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WakeReason {
    /// A pacer lets the next datagram go.
    Pacing,
    /// An acknowledgement is due.
    Ack,
    /// A packet is lost unless it is acknowledged by then.
    Loss,
    /// Nothing came back from a path.
    ProbeTimeout,
    /// Feedback of a path is late.
    Overdue,
    /// A path is given up.
    Death,
    /// A probe of a suspect or dead path is due.
    Trial,
    /// A path was quiet for long.
    KeepAlive,
    /// Whether a path takes long datagrams again is tried.
    Size,
    /// A message's lifetime ends, or a receiver has waited long enough for one.
    Lifetime,
    /// Whether an application gets the rate that it needs is looked at.
    Target,
    /// A scheduler asked for it.
    Scheduler,
    /// Schedulers of many flows have more to plan: at once, after what else the driver serves.
    Planning,
    /// The session has heard nothing for long.
    Idle,
}

impl From<PathTimer> for WakeReason {
    fn from(timer: PathTimer) -> Self {
        match timer {
            PathTimer::Loss => Self::Loss,
            PathTimer::ProbeTimeout => Self::ProbeTimeout,
            PathTimer::Overdue | PathTimer::Late => Self::Overdue,
            PathTimer::Death => Self::Death,
            PathTimer::Trial => Self::Trial,
            PathTimer::KeepAlive => Self::KeepAlive,
            PathTimer::Size => Self::Size,
        }
    }
}

/// Sets the flow's entry among the wishes of schedulers to what its own wants now.
pub(super) fn rewish(wishes: &mut BTreeSet<(Instant, FlowId)>, flow: &mut Flow) {
    let plans = flow.turn.is_some() && flow.reset.is_none();
    let wish = flow.scheduler.wake_at().filter(|_| plans);
    if wish != flow.wish {
        if let Some(old) = flow.wish {
            wishes.remove(&(old, flow.id));
        }
        if let Some(new) = wish {
            wishes.insert((new, flow.id));
        }
        flow.wish = wish;
    }
}

/// For how long the two sides wait, from what each said at the beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// Silence after which the session is over.
    pub(super) idle: Duration,
    /// A path that sent nothing for so long sends a ping.
    pub(super) keep_alive: Duration,
    /// How long a path in reserve is quiet.
    pub(super) quiet: Range,
    /// The peer's promise.
    pub(super) peer_ack_delay: Duration,
}

impl Patience {
    pub(super) fn between(config: &Config, peer: &Params) -> Self {
        let theirs = match peer.max_idle_timeout_ms {
            0 => Duration::MAX,
            ms => Duration::from_millis(ms),
        };
        let idle = config.idle_timeout.min(theirs);
        let keep_alive = config.keep_alive.min(idle / 3);
        let theirs = Duration::from_millis(peer.max_path_quiet_ms);
        Self {
            idle,
            keep_alive,
            quiet: Range {
                usual: keep_alive * STANDBY,
                most: config.longest_quiet.min(theirs),
            },
            peer_ack_delay: Duration::from_micros(peer.max_ack_delay_us),
        }
    }
}

/// Keep-alives of a session that carries nothing are this many times rarer,
const QUIET: u32 = 2;
/// and those of a path on standby beside an active one this many times: every 25 s by default,
/// which is less than the 30 s after which the most forgetful address translators drop a mapping.
/// From there on it is learnt how long the path may be quiet (`path/quiet.rs`).
const STANDBY: u32 = 5;

/// Of traffic that is there something is heard within this time, nearly always: packets of live
/// streams and round trips are 20 to 50 ms apart.
const ALARM: Duration = Duration::from_millis(100);

/// Until when nothing happens by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rest {
    /// The first timer, and why it was set.
    timer: (Instant, WakeReason),
    /// When a pacer lets go what waits for it.
    pacing: Option<Instant>,
    /// The earlier of the two, which is asked for most.
    wake: (Instant, WakeReason),
}

impl Rest {
    fn new(timer: (Instant, WakeReason), pacing: Option<Instant>) -> Self {
        let paced = pacing.map(|at| (at, WakeReason::Pacing));
        Self {
            timer,
            pacing,
            wake: paced.map_or(timer, |paced| paced.min(timer)),
        }
    }

    /// Is nothing missed by resting so long, if what is known exactly is `exact`?
    fn ends_by(&self, exact: &Self) -> bool {
        self.timer.0 <= exact.timer.0 && self.pacing == exact.pacing
    }
}

impl Session {
    /// When [`handle_timeout`](Self::handle_timeout) must be called next, and why; `None` when the
    /// session is over. Valid after [`poll_transmit`](Self::poll_transmit) returned `None`.
    pub fn poll_timeout(&self, now: Instant) -> Option<(Instant, WakeReason)> {
        if self.ending.is_some() {
            return None;
        }
        if self.has_to_plan() {
            return Some((now, WakeReason::Planning));
        }
        let rest = self.rest.unwrap_or_else(|| self.next_rest(now));
        Some(rest.wake)
    }

    /// Does nothing leave now because nothing happened since all that could had left?
    #[inline]
    pub(super) fn rests(&self, now: Instant) -> bool {
        let rests = !self.has_to_plan() && self.rest.is_some_and(|rest| now < rest.wake.0);
        debug_assert!(
            !rests
                || self
                    .rest
                    .is_some_and(|rest| rest.ends_by(&self.next_rest(now))),
            "an input did not end the rest {:?}: it is {:?}",
            self.rest,
            self.next_rest(now)
        );
        rests
    }

    /// Until when nothing happens by itself, once all has left that may.
    fn next_rest(&self, now: Instant) -> Rest {
        let paths = 0..self.paths.len();
        let pacing = paths.filter_map(|index| self.sends_at(now, index)).min();
        self.rest_of(pacing, self.next_path_timer())
    }

    /// The same, not too late, but perhaps earlier than need be. `pacing`: when the first pacer
    /// lets go what waits for it, if that is known.
    pub(super) fn rest_until(&mut self, now: Instant, pacing: Option<Option<Instant>>) -> Rest {
        let path_timer = match self.path_timer {
            Some(timer) => timer,
            None => *self.path_timer.insert(self.next_path_timer()),
        };
        let paths = 0..self.paths.len();
        let find = || paths.filter_map(|index| self.sends_at(now, index)).min();
        self.rest_of(pacing.unwrap_or_else(find), path_timer)
    }

    /// Nothing but data arrived while the session rested: it rests on, but until no later than what
    /// that has made due.
    pub(super) fn rest_on(&mut self, now: Instant, rest: &Rest) {
        let is_asked = self.paths.iter().any(|path| path.received.is_asked());
        if self.control.is_empty() && !is_asked && !self.has_to_plan() {
            self.rest = Some(self.rest_until(now, Some(rest.pacing)));
        }
    }

    /// The first of all paths' timers.
    fn next_path_timer(&self) -> (Instant, WakeReason) {
        let ack_delay = self.peer_ack_delay();
        let timers = self.paths.iter().map(|path| {
            let keep_alive = self.keep_alive(path);
            let (at, timer) = path.next_timer(ack_delay, self.config.dead_after, keep_alive);
            (at, timer.into())
        });
        timers
            .min()
            .unwrap_or((Instant::FAR_FUTURE, WakeReason::Idle))
    }

    /// How long a path may be quiet before it gets a ping. The server's end waits a quarter longer:
    /// the client's ping comes before, and keeps what an address translator there remembers.
    fn keep_alive(&self, path: &Path) -> Duration {
        let usual = self.patience.keep_alive;
        // The usual one would go when the session has carried nothing for two of them.
        let is_quiet = || (path.last_eliciting() + usual).since(self.last_traffic) >= 2 * usual;
        let pause = if self.is_in_reserve(path) {
            if let Some(asked) = path.quiet.pause(self.patience.quiet) {
                return asked;
            }
            let patience = path.quiet.patience(self.patience.quiet);
            self.alarm_after(path)
                .map_or(patience, |at| at.min(patience))
        } else if is_quiet() {
            (usual * QUIET).min(self.patience.idle / 3)
        } else {
            usual
        };
        match self.is_client() {
            true => pause,
            false => pause + pause / 4,
        }
    }

    /// After which quiet time a path in reserve gets a ping because of what is heard on the others:
    /// nothing any more, of traffic that was there. Only while the path may be forgotten.
    fn alarm_after(&self, path: &Path) -> Option<Duration> {
        let proved = path.quiet.proved(self.patience.quiet)?;
        let idle = self.last_received.since(self.last_traffic);
        let alarm = (self.last_received + ALARM).since(path.last_eliciting());
        (idle < self.patience.keep_alive).then(|| alarm.max(proved))
    }

    /// Is the path on standby beside an active one?
    pub(super) fn is_in_reserve(&self, path: &Path) -> bool {
        let is_active = |path: &Path| path.state() == PathState::Active;
        path.state() == PathState::Standby && self.paths.iter().any(is_active)
    }

    /// A path was quiet for as long as it may be: which ping is next?
    fn on_quiet(&mut self, now: Instant, index: usize) {
        let range = self.patience.quiet;
        let (is_in_reserve, learns) = self.quiet_roles(index);
        let path = &mut self.paths[index];
        let quiet = now.since(path.last_eliciting());
        // The ping itself sets the timer again, unless the carrier is blocked.
        path.last_eliciting_sent = now;
        let is_asked = is_in_reserve && path.quiet.pause(range).is_some();
        if is_asked && path.quiet.begin_ping() {
            return;
        }
        path.probes = path.probes.max(1);
        let in_full = quiet >= path.quiet.patience(range);
        if is_in_reserve && learns && in_full && path.quiet.on_own_ping(now, range) {
            self.ask_for_quiet(index);
        }
    }

    /// The peer's packet came, and asks for an acknowledgement: where it was quiet before, that
    /// shows for how long the path may be.
    pub(super) fn on_ping_in_reserve(&mut self, now: Instant, id: PathId) {
        let Some(index) = self.path_index(id) else {
            return;
        };
        let (is_in_reserve, learns) = self.quiet_roles(index);
        let range = self.patience.quiet;
        let path = &mut self.paths[index];
        let quiet = now.since(path.last_eliciting());
        if is_in_reserve && learns {
            // This end asks nothing there, so nothing else shows that the peer is there.
            path.last_progress = now;
            if path.quiet.on_heard(now, quiet, range) {
                self.ask_for_quiet(index);
            }
        }
    }

    /// Is the path at `index` in reserve, and does this end learn how long it may be quiet?
    fn quiet_roles(&self, index: usize) -> (bool, bool) {
        let path = &self.paths[index];
        let learns = self.is_client() && path.survives_rebinding;
        (self.is_in_reserve(path), learns)
    }

    fn ask_for_quiet(&mut self, index: usize) {
        let path = &mut self.paths[index];
        path.quiet.sent += 1;
        self.control.insert(Control::PathQuiet(path.id));
        self.path_timer = None;
    }

    /// The peer asks for a ping after a quiet time.
    pub(super) fn on_peer_quiet(&mut self, frame: &PathQuiet) {
        let quiet = Duration::from_millis(frame.quiet_ms);
        if let Some(path) = self.path_mut(frame.path)
            && path.quiet.on_asked(frame.sequence, quiet)
        {
            self.path_timer = None;
        }
    }

    /// Something is carried, which ends a quiet time.
    pub(super) fn note_traffic(&mut self, now: Instant) {
        if now.since(self.last_traffic) >= self.patience.keep_alive {
            self.path_timer = None;
        }
        self.last_traffic = now;
    }

    fn rest_of(&self, pacing: Option<Instant>, path_timer: (Instant, WakeReason)) -> Rest {
        let idle = (self.last_received + self.idle_timeout(), WakeReason::Idle);
        let mut timer = idle.min(path_timer);
        let mut consider = |at: Option<Instant>, reason| {
            if let Some(at) = at
                && at <= timer.0
            {
                timer = timer.min((at, reason));
            }
        };
        for path in &self.paths {
            consider(path.ack_due(), WakeReason::Ack);
        }
        consider(self.alarm_due(), WakeReason::Ack);
        consider(self.flow_timers.first(), WakeReason::Lifetime);
        consider(self.watches.next_look(), WakeReason::Target);
        consider(self.scheduler_wakes(), WakeReason::Scheduler);
        Rest::new(timer, pacing)
    }

    /// Acts on all timers that have run out.
    pub fn handle_timeout(&mut self, now: Instant) {
        // Nearly always it is only a pacer that lets the next datagram go.
        if self.rest.take().is_some_and(|rest| now < rest.timer.0) {
            return;
        }
        self.views_hold = false;
        self.path_timer = None;
        if self.ending.is_some() {
            return;
        }
        if now.since(self.last_received) >= self.idle_timeout() {
            return self.end(CloseReason::IdleTimeout);
        }
        for index in 0..self.paths.len() {
            self.on_path_timers(now, index);
        }
        while let Some(id) = self.flow_timers.take_due(now, &mut self.flows) {
            if let Some(flow) = self.flows.get_mut(&id) {
                match &mut flow.send {
                    SendHalf::Packets(packets) => {
                        if packets.expire(now).is_some() {
                            flow.counters.expired_messages = packets.expired();
                            self.control.insert(Control::Forward(id));
                        }
                    }
                    SendHalf::Units(units) => {
                        for unit in units.expire(now) {
                            flow.queues.drop_unit(unit);
                        }
                        self.waiting.account(flow);
                    }
                    SendHalf::Stream(_) => {}
                }
                if let Some(coder) = &mut flow.coder {
                    coder.release(&flow.send);
                }
                if let RecvHalf::Packets(packets) = &mut flow.recv {
                    packets.on_deadline(now);
                }
                if self.observer.listens() {
                    self.tell_progress(now, id, None);
                }
            }
            self.give_up_code(now, id);
            self.settle_units(now, id);
            self.retime(id);
            self.after_receive(now, id);
            self.end_lingering(now, id);
            self.notify_writable(id);
        }
        self.relieve(now);
        self.look_at_rates(now);
        if self.scheduler_wakes().is_some_and(|at| at <= now) {
            self.wake_schedulers(now);
            // What they take back may leave room to others.
            self.replan.widen(Scope::Concerned);
        }
    }

    /// When the first scheduler wants to plan although nothing happened; never while no path could
    /// take what it plans.
    fn scheduler_wakes(&self) -> Option<Instant> {
        let &(at, _) = self.wishes.first()?;
        self.usable().next().is_some().then_some(at)
    }

    fn on_path_timers(&mut self, now: Instant, index: usize) {
        let ack_delay = self.peer_ack_delay();
        let dead_after = self.config.dead_after;
        let keep_alive = self.keep_alive(&self.paths[index]);
        let path = &mut self.paths[index];
        if path.next_timer(ack_delay, dead_after, keep_alive).0 > now {
            return;
        }
        if path.ledger.loss_time().is_some_and(|at| at <= now) {
            let lost = path.ledger.detect_lost(now, &path.rtt);
            path.on_timer_losses(now, &lost, ack_delay);
            self.conclude_size(now, index);
            self.on_packets_lost(now, index, lost);
        }
        let path = &mut self.paths[index];
        if path.overdue_at(ack_delay).is_some_and(|at| at <= now) {
            self.on_overdue(now, index);
        }
        let path = &mut self.paths[index];
        if path.late_at(ack_delay).is_some_and(|at| at <= now) {
            self.reinject(now, index);
        }
        let path = &mut self.paths[index];
        if path.probe_timeout_at(ack_delay).is_some_and(|at| at <= now) {
            self.on_probe_timeout(now, index);
        }
        for _ in 0..2 {
            let path = &mut self.paths[index];
            match path.next_timer(ack_delay, dead_after, keep_alive) {
                (at, PathTimer::Death) if at <= now => self.bury(now, index),
                (at, PathTimer::Trial) if at <= now => self.probe(now, index),
                (at, PathTimer::KeepAlive) if at <= now => self.on_quiet(now, index),
                _ => break,
            }
        }
    }

    /// Nothing came back for long: send the oldest symbols again, on the path that should deliver
    /// them first, and ask this path for a sign of life (RFC 9002 §6.2.4).
    fn on_probe_timeout(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        path.pto_backoff += 1;
        path.counters.probe_timeouts += 1;
        path.ask_for_life(2);
        // The timer counts from the last packet sent; a blocked carrier must not make it spin.
        path.last_eliciting_sent = now;
        let own = path.id;
        let oldest: alloc::vec::Vec<_> = path
            .ledger
            .open_packets()
            .take(2)
            .flat_map(|p| p.frames.iter().copied())
            .collect();
        let cost = path.cost.rank();
        let views = self.views();
        for frame in oldest {
            match frame {
                SentFrame::Forward { flow, .. } => self.say_again(Control::Forward(flow)),
                SentFrame::Control(control) => self.say_again(control),
                SentFrame::Repair { .. } => {}
                SentFrame::Data {
                    kind: EmissionKind::Repair,
                    ..
                } => {}
                SentFrame::Data {
                    flow: id,
                    symbol,
                    kind,
                    ..
                } => {
                    let source = kind == EmissionKind::Source;
                    let arrival = |v: &&PathView| v.arrival(symbol.len) + paid(v, cost);
                    let best = views.iter().min_by_key(arrival);
                    let target = best.map_or(own, |v| v.id);
                    if let Some(flow) = self.flows.get_mut(&id)
                        && !flow.send.is_settled(&symbol)
                        && !flow.queues.holds(&symbol, source)
                    {
                        let kind = EmissionKind::Copy;
                        flow.queues.push_urgent(target, Assigned { symbol, kind });
                        self.activate_queued(id);
                    }
                }
            }
        }
    }
}
