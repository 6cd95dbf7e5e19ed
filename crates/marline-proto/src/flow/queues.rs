//! What a flow has assigned to paths and not sent yet.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::emission::EmissionKind;
use super::{Pieces, Symbol};
use crate::wire::PathId;

/// A symbol that waits for its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Assigned {
    pub(crate) symbol: Symbol,
    pub(crate) kind: EmissionKind,
}

impl Assigned {
    /// Is it a symbol that was assigned before?
    fn repeats(&self) -> bool {
        matches!(self.kind, EmissionKind::Copy | EmissionKind::Retransmission)
    }

    /// Does it bring all of the symbol by itself?
    fn brings(&self, symbol: &Symbol) -> bool {
        self.kind != EmissionKind::Repair && self.symbol.covers(symbol)
    }
}

/// Most copies that may wait for one path; the oldest give way. (Sources and retransmissions are
/// bounded by the send buffer.)
const MAX_COPIES: usize = 16_384;

#[derive(Debug, Default)]
struct Queue {
    /// What stands before the first source, and all from there on (which may begin with copies
    /// after the first source has left). Retransmissions go between the two.
    urgent: VecDeque<Assigned>,
    fresh: VecDeque<Assigned>,
    bytes: u64,
    copies: usize,
    /// What [`Queues::account`] said last.
    stake: Stake,
    /// The path takes nothing more for now; the queue goes once that is accounted.
    forgotten: bool,
}

/// What a flow has waiting for a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stake {
    pub(crate) bytes: u64,
    /// Something waits, if only an empty symbol.
    pub(crate) waits: bool,
    /// The flow would queue more if the path had room.
    pub(crate) wants: bool,
}

impl Queue {
    fn stake(&self, wants: bool) -> Stake {
        Stake {
            bytes: self.bytes,
            waits: !self.is_empty(),
            wants: wants && !self.forgotten,
        }
    }

    fn empty(&mut self) -> Vec<Assigned> {
        self.bytes = 0;
        self.copies = 0;
        self.forgotten = true;
        self.urgent.drain(..).chain(self.fresh.drain(..)).collect()
    }

    fn on_added(&mut self, assigned: &Assigned) {
        self.bytes += u64::from(assigned.symbol.len);
        self.copies += usize::from(assigned.kind == EmissionKind::Copy);
    }

    fn on_removed(&mut self, assigned: &Assigned) {
        self.bytes -= u64::from(assigned.symbol.len);
        self.copies -= usize::from(assigned.kind == EmissionKind::Copy);
    }

    fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.fresh.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = &Assigned> {
        self.urgent.iter().chain(&self.fresh)
    }

    /// Moves what stands before the first source to the urgent.
    fn settle_urgent(&mut self) {
        while let Some(first) = self.fresh.front()
            && first.kind != EmissionKind::Source
        {
            self.urgent.extend(self.fresh.pop_front());
        }
    }

    fn take_oldest_copy(&mut self) -> Option<Assigned> {
        let is_copy = |a: &Assigned| a.kind == EmissionKind::Copy;
        match self.urgent.iter().position(is_copy) {
            Some(i) => self.urgent.remove(i),
            None => {
                let i = self.fresh.iter().position(is_copy)?;
                self.fresh.remove(i)
            }
        }
    }
}

/// One queue for each path that the flow has used, in order of path id.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    queues: Vec<(PathId, Queue)>,
    /// All that waits and was assigned before.
    repeats: Pieces<(), ()>,
}

impl Queues {
    fn position(&self, path: PathId) -> Result<usize, usize> {
        self.queues.binary_search_by_key(&path, |(id, _)| *id)
    }

    fn entry(&mut self, path: PathId) -> &mut Queue {
        let index = match self.position(path) {
            Ok(index) => index,
            Err(index) => {
                self.queues.insert(index, (path, Queue::default()));
                index
            }
        };
        let queue = &mut self.queues[index].1;
        queue.forgotten = false;
        queue
    }

    /// Has a queue for each of these paths, if only an empty one.
    pub(crate) fn extend_to(&mut self, paths: impl Iterator<Item = PathId>) {
        for path in paths {
            self.entry(path);
        }
    }

    /// Tells for each path what changed since the last call: path, what waited then, and now.
    /// `wants`: the flow would queue more on any path that has room.
    pub(crate) fn account(&mut self, wants: bool, mut changed: impl FnMut(PathId, Stake, Stake)) {
        let mut forgotten = false;
        for (path, queue) in &mut self.queues {
            let stake = queue.stake(wants);
            if stake != queue.stake {
                changed(*path, queue.stake, stake);
                queue.stake = stake;
            }
            forgotten |= queue.forgotten;
        }
        if forgotten {
            self.queues.retain(|(_, queue)| !queue.forgotten);
        }
    }

