//! All that the session keeps of one path.
//!
//! A rate that was never filled is a lower bound. A path's rate is its controller's model, or the
//! measured delivery rate, only once the sender has filled the path or met a queue on it; before
//! that the rate is at least the window over the round-trip time, limited by what was asked of the
//! path (`session/demand.rs`). Without this an idle path would look useless and stay idle.

use alloc::boxed::Box;

use marline_base::{Duration, Instant, Rate};

use super::cost::Cost;
use super::counters::PathCounters;
use super::delivery::DeliverySampler;
use super::ledger::Ledger;
use super::loss_meter::LossMeter;
use super::one_way::OneWay;
use super::pace::Pace;
use super::pacer::Pacer;
use super::quiet::Quiet;
use super::received::Received;
use super::relayed::Relayed;
use super::repeats::Repeats;
use super::rtt::Rtt;
use super::sent::{SentPacket, Settled};
use super::size::DatagramSize;
use super::trips::Timing;
use super::view::PathView;
use super::{Health, PathParams, PathState, Reason, Trial};
use crate::congestion::carrier::Reported;
use crate::congestion::{self, CarrierState, Controller};
use crate::law::PathLaw;
use crate::wire::PathId;

/// A packet counts as missing when it is later than packets are by this time and by half of its
/// time on the link.
const MISSING: Duration = Duration::from_micros(500);
/// This number of missing packets in a row is a burst of losses, which most likely took the next
/// ones, too.
const BURST: usize = 2;
const BURST_GOES_ON: usize = 2;
/// The newest round trip contradicts a smoothed one that is longer than this number of it: jitter
/// of a whole round trip does not make it so.
const MUCH_SHORTER: u32 = 2;
/// For how long after a doubt a shorter round trip shows that the lateness is over: later it is a
/// queue that is gone.
const RECOVERY: Duration = Duration::from_secs(30);

/// Bytes of a datagram that are not a symbol's: header, frame type, ids, offset, length at their
/// longest, and a little for an acknowledgement that rides along.
pub(crate) const SYMBOL_OVERHEAD: usize = 48;
/// The longest that a datagram puts before a whole message: version, packet number, type, flow,
/// sequence and length.
const PACKET_HEAD: usize = 1 + 8 + 1 + 8 + 8 + 2;
/// A message that is longer than a symbol by no more than this fits one datagram nevertheless, and
/// leaves whole. Seven MPEG-TS packets, bare, in RTP or in SRT, are such messages: parted, each
/// would cost a second datagram.
pub(crate) const WHOLE_MARGIN: u32 = (SYMBOL_OVERHEAD - PACKET_HEAD) as u32;
/// Weight of a sample by which the measured rate forgets a peak: it lasts for a flight or two.
/// A choice, not tuned.
const RATE_DECAY: f64 = 1.0 / 64.0;
/// The rate that the window of a never filled path suggests counts up to what was asked for, or up
/// to this multiple of what the path was seen to carry.
const GROWING: f64 = 1.25;

