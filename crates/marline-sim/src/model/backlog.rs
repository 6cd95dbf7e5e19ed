//! What the scheduler of a model run takes its symbols from.

use std::collections::VecDeque;

use marline_proto::flow::Symbol;
use marline_proto::path::EmissionKind;
use marline_proto::sched::{Coding, SymbolSource, Unit};

/// Packets that were written and are not on a path's queue yet, and the paths' queues while the
/// scheduler plans.
#[derive(Debug)]
pub(super) struct Backlog {
    /// Size of a packet (bytes).
    packet: u32,
    /// Packets of a unit.
    packets: u64,
    /// Units; `None` if there is no end of them.
    written: Option<u64>,
    /// The next fresh packet, counted over all units.
    next: u64,
    /// Taken back from paths, oldest first.
    returned: VecDeque<Symbol>,
    queues: Vec<VecDeque<Queued>>,
    coding: Option<Coding>,
    repairs: u64,
}

/// A symbol that waits for a path's window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub(super) symbol: Symbol,
    pub(super) kind: EmissionKind,
}

impl Backlog {
    /// Of nothing; `endless` has always more.
    pub(super) fn new(paths: usize, packet: u32, packets: u32, endless: bool) -> Self {
        Self {
            packet,
            packets: u64::from(packets.max(1)),
            written: (!endless).then_some(0),
            next: 0,
            returned: VecDeque::new(),
            queues: vec![VecDeque::new(); paths],
            coding: None,
            repairs: 0,
        }
    }

    /// One more unit.
    pub(super) fn write(&mut self) {
        if let Some(written) = &mut self.written {
            *written += 1;
        }
    }

    /// Units written so far.
    pub(super) fn written(&self) -> u64 {
        self.written.unwrap_or(u64::MAX)
    }

    /// Packets that were written.
    pub(super) fn all(&self) -> u64 {
        self.written.map_or(u64::MAX, |units| units * self.packets)
    }

    /// The packet of a source symbol, counted over all units.
    pub(super) fn number(&self, symbol: &Symbol) -> u64 {
        symbol.unit * self.packets + symbol.offset / u64::from(self.packet)
    }

    /// The symbol of a packet.
    pub(super) fn symbol(&self, number: u64) -> Symbol {
        Symbol {
            unit: number / self.packets,
            offset: number % self.packets * u64::from(self.packet),
            len: self.packet,
        }
    }

    /// Takes the paths' queues and the state of the code for a plan.
    pub(super) fn lend(&mut self, queues: Vec<VecDeque<Queued>>, coding: Option<Coding>) {
        self.queues = queues;
        self.coding = coding;
    }

    /// Gives the paths' queues back.
    pub(super) fn give_back(&mut self) -> Vec<VecDeque<Queued>> {
        std::mem::take(&mut self.queues)
    }

    fn fresh(&self) -> u64 {
        // Enough for any plan.
        self.written
            .map_or(1 << 20, |units| units * self.packets - self.next)
    }

    fn place(&self) -> Option<Symbol> {
        match self.returned.front() {
            Some(symbol) => Some(*symbol),
            None => (self.fresh() > 0).then(|| self.symbol(self.next)),
        }
    }
}

impl SymbolSource for Backlog {
    fn next_len(&self, max: u32) -> Option<u32> {
        self.place().map(|_| self.packet.min(max))
    }

    fn unsent(&self) -> u64 {
        // Without end, a packet is written when it leaves: none waits before that.
        let fresh = self.written.map_or(1, |_| self.fresh());
        (self.returned.len() as u64 + fresh) * u64::from(self.packet)
    }

    fn unit(&self) -> Option<Unit> {
        let place = self.place()?;
        let len = self.packets * u64::from(self.packet);
        Some(Unit::new(place.unit, len - place.offset))
    }

    fn send(&mut self, index: usize, _: u32) -> Symbol {
        let symbol = self.returned.pop_front().unwrap_or_else(|| {
            self.next += 1;
            self.symbol(self.next - 1)
        });
        self.queues[index].push_back(Queued {
            symbol,
            kind: EmissionKind::Source,
        });
        symbol
    }

    fn copy(&mut self, index: usize, symbol: Symbol) {
        self.queues[index].push_back(Queued {
            symbol,
            kind: EmissionKind::Copy,
        });
    }

    fn coding(&self) -> Option<Coding> {
        self.coding
    }

    fn repair(&mut self, index: usize) -> Option<Symbol> {
        let coding = self.coding.as_mut()?;
        coding.repairs_queued += 1;
        self.repairs += 1;
        let symbol = Symbol {
            unit: self.repairs,
            offset: 0,
            len: self.packet,
        };
        self.queues[index].push_back(Queued {
            symbol,
            kind: EmissionKind::Repair,
        });
        Some(symbol)
    }

    fn take_back(&mut self) -> Vec<u64> {
        let mut taken = Vec::new();
        let mut all: Vec<Symbol> = self.returned.drain(..).collect();
        for queue in &mut self.queues {
            let before = all.len();
            queue.retain(|queued| {
                if queued.kind == EmissionKind::Source {
                    all.push(queued.symbol);
                }
                queued.kind != EmissionKind::Source
            });
            taken.push((all.len() - before) as u64 * u64::from(self.packet));
        }
        all.sort_unstable_by_key(|s| (s.unit, s.offset));
        self.returned.extend(all);
        taken
    }
}
