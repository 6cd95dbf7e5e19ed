//! What the scheduler of a model run takes its symbols from.

use std::collections::VecDeque;

use marline_proto::flow::Symbol;
use marline_proto::sched::{SymbolSource, Unit};

use super::PACKET;

/// Packets that were written and are not on a path's queue yet, and the paths' queues while the
/// scheduler plans.
#[derive(Debug)]
pub(super) struct Backlog {
    /// Packets of a unit.
    packets: u64,
    written: u64,
    /// The next fresh packet, counted over all units.
    next: u64,
    /// Taken back from paths, oldest first.
    returned: VecDeque<Symbol>,
    queues: Vec<VecDeque<Queued>>,
}

/// A symbol that waits for a path's window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub(super) symbol: Symbol,
    /// Another path has it, or had it.
    pub(super) copy: bool,
}

impl Backlog {
    pub(super) fn new(paths: usize, packets: u32) -> Self {
        Self {
            packets: u64::from(packets.max(1)),
            written: 0,
            next: 0,
            returned: VecDeque::new(),
            queues: vec![VecDeque::new(); paths],
        }
    }

    /// One more unit.
    pub(super) fn write(&mut self) {
        self.written += 1;
    }

    /// Units written so far.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Takes the paths' queues for a plan.
    pub(super) fn lend(&mut self, queues: Vec<VecDeque<Queued>>) {
        self.queues = queues;
    }

    /// Gives the paths' queues back.
    pub(super) fn give_back(&mut self) -> Vec<VecDeque<Queued>> {
        std::mem::take(&mut self.queues)
    }

    fn fresh(&self) -> u64 {
        self.written * self.packets - self.next
    }

    fn place(&self) -> Option<(u64, u64)> {
        match self.returned.front() {
            Some(symbol) => Some((symbol.unit, symbol.offset)),
            None if self.fresh() > 0 => {
                let offset = self.next % self.packets * u64::from(PACKET);
                Some((self.next / self.packets, offset))
            }
            None => None,
        }
    }
}

impl SymbolSource for Backlog {
    fn next_len(&self, max: u32) -> Option<u32> {
        self.place().map(|_| PACKET.min(max))
    }

    fn unsent(&self) -> u64 {
        (self.returned.len() as u64 + self.fresh()) * u64::from(PACKET)
    }

    fn unit(&self) -> Option<Unit> {
        let (id, offset) = self.place()?;
        Some(Unit::new(id, self.packets * u64::from(PACKET) - offset))
    }

    fn send(&mut self, index: usize, _: u32) -> Symbol {
        let (unit, offset) = self.place().unwrap_or_default();
        if self.returned.pop_front().is_none() {
            self.next += 1;
        }
        let symbol = Symbol {
            unit,
            offset,
            len: PACKET,
        };
        self.queues[index].push_back(Queued {
            symbol,
            copy: false,
        });
        symbol
    }

    fn copy(&mut self, index: usize, symbol: Symbol) {
        self.queues[index].push_back(Queued { symbol, copy: true });
    }

    fn take_back(&mut self) -> Vec<u64> {
        let mut taken = Vec::new();
        let mut all: Vec<Symbol> = self.returned.drain(..).collect();
        for queue in &mut self.queues {
            let before = all.len();
            queue.retain(|queued| {
                if !queued.copy {
                    all.push(queued.symbol);
                }
                queued.copy
            });
            taken.push((all.len() - before) as u64 * u64::from(PACKET));
        }
        all.sort_unstable_by_key(|s| (s.unit, s.offset));
        self.returned.extend(all);
        taken
    }
}