#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) id: PathId,
    pub(crate) health: Health,
    pub(crate) reason: Reason,
    /// The state that was announced last, and when it came about.
    pub(crate) announced: (PathState, Instant),
    /// When observers got metrics last.
    pub(crate) metrics_at: Option<Instant>,
    pub(crate) standby_local: bool,
    pub(crate) standby_remote: bool,
    /// Sequence number of the last PATH_STATUS sent and of the newest received, plus one.
    pub(crate) status_sent: u64,
    pub(crate) status_seen: u64,
    pub(crate) size: DatagramSize,
    /// That of `size`, as everything else here knows it.
    pub(crate) max_datagram: usize,
    pub(crate) cost: Cost,
    /// What is learnt of its quiet time, where the carrier bears being forgotten.
    pub(crate) quiet: Quiet,
    pub(crate) survives_rebinding: bool,
    pub(crate) ledger: Ledger,
    pub(crate) received: Received,
    pub(crate) rtt: Rtt,
    pub(crate) sampler: DeliverySampler,
    pub(crate) pacer: Pacer,
    pub(crate) controller: Box<dyn Controller>,
    pub(crate) one_way: OneWay,
    pub(crate) law: PathLaw,
    pub(crate) loss: LossMeter,
    pace: Pace,
    /// When the oldest packets were last found to be late.
    pub(super) found_late: Instant,
    /// The shortest time from a packet's departure to the first report of it, by whatever way back.
    soonest: Duration,
    measured_rate: f64,
    /// What is expected now; every packet sent asks, only feedback changes it.
    rate: Rate,
    /// Some rate sample was taken while the sender had more to send than the path took, or a queue
    /// stood on it. While streams ask for a rate and the window is sought, only a queue counts:
    /// such samples show what the window was.
    was_filled: bool,
    /// When it was suspect last, as long as no round trip since then was much shorter than the
    /// smoothed one.
    recovered: Option<Instant>,
    /// What live streams need of it, as long as its capacity is not known.
    asked: Option<Rate>,
    /// Bytes of copies that were queued for it to warm it up.
    pub(crate) warmed: u64,
    /// Symbols that were sent on others while it was to be warmed up.
    pub(crate) passed: u64,
    pub(crate) pto_backoff: u32,
    /// Ack-eliciting packets that must leave whatever the window says.
    pub(crate) probes: u32,
    /// Datagrams in a row that only acknowledged.
    pub(crate) acks_alone: u32,
    pub(crate) last_eliciting_sent: Instant,
    pub(crate) last_eliciting_received: Instant,
    pub(crate) last_progress: Instant,
    /// Packets that another path's way back reported first.
    pub(crate) relayed: Relayed,
    /// Acknowledgements that went this path's own way back and that a quicker way may repeat.
    pub(crate) repeats: Repeats,
    /// Acknowledgements that went by another path's quicker way, one queue for each time they are
    /// repeated.
    pub(crate) hurried: [Repeats; 2],
    /// A round trip that the path's own way back reported after another way did, for the
    /// controller.
    pub(crate) own_trip: Option<Duration>,
    /// When to look again whether the path is dark.
    pub(crate) look_again: Option<Instant>,
    /// The carrier's queue is full; the carrier will report when there is room.
    pub(crate) blocked: bool,
    /// What the carrier reported of its own congestion control, where it has one.
    reported: Option<Reported>,
    pub(crate) counters: PathCounters,
}

impl Path {
    pub(crate) fn new(
        now: Instant,
        id: PathId,
        params: &PathParams,
        controller: Box<dyn Controller>,
    ) -> Self {
        let rtt = Rtt::new(params.rtt);
        let (health, reason) = if params.rtt.is_some() {
            (
                Health::Active,
                "the carrier's handshake reached the peer and back",
            )
        } else {
            (Health::Validating, "new; nothing acknowledged yet")
        };
        let mtu = params.max_datagram as u64;
        let rate = Pacer::rate_for_window(controller.window(), rtt.smoothed());
        let mut path = Self {
            id,
            health,
            reason: Reason::Borrowed(reason),
            announced: (PathState::Validating, now),
            metrics_at: None,
            standby_local: params.standby,
            standby_remote: false,
            status_sent: 0,
            status_seen: 0,
            size: DatagramSize::new(params.max_datagram),
            max_datagram: params.max_datagram,
            cost: Cost::of(params.cost),
            quiet: Quiet::default(),
            survives_rebinding: params.survives_rebinding,
            ledger: Ledger::default(),
            received: Received::default(),
            rtt,
            sampler: DeliverySampler::new(now),
            pacer: Pacer::new(now, mtu, controller.pacing_rate().unwrap_or(rate)),
            controller,
            one_way: OneWay::default(),
            law: PathLaw::default(),
            loss: LossMeter::default(),
            pace: Pace::default(),
            found_late: now,
            soonest: Duration::MAX,
            measured_rate: 0.0,
            rate: Rate::ZERO,
            was_filled: false,
            recovered: None,
            asked: None,
            warmed: 0,
            passed: 0,
            pto_backoff: 0,
            // The first packet goes out at once: it validates the path and takes its time.
            probes: 1,
            acks_alone: 0,
            last_eliciting_sent: now,
            last_eliciting_received: now,
            last_progress: now,
            relayed: Relayed::default(),
            repeats: Repeats::default(),
            hurried: Default::default(),
            own_trip: None,
            look_again: None,
            blocked: false,
            reported: params.carrier_controls.then(Reported::default),
            counters: PathCounters::default(),
        };
        path.rate = path.expected_rate();
        path.announced = (path.state(), now);
        path
    }

    pub(crate) fn state(&self) -> PathState {
        match self.health {
            Health::Validating => PathState::Validating,
            Health::Active if self.standby() => PathState::Standby,
            Health::Active => PathState::Active,
            Health::Suspect(_) => PathState::Suspect,
            Health::Dead(_) => PathState::Dead,
        }
    }

