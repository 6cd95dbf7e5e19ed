//! A path's estimator, fed by a session's feedback.

use alloc::vec::Vec;

use marline_base::{Duration, Instant};

use super::burst::Line;
use super::flight::{Flight, PAUSE, State};
use super::jitter::Jitter;
use super::promises::PathPromises;
use super::unit::seconds;
use crate::path::EmissionKind;
use crate::path::least::Least;
use crate::sched::capacity::{Memory, Skip};
use crate::sched::{Feedback, Outcome};

/// The least way is that of the last one or two of these: clocks drift, and routes change.
const WINDOW: Duration = Duration::from_secs(10);

/// Turns what is reported to a scheduler about its symbols into departures from the bottleneck: an
/// arrival on the peer's clock, less the least time that a packet took, on our clock. So a packet
/// that waited nowhere seems to leave when it was sent.
///
/// Where delays scatter by more than a packet's service ([`Jitter`]) the departures of a burst are
/// instead the line through its arrivals in the order of sending, less the mean time that a packet
/// took which waited nowhere: from the least time, and one by one, the scatter would be taken for
/// service.
#[derive(Debug)]
pub(super) struct Arrivals {
    pub(super) skip: Skip,
    /// What was said of the path's packets.
    pub(super) promises: PathPromises,
    flight: Flight,
    jitter: Jitter,
    /// The burst whose packets become known.
    line: Line,
    /// When the first packet of it was sent (seconds).
    came: Option<f64>,
    /// When the one before ended, by its line (seconds, by the peer's clock).
    ended: Option<f64>,
    /// Sum and number of the latest arrivals.
    latest: (f64, usize),
    /// When the latest report came.
    heard: Instant,
    /// Least time there, and back, on two clocks.
    there: Least<Instant, i64>,
    back: Least<Instant, i64>,
}

impl Arrivals {
    pub(super) fn new(memory: Memory) -> Self {
        Self {
            skip: Skip::relative(memory),
            promises: PathPromises::default(),
            flight: Flight::default(),
            jitter: Jitter::default(),
            line: Line::default(),
            came: None,
            ended: None,
            latest: (0.0, 0),
            heard: Instant::ZERO,
            there: Least::default(),
            back: Least::default(),
        }
    }

    /// What is known of the path, for another flow: nothing of packets and promises of this one.
    pub(super) fn heir(&self) -> Self {
        Self {
            skip: self.skip.heir(),
            promises: PathPromises::default(),
            flight: Flight::default(),
            jitter: self.jitter.clone(),
            line: Line::default(),
            came: None,
            ended: None,
            latest: (0.0, 0),
            heard: self.heard,
            there: self.there,
            back: self.back,
        }
    }

