//! What the path's law learns of its packets, and says of one that leaves now.

use alloc::boxed::Box;

use marline_base::{Duration, Instant};

use super::sent::Settled;
use super::track::Path;
use super::view::PathView;
use crate::law::{Arrival, ArrivalForecast, Calibration, Carries, Law, Left, ReversePath, Silence};
use crate::wire::PathId;

/// What was expected of a packet as it left, by the path's law and by what schedulers see.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreseen {
    /// The path.
    pub path: PathId,
    /// The packet's number.
    pub packet: u64,
    /// Its size (bytes).
    pub size: usize,
    /// The law; `None` before the first arrival.
    pub law: Option<Box<Law>>,
    /// The same for when all that left before it are there as well.
    pub in_order: Option<Box<Law>>,
    /// Whether the path is dark.
    pub silence: Silence,
    /// The path, as schedulers see it, with nothing queued.
    pub view: Box<PathView>,
}

impl Path {
    pub(super) fn carries(&self) -> Carries {
        Carries {
            rate: self.rate(),
            filled: self.was_filled(),
        }
    }

    /// A packet of `size` bytes leaves now: what the law is, to judge it by what becomes of it.
    pub(super) fn expect(&mut self, now: Instant, size: u32) -> Left {
        if self.law.is_judged(now)
            && let Some(law) = self.after(now, 0)
        {
            self.law.judge(now, self.ledger.next_number(), law);
        }
        self.law.on_sent(now, size, self.carries())
    }

    /// A packet arrived.
    pub(crate) fn on_arrival(&mut self, now: Instant, arrival: &Arrival) {
        self.law.on_arrival(now, arrival);
    }

    /// One acknowledgement reported these.
    pub(super) fn on_reported(&mut self, now: Instant, acked: &[Settled]) {
        let in_time = acked.iter().filter(|p| p.eliciting && !p.spurious);
        if let Some(newest) = acked.iter().map(|p| p.number).max() {
            self.law.on_acked(now, in_time.count() as u32, newest);
        }
        self.law.refresh(now);
    }

    /// The clocks differ by something else than before: no delay that was learnt is right.
    pub(crate) fn on_clock_jump(&mut self) {
        self.law.restart();
    }

    /// How likely the path is dark, by what was sent after the newest packet that arrived.
    pub(crate) fn silence(&self, now: Instant) -> Silence {
        let open = self.ledger.unheard_packets();
        self.law
            .silence(now, open.map(|p| (p.sent, &p.left)), &self.reverse(now))
    }

    /// The same where feedback is overdue by the round trips. Packets are not late then where no
    /// law says when they arrive, nor where the carrier sends lost ones again by itself: that makes
    /// them late by a round trip, which they were given.
    pub(crate) fn overdue_silence(&self, now: Instant) -> Silence {
        let silence = self.silence(now);
        if silence.unheard > 0.0 && self.mending() == Duration::ZERO {
            return silence;
        }
        let open = self.ledger.unheard_packets();
        self.law
            .silence_if_not_late(now, open.map(|p| p.sent), &self.reverse(now))
    }

    fn reverse(&self, now: Instant) -> ReversePath<'_> {
        let since = self.ledger.oldest_open();
        self.received.reverse(now, since.unwrap_or(now))
    }

    /// When a packet arrives that leaves now behind `bytes` more of ours, and how likely it never
    /// does; `None` before the first arrival.
    pub(crate) fn after(&self, now: Instant, bytes: u64) -> Option<Law> {
        self.law
            .after(now, bytes, self.carries(), self.silence(now))
    }

    /// All that is expected of a packet of `size` bytes that leaves now.
    pub(crate) fn foresee(&self, now: Instant, size: usize) -> Foreseen {
        let law = self.after(now, 0);
        Foreseen {
            path: self.id,
            packet: self.ledger.next_number(),
            size,
            law: law.map(Box::new),
            in_order: law.map(|law| Box::new(self.law.in_order(&law))),
            silence: self.silence(now),
            view: Box::new(self.view(0)),
        }
    }

    /// The law in short, for schedulers.
    pub(super) fn forecast(&self) -> Option<ArrivalForecast> {
        let unheard = self.ledger.unheard_packets().next();
        self.law
            .forecast(self.carries(), unheard.map(|p| (p.sent, &p.left)))
    }

    /// How often the law came true.
    pub(crate) fn calibration(&self) -> Calibration {
        self.law.calibration()
    }
}
