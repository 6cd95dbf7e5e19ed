//! How long pieces that arrived out of order waited for those before them, and how many bytes
//! arrived.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use marline_base::Instant;
use marline_proto::observe::{Observer, Record};
use marline_proto::wire::FlowId;

/// A wait that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    pub(crate) flow: FlowId,
    /// When the piece arrived.
    pub(crate) from: Instant,
    /// When the last of those before it did.
    pub(crate) until: Instant,
}

#[derive(Debug, Default)]
struct State {
    /// Pieces that wait: by flow, unit and offset, when they arrived. A stream is one unit.
    waiting: BTreeMap<(FlowId, u64, u64), Instant>,
    /// Waits that nobody has taken yet.
    over: Vec<Wait>,
    /// Bytes that arrived, again or not.
    received: BTreeMap<FlowId, u64>,
}

/// Watches one session's receivers. It remembers a time for each piece that waits, which the
/// session's windows bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting(Arc<Mutex<State>>);

impl Waiting {
    /// To be given to the session.
    pub(crate) fn observer(&self) -> Box<dyn Observer> {
        Box::new(self.clone())
    }

    /// Bytes of a flow's data that arrived so far, copies and repetitions among them.
    pub(crate) fn received(&self, flow: FlowId) -> u64 {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.received.get(&flow).copied().unwrap_or(0)
    }

    /// Hands out the waits that are over since the last call.
    pub(crate) fn take(&self, mut each: impl FnMut(Wait)) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.over.drain(..).for_each(&mut each);
    }
}

impl Observer for Waiting {
    fn on(&mut self, now: Instant, record: &Record) {
        let Record::Progress {
            flow,
            symbol,
            frontier,
        } = *record
        else {
            return;
        };
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let State {
            waiting,
            over,
            received,
        } = &mut *state;
        if let Some(symbol) = symbol {
            *received.entry(flow).or_default() += u64::from(symbol.len);
        }
        while let Some(entry) = waiting
            .range((flow, 0, 0)..=(flow, u64::MAX, u64::MAX))
            .next()
        {
            let (&key, &from) = entry;
            if (key.1, key.2) >= frontier {
                break;
            }
            waiting.remove(&key);
            over.push(Wait {
                flow,
                from,
                until: now,
            });
        }
        if let Some(symbol) = symbol
            && (symbol.unit, symbol.offset) >= frontier
            && symbol.len > 0
        {
            waiting
                .entry((flow, symbol.unit, symbol.offset))
                .or_insert(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_proto::flow::Symbol;

    fn arrive(waiting: &mut Waiting, ms: u64, (unit, offset): (u64, u64), frontier: (u64, u64)) {
        let symbol = Some(Symbol {
            unit,
            offset,
            len: 10,
        });
        let record = Record::Progress {
            flow: FlowId(4),
            symbol,
            frontier,
        };
        waiting.on(Instant::from_millis(ms), &record);
    }

    fn waits(waiting: &Waiting) -> Vec<u64> {
        let mut all = Vec::new();
        waiting.take(|w| all.push(w.until.since(w.from).as_millis() as u64));
        all
    }

    #[test]
    fn pieces_of_a_stream_wait_until_the_gap_closes() {
        let mut waiting = Waiting::default();
        arrive(&mut waiting, 0, (0, 0), (0, 10));
        arrive(&mut waiting, 1, (0, 20), (0, 10));
        arrive(&mut waiting, 2, (0, 40), (0, 10));
        arrive(&mut waiting, 3, (0, 20), (0, 10));
        assert_eq!(waits(&waiting), Vec::<u64>::new());
        // 10..20 closes the first gap; 40 goes on waiting for 30.
        arrive(&mut waiting, 5, (0, 10), (0, 30));
        assert_eq!(waits(&waiting), [4]);
        arrive(&mut waiting, 9, (0, 30), (0, 50));
        assert_eq!(waits(&waiting), [7]);
    }

    #[test]
    fn what_arrives_twice_counts_twice_as_received() {
        let mut waiting = Waiting::default();
        arrive(&mut waiting, 0, (0, 0), (0, 10));
        arrive(&mut waiting, 1, (0, 0), (0, 10));
        assert_eq!(waiting.received(FlowId(4)), 20);
        assert_eq!(waiting.received(FlowId(8)), 0);
    }

    #[test]
    fn messages_wait_for_those_before_them_or_until_they_are_given_up() {
        let mut waiting = Waiting::default();
        arrive(&mut waiting, 1, (1, 0), (0, 0));
        arrive(&mut waiting, 2, (3, 0), (0, 0));
        arrive(&mut waiting, 4, (0, 0), (2, 0));
        assert_eq!(waits(&waiting), [3]);
        let given_up = Record::Progress {
            flow: FlowId(4),
            symbol: None,
            frontier: (4, 0),
        };
        waiting.on(Instant::from_millis(9), &given_up);
        assert_eq!(waits(&waiting), [7]);
    }
}
