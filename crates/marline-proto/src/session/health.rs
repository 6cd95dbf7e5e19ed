//! Evidence about paths, and what follows from it.
//!
//! Feedback is *overdue* when it is later than the round trip plus a margin plus the peer's
//! acknowledgement delay. The margin is the largest of four deviations, 10 ms, and the largest jump
//! of the round trip in the last 10 to 20 s, which counts up to half the round trip
//! (`path/timers.rs`). Overdue feedback is acted on before it is known to mean loss:
//!
//! * What is overdue is copied to other paths, and the path gets a probe.
//! * Where the path's law makes it likely enough that it is dark, and no longer that packets are
//!   late or a few in a row lost (`law/hazard.rs`), the path is *suspect*. What it has in flight is
//!   copied to the other paths, and it carries copies and probes only, until eight copies under
//!   load, or three probes when idle, have been acknowledged. One answered probe is not enough: a
//!   drained link always measures well.
//! * What the path did before counts, as the law learns from it: that packets arrive late or are
//!   lost makes the next doubt later, an outage makes it sooner.
//! * A path that stays silent for [`Config::dead_after`](crate::Config::dead_after) is *dead*. It
//!   is probed ever more rarely and comes back by the same trial.
//! * With no better path left, standby paths and then suspect paths carry everything.

use alloc::format;

use marline_base::{Duration, Instant, Rate};

use super::Session;
use super::share::Scope;
use crate::flow::{Assigned, Symbol};
use crate::law::Verdict;
use crate::path::{EmissionKind, Health, PathState, Reason, Trial};
use crate::wire::{FlowId, PathId};

/// A path that is dark with this probability is doubted. A doubt costs copies of what is in flight,
/// and is over with a few answers in time; an outage that nobody notices costs everything that is
/// sent into it: so one doubt in ten needs to be right. From 0.03 to 0.2 the means of the bench
/// differ by a hundredth, but for the silence of a download, which is 2 % longer at 0.2
/// (`marline repro field --quick --auto-only`, seeds 2001 to 2006).
const DOUBT: f64 = 0.1;
/// A silence is looked at again when it has lasted longer by its part of this: what it shows grows
/// with its length. With 4 or 64 the same means differ by a hundredth.
const LOOKS: u32 = 16;
/// Unanswered probes of a dead path that are remembered: half a minute of them.
const MAX_UNANSWERED: u64 = 16;
/// Data sent longer ago than this is no load: a live stream has a packet each 20 ms or more
/// often.
const LOAD_MEMORY: Duration = Duration::from_millis(50);

impl Session {
    /// Feedback is missing or bad: the path carries only copies and probes from now on, and what
    /// is in flight on it is copied to the others.
    pub(super) fn suspect(&mut self, now: Instant, index: usize, reason: Reason) {
        let path = &mut self.paths[index];
        if !matches!(path.health, Health::Active) {
            return;
        }
        let missed = path.ledger.oldest_open().unwrap_or(now);
        path.health = Health::Suspect(Trial::new(now, missed));
        path.reason = reason;
        path.loss.doubt();
        path.law.on_doubt();
        path.counters.suspicions += 1;
        let id = path.id;
        self.announce(now, id);
        // Without another path there is nowhere to rescue to; loss detection does what it can.
        if self.has_active_path() {
            self.evacuate(now, index);
        }
        self.give_up_codes(now);
        self.planning.widen(Scope::All);
    }