    /// Since when it is in its state; in doubt or dead, since when it is in doubt.
    pub(crate) fn since(&self) -> Instant {
        match &self.health {
            Health::Suspect(trial) | Health::Dead(trial) => trial.since,
            _ => self.announced.1,
        }
    }

    /// Why it is in its state, in words. Of a path in reserve that is who wants it there, whatever
    /// happened to it since.
    pub(crate) fn why(&self) -> &str {
        match self.state() {
            PathState::Standby if self.standby_local => "put on standby here",
            PathState::Standby => "put on standby by the peer",
            _ => &self.reason,
        }
    }

    pub(crate) fn standby(&self) -> bool {
        self.standby_local || self.standby_remote
    }

    pub(crate) fn trial(&mut self) -> Option<&mut Trial> {
        match &mut self.health {
            Health::Suspect(trial) | Health::Dead(trial) => Some(trial),
            _ => None,
        }
    }

    /// Asks for a sign of life by this number of packets.
    pub(crate) fn ask_for_life(&mut self, packets: u32) {
        let short = u32::from(self.size.ask());
        self.probes = self.probes.max(packets + short);
    }

    /// Heeds how long datagrams may be now. False if that is as before.
    pub(crate) fn heed_size(&mut self, now: Instant) -> bool {
        let bytes = self.size.max();
        if bytes == self.max_datagram {
            return false;
        }
        self.max_datagram = bytes;
        self.controller.on_mtu(bytes as u64);
        self.pacer.set_mtu(now, bytes as u64);
        self.repace(now);
        true
    }

    /// Largest symbol that fits a datagram beside the overhead.
    pub(crate) fn symbol(&self) -> u32 {
        (self.max_datagram - SYMBOL_OVERHEAD) as u32
    }

    /// Rate by the controller's model, else as measured. As long as the sender neither filled the
    /// path nor met a queue on it, both are lower bounds, and the window over the round-trip time
    /// is a better guess.
    pub(crate) fn rate(&self) -> Rate {
        debug_assert_eq!(
            self.rate,
            self.expected_rate(),
            "only feedback and demand change it"
        );
        self.rate
    }

    /// The path's own way back reports at `now` what another way reported before: that the packet
    /// which left at `sent` arrived, `delay` before this acknowledgement was written.
    pub(crate) fn on_own_way_back(&mut self, now: Instant, sent: Instant, delay: Duration) {
        self.own_trip = Some(self.rtt.sample(now, now.since(sent), delay));
        self.rate = self.expected_rate();
    }

    fn expected_rate(&self) -> Rate {
        let by_window = Rate::from_bytes_over(self.controller.window(), self.rtt.smoothed());
        let measured = Rate::from_bps(self.measured_rate as u64);
        let model = self.controller.view().bandwidth.unwrap_or(measured);
        if self.was_filled && model > Rate::ZERO {
            // No more than a window a round trip leaves, as while BBR probes the round-trip time.
            model.min(Rate::from_bytes_over(
                self.controller.window(),
                self.rtt.min(),
            ))
        } else {
            model.max(match self.asked {
                Some(asked) => by_window.min(asked.max(model.scaled(GROWING))),
                None => by_window,
            })
        }
    }

    /// The oldest packets are late.
    pub(crate) fn found_late(&mut self, now: Instant) {
        self.found_late = now;
    }

    /// What it delivers now, if that is little beside what was sent.
    pub(crate) fn slow(&self) -> Option<Rate> {
        self.pace.slow()
    }

    /// Live streams need this rate of the path, whose capacity is not known. The window grows while
    /// they use a part of it, and so is no estimate of the capacity.
    pub(crate) fn ask(&mut self, now: Instant, rate: Rate) {
        self.controller.on_demand(rate, self.rtt.smoothed());
        self.asked = Some(rate);
        self.repace(now);
    }

    /// Live streams share the path, or do not any more.
    pub(crate) fn set_live(&mut self, live: congestion::Live) {
        self.controller.on_live(live);
    }

    /// The live streams are over, or the path's capacity is known.
    pub(crate) fn ask_no_more(&mut self) {
        if self.asked.take().is_some() {
            self.rate = self.expected_rate();
        }
    }