    /// Says for each path what [`account`](Self::account) said last, and that nothing is known of
    /// it any more.
    pub(crate) fn withdraw(&mut self, mut accounted: impl FnMut(PathId, Stake)) {
        for (path, queue) in &mut self.queues {
            let stake = core::mem::take(&mut queue.stake);
            if stake != Stake::default() {
                accounted(*path, stake);
            }
        }
    }

    fn get(&self, path: PathId) -> Option<&Queue> {
        self.position(path).ok().map(|i| &self.queues[i].1)
    }

    fn list(&mut self, assigned: &Assigned) {
        if assigned.repeats() {
            self.repeats.insert((), &assigned.symbol, ());
        }
    }

    fn unlist(&mut self, assigned: &Assigned) {
        if assigned.repeats() {
            self.repeats.remove((), &assigned.symbol, ());
        }
    }

    pub(crate) fn push(&mut self, path: PathId, assigned: Assigned) {
        self.list(&assigned);
        let queue = self.entry(path);
        queue.on_added(&assigned);
        if queue.copies > MAX_COPIES
            && assigned.kind == EmissionKind::Copy
            && let Some(oldest) = queue.take_oldest_copy()
        {
            queue.on_removed(&oldest);
            queue.fresh.push_back(assigned);
            self.unlist(&oldest);
        } else {
            queue.fresh.push_back(assigned);
        }
    }

    /// Puts retransmissions and rescued copies before fresh data: they are older.
    pub(crate) fn push_urgent(&mut self, path: PathId, assigned: Assigned) {
        self.list(&assigned);
        let queue = self.entry(path);
        queue.on_added(&assigned);
        queue.settle_urgent();
        queue.urgent.push_back(assigned);
    }

    pub(crate) fn pop(&mut self, path: PathId) -> Option<Assigned> {
        let index = self.position(path).ok()?;
        let queue = &mut self.queues[index].1;
        let assigned = match queue.urgent.pop_front() {
            Some(urgent) => urgent,
            None => queue.fresh.pop_front()?,
        };
        queue.on_removed(&assigned);
        self.unlist(&assigned);
        Some(assigned)
    }

    /// Length (bytes) of what [`pop`](Self::pop) takes; 0 if that is nothing.
    pub(crate) fn first_len(&self, path: PathId) -> u64 {
        let first = self.get(path).and_then(|queue| queue.iter().next());
        first.map_or(0, |assigned| u64::from(assigned.symbol.len))
    }

    /// Puts back what did not fit.
    pub(crate) fn unpop(&mut self, path: PathId, assigned: Assigned) {
        self.list(&assigned);
        let queue = self.entry(path);
        queue.on_added(&assigned);
        if assigned.kind == EmissionKind::Source {
            // It was taken because nothing urgent waited.
            while let Some(last) = queue.urgent.pop_back() {
                queue.fresh.push_front(last);
            }
            queue.fresh.push_front(assigned);
        } else {
            queue.urgent.push_front(assigned);
        }
    }

    pub(crate) fn is_empty(&self, path: PathId) -> bool {
        self.get(path).is_none_or(Queue::is_empty)
    }

    pub(crate) fn is_all_empty(&self) -> bool {
        self.queues.iter().all(|(_, q)| q.is_empty())
    }

    /// Does anything wait that was never assigned before?
    pub(crate) fn has_sources(&self) -> bool {
        let mut waiting = self.queues.iter().flat_map(|(_, q)| &q.fresh);
        waiting.any(|a| a.kind == EmissionKind::Source)
    }

    pub(crate) fn bytes(&self, path: PathId) -> u64 {
        self.get(path).map_or(0, |q| q.bytes)
    }

    /// Bytes that leave on the path before what is pushed with [`push_urgent`](Self::push_urgent).
    pub(crate) fn urgent_bytes(&self, path: PathId) -> u64 {
        let queue = self.get(path).into_iter();
        let urgent = queue.flat_map(|q| {
            let stands = q
                .fresh
                .iter()
                .take_while(|a| a.kind != EmissionKind::Source);
            q.urgent.iter().chain(stands)
        });
        urgent.map(|a| u64::from(a.symbol.len)).sum()
    }

    /// Does the symbol wait for some path already? `source`: it left as a source, so that no
    /// source that waits holds its bytes.
    pub(crate) fn holds(&self, symbol: &Symbol, source: bool) -> bool {
        if source {
            return self.repeats.covering((), symbol, ((), ())).next().is_some();
        }
        let mut waiting = self.queues.iter().flat_map(|(_, q)| q.iter());
        waiting.any(|a| a.brings(symbol))
    }

