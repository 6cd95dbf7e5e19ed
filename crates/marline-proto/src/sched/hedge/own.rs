//! What this flow has in flight.

use alloc::collections::VecDeque;

use marline_base::{Duration, Instant};

use crate::sched::per_path::PerPath;
use crate::sched::{Feedback, Outcome};
use crate::wire::PathId;

/// Symbols of a path that are remembered; of more, the oldest count as arrived.
const MOST: usize = 8_192;

/// Symbols of this flow that left on one path, and their bytes.
#[derive(Debug, Default)]
struct Left {
    symbols: VecDeque<(Instant, u32)>,
    bytes: u64,
}

/// Bytes of this flow in flight on each path: what left within a round trip. Sessions do not tell
/// what became of every copy, so that sums of what left and what was heard of would drift.
#[derive(Debug, Default)]
pub(super) struct Own(PerPath<Left>);

impl Own {
    /// On this path, whose round trip is so long.
    pub(super) fn on(&mut self, now: Instant, path: PathId, round_trip: Duration) -> u64 {
        let Some(left) = self.0.get_mut(path) else {
            return 0;
        };
        while let Some((at, len)) = left.symbols.front().copied()
            && at + round_trip < now
        {
            left.symbols.pop_front();
            left.bytes -= u64::from(len);
        }
        left.bytes
    }

    /// A symbol left, or what became of it.
    pub(super) fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        if feedback.outcome != Outcome::Sent {
            return;
        }
        let left = self.0.of(feedback.path, Left::default);
        left.symbols.push_back((now, feedback.symbol.len));
        left.bytes += u64::from(feedback.symbol.len);
        if left.symbols.len() > MOST
            && let Some((_, len)) = left.symbols.pop_front()
        {
            left.bytes -= u64::from(len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Symbol;
    use crate::path::EmissionKind;

    fn feedback(path: u64, len: u32, outcome: Outcome) -> Feedback {
        Feedback {
            symbol: Symbol {
                unit: 0,
                offset: 0,
                len,
            },
            kind: EmissionKind::Source,
            path: PathId(path),
            sent: Instant::ZERO,
            outcome,
            arrived_us: None,
            own_way: true,
        }
    }

    #[test]
    fn what_left_within_a_round_trip_is_in_flight() {
        let mut own = Own::default();
        let at = Instant::from_millis;
        let trip = Duration::from_millis(20);
        for ms in 0..30 {
            own.on_feedback(at(ms), &feedback(1, 100, Outcome::Sent));
            own.on_feedback(at(ms), &feedback(2, 7, Outcome::Sent));
            own.on_feedback(at(ms), &feedback(1, 100, Outcome::Acked));
        }
        // Those of 10 to 29 ms, and the one of 9.
        assert_eq!(own.on(at(29), PathId(1), trip), 2_100);
        assert_eq!(own.on(at(29), PathId(2), trip), 21 * 7);
        assert_eq!(own.on(at(100), PathId(1), trip), 0);
        assert_eq!(own.on(at(100), PathId(3), trip), 0);
    }

    #[test]
    fn little_is_remembered_of_a_path() {
        let mut own = Own::default();
        for _ in 0..3 * MOST {
            own.on_feedback(Instant::ZERO, &feedback(99, 1, Outcome::Sent));
        }
        let bytes = own.on(Instant::ZERO, PathId(99), Duration::ZERO);
        assert_eq!(bytes, MOST as u64);
    }
}