    /// Was it asked for what streams need?
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// The path carries data again after it was in doubt. As soon as a round trip is much shorter
    /// than the smoothed one, how late packets were meanwhile is forgotten: nothing else would show
    /// that they are not any more, since nobody chooses such a path. Later that is a queue that is
    /// gone.
    pub(crate) fn on_recovery(&mut self, now: Instant) {
        self.recovered = Some(now);
    }

    fn forget_lateness(&mut self, now: Instant) {
        self.recovered = self.recovered.filter(|at| now.since(*at) <= RECOVERY);
        if self.recovered.is_some() && self.rtt.latest() < self.rtt.smoothed() / MUCH_SHORTER {
            self.law.on_recovery();
            self.recovered = None;
        }
    }

    /// Did the sender ever have more to send than the path took, or meet a queue, so that its
    /// capacity is known?
    pub(crate) fn was_filled(&self) -> bool {
        self.was_filled
    }

    pub(crate) fn view(&self, queued: u64) -> PathView {
        PathView {
            id: self.id,
            window: self.controller.window(),
            in_flight: self.in_flight(),
            queued,
            queued_own: 0,
            srtt: self.rtt.smoothed(),
            rtt_var: self.rtt.variation(),
            min_rtt: self.rtt.min(),
            rate: self.rate(),
            loss: self.loss.fraction(),
            flaps: self.law.flaps(),
            queueing: self.one_way.queueing(),
            back_queueing: self.one_way.back_queueing(),
            spacing: self.one_way.spacing(),
            forecast: self.forecast(),
            symbol: self.symbol(),
            cost: self.cost.rank(),
            congestion: self.controller.view(),
        }
    }

    /// Bytes that count against the controller's window.
    pub(crate) fn in_flight(&self) -> u64 {
        self.reported
            .map_or_else(|| self.ledger.in_flight(), |reported| reported.in_flight())
    }

    /// What a carrier that delivers everything needs to send a lost packet again by itself: a round
    /// trip, by which all that follows is late and nothing is wrong.
    pub(crate) fn mending(&self) -> Duration {
        self.reported
            .map_or(Duration::ZERO, |_| self.rtt.smoothed())
    }

    /// How many of the oldest open packets from number `from` on, rescued ones left out, are taken
    /// for lost: those that should have arrived before `at_us` on the peer's clock, when it had
    /// none of them, and what a burst of losses will have taken after them.
    pub(crate) fn missing(&self, from: u64, at_us: u64) -> usize {
        let service = self.rate().time_for(u64::from(self.symbol()));
        let margin = MISSING + service / 2;
        let late = self.ledger.open_from(from).take_while(|p| {
            let by = self.law.arrives_by(p.sent, &p.left);
            by.is_some_and(|by| by.saturating_add(margin.as_micros() as i64) < at_us as i64)
        });
        let late = late.count();
        let more = if late >= BURST { BURST_GOES_ON } else { 0 };
        let gone = self.ledger.open_from(from).take(late + more);
        gone.filter(|p| !p.rescued).count()
    }

    /// The carrier's own congestion control is in this state; false if nothing changed.
    pub(crate) fn on_carrier(&mut self, now: Instant, state: &CarrierState) -> bool {
        if self.reported.is_none() {
            return false;
        }
        let stands = |path: &Self| (path.in_flight(), path.controller.window(), path.rate);
        let before = stands(self);
        self.reported = Some(Reported::new(state));
        self.controller.on_carrier(state);
        self.repace(now);
        before != stands(self)
    }

    pub(crate) fn on_sent(&mut self, now: Instant, mut packet: SentPacket, app_limited: bool) {
        let size = u64::from(packet.size);
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += size;
        if let Some(reported) = &mut self.reported {
            reported.on_sent(size);
        }
        if packet.eliciting {
            self.last_eliciting_sent = now;
            self.probes = self.probes.saturating_sub(1);
            packet.left = self.expect(now, packet.size);
            let behind_ours = self.rtt.min() + packet.left.waits();
            let trip = self.rtt.smoothed().max(behind_ours);
            packet.patience = trip + self.lateness(Duration::ZERO);
            self.ledger.on_sent(packet);
            let in_flight = self.ledger.in_flight();
            self.controller.on_sent(now, size, in_flight, app_limited);
            self.pacer.on_sent(now, size);
            if app_limited {
                self.sampler.mark_app_limited(in_flight);
            }
        } else {
            self.law.on_sent_beside(now, packet.size, self.carries());
            self.ledger.on_sent(packet);
        }
    }