    /// Nothing but what waits for one of the `trusted` paths can bring the symbol any more: if a
    /// copy of it waits, that is no longer a copy, which might be dropped. Returns whether the
    /// symbol waits there; what waits for a path in doubt is nobody's hope. `source` as in
    /// [`holds`](Self::holds).
    pub(crate) fn rely_on(&mut self, symbol: &Symbol, source: bool, trusted: &[PathId]) -> bool {
        if source && !self.holds(symbol, true) {
            return false;
        }
        for (_, queue) in self
            .queues
            .iter_mut()
            .filter(|(id, _)| trusted.contains(id))
        {
            let mut waiting = queue.urgent.iter_mut().chain(&mut queue.fresh);
            if let Some(found) = waiting.find(|a| a.brings(symbol)) {
                if found.kind == EmissionKind::Copy {
                    found.kind = EmissionKind::Retransmission;
                    queue.copies -= 1;
                }
                return true;
            }
        }
        false
    }

    /// Takes everything that waits for a path, oldest first, and forgets the path.
    pub(crate) fn take_path(&mut self, path: PathId) -> Vec<Assigned> {
        let Ok(index) = self.position(path) else {
            return Vec::new();
        };
        let taken = self.queues[index].1.empty();
        for assigned in &taken {
            self.unlist(assigned);
        }
        taken
    }

    /// Moves source symbols from a path's queue to `taken`, oldest first; copies of other symbols
    /// and retransmissions stay. Returns their bytes.
    pub(crate) fn take_sources(&mut self, path: PathId, taken: &mut Vec<Symbol>) -> u64 {
        let Ok(index) = self.position(path) else {
            return 0;
        };
        let queue = &mut self.queues[index].1;
        taken.reserve(queue.fresh.len());
        let mut bytes = 0;
        queue.fresh.retain(|a| {
            let source = a.kind == EmissionKind::Source;
            if source {
                bytes += u64::from(a.symbol.len);
                taken.push(a.symbol);
            }
            !source
        });
        queue.bytes -= bytes;
        bytes
    }

    /// Bytes that wait to leave for the first time.
    pub(crate) fn source_bytes(&self) -> u64 {
        let waiting = self.queues.iter().flat_map(|(_, q)| &q.fresh);
        let sources = waiting.filter(|a| a.kind == EmissionKind::Source);
        sources.map(|a| u64::from(a.symbol.len)).sum()
    }

    /// Drops what waits of a unit: nobody needs it any more.
    pub(crate) fn drop_unit(&mut self, unit: u64) {
        for (_, queue) in &mut self.queues {
            for waiting in [&mut queue.urgent, &mut queue.fresh] {
                waiting.retain(|a| {
                    let drop = a.symbol.unit == unit;
                    if drop {
                        queue.bytes -= u64::from(a.symbol.len);
                        queue.copies -= usize::from(a.kind == EmissionKind::Copy);
                        if a.kind != EmissionKind::Source {
                            self.repeats.remove((), &a.symbol, ());
                        }
                    }
                    !drop
                });
            }
        }
    }

    pub(crate) fn clear(&mut self) {
        for (_, queue) in &mut self.queues {
            queue.empty();
        }
        self.repeats.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assigned(offset: u64, kind: EmissionKind) -> Assigned {
        Assigned {
            symbol: Symbol {
                unit: 0,
                offset,
                len: 10,
            },
            kind,
        }
    }

    #[test]
    fn the_urgent_come_first_and_in_order() {
        let mut queues = Queues::default();
        let path = PathId(3);
        queues.push(path, assigned(100, EmissionKind::Source));
        queues.push_urgent(path, assigned(0, EmissionKind::Retransmission));
        queues.push_urgent(path, assigned(10, EmissionKind::Copy));
        queues.push(path, assigned(110, EmissionKind::Source));
        assert_eq!((queues.bytes(path), queues.urgent_bytes(path)), (40, 20));
        let mut sources = Vec::new();
        let bytes = queues.take_sources(path, &mut sources);
        assert_eq!((sources.len(), bytes, queues.bytes(path)), (2, 20, 20));
        let order: Vec<u64> = core::iter::from_fn(|| queues.pop(path))
            .map(|a| a.symbol.offset)
            .collect();
        assert_eq!(order, [0, 10]);
        assert_eq!(queues.bytes(path), 0);
        assert!(queues.is_all_empty());
    }

    #[test]
    fn copies_are_bounded() {
        let mut queues = Queues::default();
        for i in 0..MAX_COPIES as u64 + 10 {
            queues.push(PathId(0), assigned(i * 10, EmissionKind::Copy));
        }
        assert_eq!(queues.bytes(PathId(0)), MAX_COPIES as u64 * 10);
        assert_eq!(queues.pop(PathId(0)).unwrap().symbol.offset, 100);
    }
}
