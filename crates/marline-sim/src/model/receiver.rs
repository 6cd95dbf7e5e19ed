//! The far end of a model run.

use std::collections::{BTreeMap, VecDeque};

use marline_base::Instant;

use super::{Outcome, PACKET};

/// Puts packets in order and measures.
#[derive(Debug)]
pub(super) struct Receiver {
    /// Packets of a unit.
    packets: u64,
    /// When the units from the oldest incomplete one on were written, and what they miss.
    units: VecDeque<(Instant, u64)>,
    first_unit: u64,
    /// The next packet to deliver in order, counted over all units.
    next: u64,
    /// Packets that wait for earlier ones, since when.
    waiting: BTreeMap<u64, Instant>,
    arrived: u64,
    outcome: Outcome,
}

impl Receiver {
    pub(super) fn new(packets: u32) -> Self {
        Self {
            packets: u64::from(packets.max(1)),
            units: VecDeque::new(),
            first_unit: 0,
            next: 0,
            waiting: BTreeMap::new(),
            arrived: 0,
            outcome: Outcome::default(),
        }
    }

    /// Packets that have arrived, each counted once.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    pub(super) fn into_outcome(self) -> Outcome {
        self.outcome
    }

    /// The sender wrote a unit.
    pub(super) fn write(&mut self, now: Instant) {
        self.units.push_back((now, self.packets));
    }

    pub(super) fn arrive(&mut self, now: Instant, unit: u64, offset: u64) {
        let number = unit * self.packets + offset / u64::from(PACKET);
        if number < self.next || self.waiting.contains_key(&number) {
            return;
        }
        self.arrived += 1;
        self.waiting.insert(number, now);
        if let Some((written, missing)) = self.units.get_mut((unit - self.first_unit) as usize) {
            *missing -= 1;
            if *missing == 0 {
                self.outcome.unit.record(micros(now, *written));
            }
        }
        while let Some(since) = self.waiting.remove(&self.next) {
            let unit = (self.next / self.packets - self.first_unit) as usize;
            if let Some((written, _)) = self.units.get(unit) {
                self.outcome.in_order.record(micros(now, *written));
            }
            if now > since {
                self.outcome.waits.record(micros(now, since));
            }
            self.next += 1;
        }
        while self.first_unit < self.next / self.packets {
            self.units.pop_front();
            self.first_unit += 1;
        }
    }
}

fn micros(now: Instant, begun: Instant) -> u64 {
    now.since(begun).as_nanos().div_ceil(1_000) as u64
}