    pub(super) fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        let bits = f64::from(feedback.symbol.len) * 8.0;
        let sent = seconds(feedback.sent);
        let planned = matches!(feedback.kind, EmissionKind::Source | EmissionKind::Repair);
        let block = planned.then_some(feedback.symbol.unit);
        match (feedback.outcome, feedback.arrived_us) {
            (Outcome::Sent, _) => {
                self.skip.on_sent(sent, bits);
                self.flight.sent(feedback, bits);
            }
            (Outcome::Acked, Some(arrived)) => {
                let way = arrived as i64 - feedback.sent.as_micros() as i64;
                self.there.note(now, WINDOW, way);
                if feedback.own_way {
                    let back = now.as_micros() as i64 - arrived as i64;
                    self.back.note(now, WINDOW, back);
                }
                let state = State::Arrived {
                    at: arrived,
                    heard: now,
                };
                self.flight.settle(feedback, state);
                self.skip.on_gone(sent, bits);
                if let Some(block) = block {
                    let left = sent + (way - self.least()) as f64 * 1e-6;
                    self.promises.left(block, left);
                }
            }
            (Outcome::Acked, None) | (Outcome::Lost, _) => {
                match self.jitter.group() {
                    Some(_) => self.skip.on_gone(sent, bits),
                    None => self.skip.on_lost(sent, bits),
                }
                self.flight.settle(feedback, State::Gone);
                if let Some(block) = block {
                    self.promises.gone(block);
                }
            }
            // It was recovered by others of its block; where it is, is not known yet.
            (Outcome::Recovered, _) => {}
        }
    }

    /// Least time to the peer (seconds): half of the least ways there and back, which jitter seldom
    /// grants the same packet.
    pub(super) fn delay(&self, min_rtt: Duration) -> f64 {
        let half = min_rtt.as_secs_f64() / 2.0;
        // A peer may say anything of its clock.
        let ways = self.there.get().zip(self.back.get());
        let both = ways.and_then(|(there, back)| there.checked_add(back));
        match both {
            Some(both) if both > 0 => half.min(both as f64 * 0.5e-6),
            _ => half,
        }
    }

    /// Do arrivals scatter by more than a packet's service, as far as is known?
    pub(super) fn scatters(&self) -> bool {
        !self.jitter.is_even()
    }

    /// What is to be added to it for the last packets of a block, because of jitter (seconds).
    pub(super) fn hold_up(&self) -> f64 {
        self.jitter.hold_up(self.least() as f64 * 1e-6)
    }

    /// Takes what was reported.
    pub(super) fn digest(&mut self) {
        if self.jitter.group().is_none() {
            self.measure_each();
        }
        while let Some((packet, next)) = self.flight.next() {
            let ends = next.is_none_or(|next| next.since(packet.sent) > PAUSE);
            let arrived = match packet.state {
                State::Arrived { at, .. } => Some(at as f64 * 1e-6),
                _ => None,
            };
            self.jitter.follow(packet.sent, arrived, ends);
            self.came.get_or_insert(seconds(packet.sent));
            if packet.measured {
                // Measured by itself, before it was known how arrivals scatter.
                self.line = Line::default();
                self.came = None;
                continue;
            }
            if let State::Arrived { at, heard } = packet.state {
                self.proceed(at as f64 * 1e-6);
                self.heard = self.heard.max(heard);
            }
            self.line.push(arrived, packet.bits);
            let long = self
                .line
                .is_long(self.jitter.deviation(), self.jitter.gap());
            if ends || long {
                self.measure(ends);
            }
        }
    }

    /// Each packet shows its departure, in the order of arrival.
    ///
    /// What the first of a burst took is not known: the bottleneck may have had nothing to do
    /// before it. By the least time it had, but where the route became longer everything seems to
    /// have waited until that is forgotten.
    fn measure_each(&mut self) {
        let mut arrived: Vec<(u64, Instant, Instant, f64, bool)> = Vec::new();
        for packet in self.flight.iter_mut() {
            if let State::Arrived { at, heard } = packet.state
                && !packet.measured
            {
                packet.measured = true;
                arrived.push((at, packet.sent, heard, packet.bits, packet.first));
            }
        }
        arrived.sort_unstable_by_key(|(at, sent, ..)| (*at, *sent));
        for (at, sent, heard, bits, first) in arrived {
            if first {
                self.skip.interrupt();
            }
            let way = at as i64 - sent.as_micros() as i64;
            let came = seconds(sent);
            let left = came + (way - self.least()) as f64 * 1e-6;
            self.skip.measure(seconds(heard), came, left, bits);
        }
    }

    /// The latest arrivals say how far the bottleneck has come.
    fn proceed(&mut self, arrived: f64) {
        self.latest = (self.latest.0 + arrived, self.latest.1 + 1);
        let (sum, count) = self.latest;
        if count >= self.jitter.group().unwrap_or(1) {
            let count = count as f64;
            let ahead = 0.5 * (count - 1.0) * self.jitter.gap();
            self.skip.on_progress(sum / count + ahead - self.way());
            self.latest = (0.0, 0);
        }
    }

    /// The line through the packets of a burst shows what was served.
    fn measure(&mut self, ends: bool) {
        let line = core::mem::take(&mut self.line);
        let came = if ends { self.came.take() } else { self.came };
        let before = if ends { self.ended.take() } else { self.ended };
        let (Some(came), Some(stretch)) = (came, line.stretch()) else {
            return;
        };
        self.ended = Some(stretch.last);
        // The bottleneck had nothing to do in between, for certain.
        let pause = self.jitter.gap() + self.jitter.deviation();
        if before.is_none_or(|before| stretch.first - before > pause) {
            self.jitter.unqueued(stretch.first - came);
        }
        let lasts = self
            .jitter
            .plausible(stretch.last - stretch.first, stretch.bits);
        let middle = 0.5 * (stretch.first + stretch.last) - self.way();
        let (first, last) = (middle - 0.5 * lasts, middle + 0.5 * lasts);
        self.skip
            .on_stretch(seconds(self.heard), first, last, stretch.bits);
    }

    /// Least time there (µs, on two clocks); before the first arrival without end.
    fn least(&self) -> i64 {
        self.there.get().unwrap_or(i64::MAX)
    }

    /// Mean time that a packet took which waited nowhere (seconds, on two clocks).
    fn way(&self) -> f64 {
        let least = self.least() as f64 * 1e-6;
        self.jitter.way().map_or(least, |way| way.max(least))
    }
}
