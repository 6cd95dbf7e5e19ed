//! Time passes.

use marline_base::{Duration, Instant};

use super::Session;
use super::again::Arrivals;
use super::share::Scope;
use super::spill::paid;
use super::timers::{Rest, WakeReason};
use crate::event::CloseReason;
use crate::flow::{Assigned, RecvHalf, SendHalf};
use crate::path::{Control, EmissionKind, Path, PathState, PathTimer, SentFrame};
use crate::sched::PathView;
use crate::wire::{PathId, PathQuiet};

/// Keep-alives of a session that carries nothing are this many times rarer: half the wake-ups
/// of a device at rest.
const QUIET: u32 = 2;

/// Of traffic that is there something is heard within this time, nearly always: packets of live
/// streams and round trips are 20 to 50 ms apart.
const ALARM: Duration = Duration::from_millis(100);

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
        let rest = self.timers.rest.unwrap_or_else(|| self.next_rest(now));
        Some(rest.wake)
    }

    /// Does nothing leave now because nothing happened since all that could had left?
    #[inline]
    pub(super) fn rests(&self, now: Instant) -> bool {
        let rests = !self.has_to_plan() && self.timers.rest.is_some_and(|rest| now < rest.wake.0);
        debug_assert!(
            !rests
                || self
                    .timers
                    .rest
                    .is_some_and(|rest| rest.ends_by(&self.next_rest(now))),
            "an input did not end the rest {:?}: it is {:?}",
            self.timers.rest,
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
        let path_timer = match self.timers.path {
            Some(timer) => timer,
            None => *self.timers.path.insert(self.next_path_timer()),
        };
        let paths = 0..self.paths.len();
        let find = || paths.filter_map(|index| self.sends_at(now, index)).min();
        self.rest_of(pacing.unwrap_or_else(find), path_timer)
    }

    /// Nothing but data arrived while the session rested: it rests on, but until no later than what
    /// that has made due.
    pub(super) fn rest_on(&mut self, now: Instant, rest: &Rest) {
        let is_asked = self.paths.iter().any(|path| path.received.is_asked());
        if self.egress.control.is_empty() && !is_asked && !self.has_to_plan() {
            self.timers.rest = Some(self.rest_until(now, Some(rest.pacing)));
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
        let usual = self.timers.patience.keep_alive;
        // The usual one would go when the session has carried nothing for two of them.
        let is_quiet =
            || (path.last_eliciting() + usual).since(self.timers.last_traffic) >= 2 * usual;
        let pause = if self.is_in_reserve(path) {
            if let Some(asked) = path.quiet.pause(self.timers.patience.quiet) {
                return asked;
            }
            let patience = path.quiet.patience(self.timers.patience.quiet);
            self.alarm_after(path)
                .map_or(patience, |at| at.min(patience))
        } else if is_quiet() {
            (usual * QUIET).min(self.timers.patience.idle / 3)
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
        let proved = path.quiet.proved(self.timers.patience.quiet)?;
        let idle = self.timers.last_received.since(self.timers.last_traffic);
        let alarm = (self.timers.last_received + ALARM).since(path.last_eliciting());
        (idle < self.timers.patience.keep_alive).then(|| alarm.max(proved))
    }

    /// Is the path on standby beside an active one?
    pub(super) fn is_in_reserve(&self, path: &Path) -> bool {
        let is_active = |path: &Path| path.state() == PathState::Active;
        path.state() == PathState::Standby && self.paths.iter().any(is_active)
    }

    /// A path was quiet for as long as it may be: which ping is next?
    fn on_quiet(&mut self, now: Instant, index: usize) {
        let range = self.timers.patience.quiet;
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
        let range = self.timers.patience.quiet;
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
        self.egress.control.insert(Control::PathQuiet(path.id));
        self.timers.path = None;
    }

    /// The peer asks for a ping after a quiet time.
    pub(super) fn on_peer_quiet(&mut self, frame: &PathQuiet) {
        let quiet = Duration::from_millis(frame.quiet_ms);
        if let Some(path) = self.path_mut(frame.path)
            && path.quiet.on_asked(frame.sequence, quiet)
        {
            self.timers.path = None;
        }
    }

    /// Something is carried, which ends a quiet time.
    pub(super) fn note_traffic(&mut self, now: Instant) {
        if now.since(self.timers.last_traffic) >= self.timers.patience.keep_alive {
            self.timers.path = None;
        }
        self.timers.last_traffic = now;
    }

    fn rest_of(&self, pacing: Option<Instant>, path_timer: (Instant, WakeReason)) -> Rest {
        let idle = (
            self.timers.last_received + self.idle_timeout(),
            WakeReason::Idle,
        );
        let mut timer = idle.min(path_timer);
        let mut consider = |at: Option<Instant>, reason| {
            if let Some(at) = at
                && at <= timer.0
            {
                timer = timer.min((at, reason));
            }
        };
        for path in self.paths.iter() {
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
        if self
            .timers
            .rest
            .take()
            .is_some_and(|rest| now < rest.timer.0)
        {
            return;
        }
        self.timers.path = None;
        if self.ending.is_some() {
            return;
        }
        if now.since(self.timers.last_received) >= self.idle_timeout() {
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
                            self.egress.control.insert(Control::Forward(id));
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
            self.planning.widen(Scope::Concerned);
        }
    }

    /// When the first scheduler wants to plan although nothing happened; never while no path could
    /// take what it plans.
    fn scheduler_wakes(&self) -> Option<Instant> {
        let at = self.planning.first_wish()?;
        self.paths.usable().next().is_some().then_some(at)
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
        let views: alloc::vec::Vec<_> = self.view_usable().collect();
        let arrivals = Arrivals::by(now, &views);
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
                    let arrival = |v: &&PathView| arrivals.after(v, symbol.len) + paid(v, cost);
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