    /// Feeds estimators and congestion control with what one acknowledgement settled.
    pub(crate) fn on_settled(
        &mut self,
        now: Instant,
        acked: &[Settled],
        lost: &[Settled],
        timing: Timing,
        prior_in_flight: u64,
        max_ack_delay: Duration,
    ) {
        self.on_lost(now, lost, max_ack_delay);
        self.forget_lateness(now);
        let mut bytes = 0;
        for packet in acked.iter().filter(|p| p.eliciting) {
            self.size.on_arrived(packet.sent, packet.size);
            if packet.spurious {
                self.loss.revoke();
                self.law.on_spurious();
                let size = u64::from(packet.size);
                self.controller.on_spurious_loss(now, size, packet.sent);
                self.counters.spurious_losses += 1;
                continue;
            }
            bytes += u64::from(packet.size);
            self.loss.record(false);
            let size = u64::from(packet.size);
            self.soonest = self.soonest.min(now.since(packet.sent));
            self.sampler
                .on_acked(timing.heard, size, packet.sent, packet.delivery);
        }
        self.counters.acked_bytes += bytes;
        self.on_reported(now, acked);
        let newest = acked.iter().map(|p| p.sent).max();
        if let (Some(sent), true) = (newest, bytes > 0) {
            let (delivered, trip) = (self.sampler.delivered(), self.rtt.smoothed());
            self.pace.on_ack(now, sent, delivered, trip);
            let report = self.sampler.sample(self.soonest.min(self.rtt.min()));
            if let Some(sample) = report.and_then(|r| r.sample) {
                let rate = sample.rate.as_bps() as f64;
                let is_sought = self.asked.is_some() && self.controller.view().phase.is_search();
                self.was_filled |= !sample.app_limited && !is_sought
                    || self.rtt.shows_queue(self.one_way.back_queueing())
                    || self.one_way.shows_growing_queue();
                if rate > self.measured_rate {
                    self.measured_rate = rate;
                } else if !sample.app_limited {
                    self.measured_rate += (rate - self.measured_rate) * RATE_DECAY;
                }
            }
            let delivered = self.sampler.delivered();
            self.controller.on_ack(
                now,
                &congestion::Ack {
                    bytes,
                    prior_in_flight,
                    in_flight: self.ledger.in_flight(),
                    sent,
                    rtt: timing.rtt,
                    back_queueing: self.one_way.back_queueing(),
                    srtt: self.rtt.smoothed(),
                    delivery: report.and_then(|r| r.sample),
                    delivered,
                    delivered_when_sent: report.map_or(delivered, |r| r.delivered_when_sent),
                },
            );
        }
        self.repace(now);
    }

    fn on_lost(&mut self, now: Instant, lost: &[Settled], max_ack_delay: Duration) {
        let eliciting = || lost.iter().filter(|p| p.eliciting);
        let Some(sent) = eliciting().map(|p| p.sent).max() else {
            return;
        };
        let bytes = eliciting().map(|p| u64::from(p.size)).sum();
        for packet in eliciting() {
            self.size.on_lost(packet.sent, packet.size);
            self.loss.record(true);
            self.law.on_lost(packet.number, packet.sent);
            self.counters.lost_packets += 1;
        }
        // RFC 9002 §7.6: two lost packets so far apart, with all between them lost.
        let persistent = 3 * self.rtt.probe_timeout(max_ack_delay);
        let mut run: Option<&Settled> = None;
        let mut previous = None;
        let mut is_persistent = false;
        for packet in lost {
            if previous.is_none_or(|n| packet.number != n + 1) {
                run = None;
            }
            previous = Some(packet.number);
            let first = run.get_or_insert(packet);
            is_persistent |= packet.sent.since(first.sent) > persistent && self.rtt.has_sample();
        }
        let loss = congestion::Loss {
            bytes,
            sent,
            in_flight: self.ledger.in_flight(),
            persistent: is_persistent,
        };
        self.controller.on_loss(now, &loss);
        self.repace(now);
    }

    /// Losses that the timer found.
    pub(crate) fn on_timer_losses(&mut self, now: Instant, lost: &[Settled], delay: Duration) {
        self.on_lost(now, lost, delay);
    }

    fn repace(&mut self, now: Instant) {
        let rate = self.controller.pacing_rate().unwrap_or_else(|| {
            Pacer::rate_for_window(self.controller.window(), self.rtt.smoothed())
        });
        self.pacer.set_rate(now, rate);
        self.rate = self.expected_rate();
    }
}

#[cfg(test)]
mod tests;