    /// Feedback is overdue. Is the path dark, or are a few packets late or lost? Its law says how
    /// likely each is. As long as it may be alive, what is overdue is copied and the path is asked.
    pub(super) fn on_overdue(&mut self, now: Instant, index: usize) {
        let ack_delay = self.peer_ack_delay();
        let detour = self.detour(index);
        let path = &mut self.paths[index];
        let (silence, overdue) = (path.overdue_silence(now), path.overdue(now, ack_delay));
        // One packet alone is copied, and the path asked: nothing else is at stake.
        if overdue > 1 && silence.dark >= DOUBT && silence.is_worth(detour) {
            return self.suspect(now, index, Reason::Borrowed("feedback is overdue"));
        }
        let again = silence.lasted() / LOOKS;
        path.look_again = (overdue > 1 && again > Duration::ZERO).then(|| now + again);
        if path.feedback_at(ack_delay).is_none_or(|at| at > now) {
            return;
        }
        path.ask_for_life(1);
        let overdue = path.ledger.rescue(0, overdue.max(1), |_| true);
        let doubt = path.rtt.smoothed();
        self.send_rescued(now, index, overdue, EmissionKind::Copy, doubt);
    }

    /// How long the other paths would be busy with what is in flight on the one at `index`: zero
    /// without any.
    fn detour(&self, index: usize) -> Duration {
        let others = self.paths.iter().enumerate();
        let active = others.filter(|(i, path)| *i != index && path.state() == PathState::Active);
        match active.map(|(_, path)| path.rate()).sum() {
            Rate::ZERO => Duration::ZERO,
            rates => rates.time_for(self.paths[index].in_flight()),
        }
    }

    /// Packets were acknowledged on a path: it is alive, and perhaps cleared of suspicion. Of those
    /// sent during its trial there are `packets`, `with_data` of them with data.
    pub(super) fn on_alive(&mut self, now: Instant, index: usize, packets: u32, with_data: u32) {
        let on_trial = self.paths[index].trial().is_some();
        let load = on_trial && self.load(now).is_some();
        let path = &mut self.paths[index];
        path.last_progress = now;
        path.look_again = None;
        path.pto_backoff = 0;
        let cleared = match &mut path.health {
            Health::Validating => {
                path.reason = Reason::Borrowed("answered");
                true
            }
            Health::Active => false,
            Health::Dead(trial) => {
                let mut trial = *trial;
                trial.on_acked(now, with_data > 0, load);
                path.health = Health::Suspect(trial);
                path.reason = Reason::Borrowed("answers again; on trial");
                let id = path.id;
                self.announce(now, id);
                self.planning.widen(Scope::All);
                return;
            }
            Health::Suspect(trial) => {
                let mut cleared = false;
                trial.heard = now;
                for n in 0..packets {
                    cleared |= trial.on_acked(now, n < with_data, load);
                }
                if cleared {
                    let for_ms = now.since(trial.since).as_millis();
                    path.reason =
                        Reason::Owned(format!("answered its probes after {for_ms} ms of doubt"));
                    path.law.on_certain(if trial.is_founded() {
                        path.loss.on_outage();
                        Verdict::Took
                    } else {
                        Verdict::Mistake
                    });
                }
                cleared
            }
        };
        if cleared {
            self.readmit(now, index);
        }
    }

    fn readmit(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        if matches!(path.health, Health::Suspect(_)) {
            path.on_recovery(now);
        }
        path.health = Health::Active;
        path.loss.restart();
        let id = path.id;
        self.announce(now, id);
        // While nothing better was left, paths in doubt carried what nobody else has.
        for other in 0..self.paths.len() {
            if matches!(self.paths[other].health, Health::Suspect(_)) {
                self.evacuate(now, other);
            }
        }
        self.planning.widen(Scope::All);
    }

    /// Everything that was in flight when a path came under suspicion has arrived after all.
    pub(super) fn clear_if_only_late(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        if let Health::Suspect(trial) = &path.health
            && !trial.is_founded()
            && path
                .ledger
                .oldest_open()
                .is_none_or(|sent| sent >= trial.since)
        {
            path.reason = Reason::Borrowed("was only late");
            // A silence that nothing was lost in.
            path.law.on_certain(Verdict::Held);
            self.readmit(now, index);
        }
    }

