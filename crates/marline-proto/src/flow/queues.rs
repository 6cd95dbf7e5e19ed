//! What a flow has assigned to paths and not sent yet.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::Symbol;
use crate::path::EmissionKind;
use crate::wire::PathId;

/// A symbol that waits for its path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Assigned {
    pub(crate) symbol: Symbol,
    pub(crate) kind: EmissionKind,
}

/// Most copies that may wait for one path; the oldest give way. (Sources and retransmissions are
/// bounded by the send buffer.)
const MAX_COPIES: usize = 16_384;

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Assigned>,
    bytes: u64,
    copies: usize,
}

impl Queue {
    fn on_removed(&mut self, assigned: &Assigned) {
        self.bytes -= u64::from(assigned.symbol.len);
        self.copies -= usize::from(assigned.kind == EmissionKind::Copy);
    }
}

/// One queue for each path that the flow has used, in order of path id.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    queues: Vec<(PathId, Queue)>,
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
        &mut self.queues[index].1
    }

    fn get(&self, path: PathId) -> Option<&Queue> {
        self.position(path).ok().map(|i| &self.queues[i].1)
    }

    pub(crate) fn push(&mut self, path: PathId, assigned: Assigned) {
        let queue = self.entry(path);
        queue.bytes += u64::from(assigned.symbol.len);
        if assigned.kind == EmissionKind::Copy {
            queue.copies += 1;
            if queue.copies > MAX_COPIES
                && let Some(i) = queue
                    .waiting
                    .iter()
                    .position(|a| a.kind == EmissionKind::Copy)
                && let Some(oldest) = queue.waiting.remove(i)
            {
                queue.on_removed(&oldest);
            }
        }
        queue.waiting.push_back(assigned);
    }

    /// Puts retransmissions and rescued copies before fresh data: they are older.
    pub(crate) fn push_urgent(&mut self, path: PathId, assigned: Assigned) {
        let queue = self.entry(path);
        queue.bytes += u64::from(assigned.symbol.len);
        queue.copies += usize::from(assigned.kind == EmissionKind::Copy);
        let at = queue
            .waiting
            .iter()
            .position(|a| a.kind == EmissionKind::Source)
            .unwrap_or(queue.waiting.len());
        queue.waiting.insert(at, assigned);
    }

    pub(crate) fn pop(&mut self, path: PathId) -> Option<Assigned> {
        let index = self.position(path).ok()?;
        let queue = &mut self.queues[index].1;
        let assigned = queue.waiting.pop_front()?;
        queue.on_removed(&assigned);
        Some(assigned)
    }

    /// Puts back what did not fit.
    pub(crate) fn unpop(&mut self, path: PathId, assigned: Assigned) {
        let queue = self.entry(path);
        queue.bytes += u64::from(assigned.symbol.len);
        queue.copies += usize::from(assigned.kind == EmissionKind::Copy);
        queue.waiting.push_front(assigned);
    }

    pub(crate) fn is_empty(&self, path: PathId) -> bool {
        self.get(path).is_none_or(|q| q.waiting.is_empty())
    }

    pub(crate) fn is_all_empty(&self) -> bool {
        self.queues.iter().all(|(_, q)| q.waiting.is_empty())
    }

    pub(crate) fn bytes(&self, path: PathId) -> u64 {
        self.get(path).map_or(0, |q| q.bytes)
    }

    /// Does the symbol wait for some path already?
    pub(crate) fn holds(&self, symbol: &Symbol) -> bool {
        self.queues
            .iter()
            .any(|(_, q)| q.waiting.iter().any(|a| a.symbol.covers(symbol)))
    }

    /// Nothing but what waits can bring the symbol any more: if a copy of it waits, that is no
    /// longer a copy, which might be dropped. Returns whether the symbol waits.
    pub(crate) fn rely_on(&mut self, symbol: &Symbol) -> bool {
        for (_, queue) in &mut self.queues {
            let mut waiting = queue.waiting.iter_mut();
            if let Some(found) = waiting.find(|a| a.symbol.covers(symbol)) {
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
        match self.position(path) {
            Ok(index) => self.queues.remove(index).1.waiting.into(),
            Err(_) => Vec::new(),
        }
    }

    /// Takes source symbols from a path's queue, oldest first; copies of other symbols and
    /// retransmissions stay. Returns them with their bytes.
    pub(crate) fn take_sources(&mut self, path: PathId) -> (Vec<Symbol>, u64) {
        let Ok(index) = self.position(path) else {
            return (Vec::new(), 0);
        };
        let queue = &mut self.queues[index].1;
        let mut taken = Vec::new();
        let mut bytes = 0;
        queue.waiting.retain(|a| {
            let source = a.kind == EmissionKind::Source;
            if source {
                bytes += u64::from(a.symbol.len);
                taken.push(a.symbol);
            }
            !source
        });
        queue.bytes -= bytes;
        (taken, bytes)
    }

    pub(crate) fn clear(&mut self) {
        self.queues.clear();
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
        assert_eq!(queues.bytes(path), 40);
        let (sources, bytes) = queues.take_sources(path);
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
