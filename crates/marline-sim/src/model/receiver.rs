//! The far end of a model run.

use std::collections::BTreeMap;

use marline_base::Instant;

use super::{BlockCode, Model, Outcome};

/// Puts packets in order and measures.
#[derive(Debug)]
pub(super) struct Receiver {
    /// Packets of a unit.
    packets: u64,
    block: Option<BlockCode>,
    warm: Instant,
    until: Instant,
    /// When packets from the oldest undelivered one on were written.
    written: BTreeMap<u64, Instant>,
    /// Units that are not complete: when they were written, and what they miss.
    units: BTreeMap<u64, (Instant, u64)>,
    /// The next packet to deliver in order, counted over all units.
    next: u64,
    /// Packets that wait for earlier ones, since when.
    waiting: BTreeMap<u64, Instant>,
    /// Packets of each undecoded block that arrived.
    blocks: BTreeMap<u64, Vec<u64>>,
    known: u64,
    outcome: Outcome,
}

impl Receiver {
    pub(super) fn new(model: &Model, packets: u32) -> Self {
        Self {
            packets: u64::from(packets.max(1)),
            block: model.block,
            warm: Instant::ZERO + model.warmup,
            until: model.until().unwrap_or(Instant::from_nanos(u64::MAX)),
            written: BTreeMap::new(),
            units: BTreeMap::new(),
            next: 0,
            waiting: BTreeMap::new(),
            blocks: BTreeMap::new(),
            known: 0,
            outcome: Outcome::default(),
        }
    }

    /// Packets that are known, each counted once; coded ones of a block count once they are not
    /// needed any more.
    pub(super) fn known(&self) -> u64 {
        self.known
    }

    /// Is the packet known?
    pub(super) fn knows(&self, number: u64) -> bool {
        number < self.next || self.waiting.contains_key(&number)
    }

    pub(super) fn into_outcome(self) -> Outcome {
        self.outcome
    }

    pub(super) fn outcome(&mut self) -> &mut Outcome {
        &mut self.outcome
    }

    /// The sender wrote the packet, if it is not known that it did.
    pub(super) fn write(&mut self, now: Instant, number: u64) {
        self.written.entry(number).or_insert(now);
        let unit = number / self.packets;
        self.units.entry(unit).or_insert((now, self.packets));
    }

    /// A packet of a block arrives: what is known by it.
    pub(super) fn on_block(&mut self, number: u64, known: &mut Vec<u64>) {
        let Some(block) = self.block else {
            return;
        };
        let length = u64::from(block.source + block.coded);
        let first = number / length * length;
        let coded = first + u64::from(block.source);
        if number < coded {
            known.push(number);
        }
        if self.knows(first + length - 1) {
            return;
        }
        let arrived = self.blocks.entry(first).or_default();
        if !arrived.contains(&number) {
            arrived.push(number);
        }
        if arrived.len() as u64 >= u64::from(block.source) {
            self.blocks.remove(&first);
            known.extend(first..first + length);
        }
    }

    /// Is it a coded packet of a block?
    fn is_coded(&self, number: u64) -> bool {
        self.block.is_some_and(|block| {
            number % u64::from(block.source + block.coded) >= u64::from(block.source)
        })
    }

    /// The packet is known from now on.
    pub(super) fn on_known(&mut self, now: Instant, number: u64) {
        if self.knows(number) {
            return;
        }
        self.known += 1;
        self.waiting.insert(number, now);
        let unit = number / self.packets;
        if let Some((written, missing)) = self.units.get_mut(&unit) {
            *missing -= 1;
            if *missing == 0 {
                let (written, _) = (*written, self.units.remove(&unit));
                if written >= self.warm {
                    self.outcome.unit.record(micros(now, written));
                }
            }
        }
        while let Some(since) = self.waiting.remove(&self.next) {
            self.deliver(now, since);
            self.next += 1;
        }
    }

    fn deliver(&mut self, now: Instant, since: Instant) {
        let written = self.written.remove(&self.next);
        if self.is_coded(self.next) {
            return;
        }
        if now >= self.warm && now < self.until {
            self.outcome.delivered += 1;
        }
        let Some(written) = written.filter(|written| *written >= self.warm) else {
            return;
        };
        self.outcome.in_order.record(micros(now, written));
        self.outcome.buffering.record(micros(now, since));
        if now > since {
            self.outcome.waits.record(micros(now, since));
        }
    }
}

fn micros(now: Instant, begun: Instant) -> u64 {
    now.since(begun).as_nanos().div_ceil(1_000) as u64
}