    /// A packet that left at `sent` was acknowledged without delay.
    pub(super) fn on_answer_in_time(&mut self, now: Instant, index: usize, sent: Instant) {
        let path = &mut self.paths[index];
        if let Health::Suspect(trial) = &mut path.health
            && trial.on_acked_in_time(now, sent)
        {
            path.reason = Reason::Borrowed("lost some packets in a row");
            path.law.on_certain(Verdict::Burst);
            self.readmit(now, index);
        }
    }

    /// Packets were declared lost on a path.
    pub(super) fn on_losses(&mut self, now: Instant, index: usize, newest_sent: Instant) {
        let path = &mut self.paths[index];
        if let Health::Suspect(trial) = &mut path.health {
            trial.on_lost(newest_sent);
        }
        if path.loss.is_heavy() {
            let reason = Reason::Borrowed("lost three of four packets lately");
            self.suspect(now, index, reason);
        }
    }

    /// A suspect path stayed silent: what it holds is free, and probes grow rare. It was not only
    /// late: what it holds is given up and will not show that, so its trial has to.
    pub(super) fn bury(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        let mut trial = match &path.health {
            Health::Suspect(trial) => *trial,
            Health::Validating => Trial::new(now, now),
            Health::Active | Health::Dead(_) => return,
        };
        trial.found();
        let silent = now.since(trial.heard.min(path.last_progress));
        path.health = Health::Dead(trial);
        path.reason = Reason::Owned(format!("silent for {} ms", silent.as_millis()));
        let id = path.id;
        self.announce(now, id);
        self.free_path(now, index);
    }

    /// A suspect or dead path is due for a probe: a copy of what was sent last elsewhere, so that
    /// it shows under load what it is worth, or a ping if nothing was.
    pub(super) fn probe(&mut self, now: Instant, index: usize) {
        let path = &mut self.paths[index];
        let id = path.id;
        let dead = matches!(path.health, Health::Dead(_));
        if let Some(trial) = path.trial() {
            trial.on_probe(now, dead);
        }
        path.ask_for_life(1);
        if dead && path.ledger.outstanding() >= MAX_UNANSWERED {
            // Probes of a dead path that nobody will answer any more.
            let lost = path.ledger.abandon(now, &path.rtt);
            for packet in lost {
                self.on_frames_lost(now, id, packet);
            }
        }
        if let Some((flow, symbol)) = self.load(now)
            && let Some(flow) = self.flows.get_mut(&flow)
            && flow.queues.is_empty(id)
        {
            let kind = EmissionKind::Copy;
            flow.queues.push_urgent(id, Assigned { symbol, kind });
            let flow = flow.id;
            self.activate_queued(flow);
        }
    }

    /// The symbol sent last, if that was recent enough to call it load.
    fn load(&self, now: Instant) -> Option<(FlowId, Symbol)> {
        let (at, flow, symbol) = self.egress.last_symbol?;
        let wanted = !self.flows.get(&flow)?.send.is_settled(&symbol);
        (wanted && now.since(at) < LOAD_MEMORY).then_some((flow, symbol))
    }

    /// The peer wants the path in reserve, or back in use.
    pub(super) fn on_peer_standby(&mut self, now: Instant, id: PathId, standby: bool, seq: u64) {
        let Some(path) = self.path_mut(id) else {
            return;
        };
        if seq < path.status_seen {
            return;
        }
        path.status_seen = seq + 1;
        if path.standby_remote != standby {
            path.standby_remote = standby;
            path.reason = Reason::Borrowed(if standby {
                "put on standby by the peer"
            } else {
                "taken into use by the peer"
            });
            self.announce(now, id);
            self.planning.widen(Scope::All);
        }
    }

    /// Is any path fit for data?
    pub(super) fn has_active_path(&self) -> bool {
        let mut states = self.paths.iter().map(crate::path::Path::state);
        states.any(|s| matches!(s, PathState::Active | PathState::Standby))
    }
}
