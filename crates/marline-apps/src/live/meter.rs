//! What one flow of a live entry counts.

use super::inspect::{Content, Inspector, Wholeness};
use crate::live::status::{LiveReceived, LiveSent};
use crate::proxy::PacketFlow;
use marline::endpoint::{GivenUp, RateReport};
use marline_base::Rate;
use marline_proto::stats::{Delays, FlowCounters};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// Bytes of the last whole second.
#[derive(Debug)]
struct RateMeter {
    second: Instant,
    bytes: u64,
    last: u64,
}

impl RateMeter {
    fn new(now: Instant) -> Self {
        RateMeter {
            second: now,
            bytes: 0,
            last: 0,
        }
    }

    fn add(&mut self, now: Instant, bytes: u64) {
        self.turn(now);
        self.bytes += bytes;
    }

    fn turn(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.second).as_secs();
        if passed > 0 {
            self.last = if passed == 1 { self.bytes } else { 0 };
            self.bytes = 0;
            self.second += SECOND * u32::try_from(passed).unwrap_or(u32::MAX);
        }
    }

    fn bps(&mut self, now: Instant) -> u64 {
        self.turn(now);
        self.last * 8
    }
}

/// One direction.
#[derive(Debug)]
struct Side {
    datagrams: u64,
    bytes: u64,
    rate: RateMeter,
    inspector: Inspector,
}

impl Side {
    fn new(now: Instant) -> Self {
        Side {
            datagrams: 0,
            bytes: 0,
            rate: RateMeter::new(now),
            inspector: Inspector::default(),
        }
    }

    fn count(&mut self, datagram: &[u8]) {
        let bytes = datagram.len() as u64;
        self.datagrams += 1;
        self.bytes += bytes;
        self.rate.add(Instant::now(), bytes);
        self.inspector.look(datagram);
    }
}

#[derive(Debug)]
struct State {
    sent: Side,
    received: Side,
    refused: u64,
    /// Whether the session watches that the paths carry the target rate,
    watched: bool,
    /// and the rate that they carry while that is less.
    capacity: Option<Rate>,
    /// The session's counters when they were last seen.
    counters: FlowCounters,
    given_up: GivenUp,
    delays: Delays,
}

/// What the session says of a flow; each is asked for by itself, and the session may forget the
/// flow in between.
type Counted = (Option<FlowCounters>, Option<GivenUp>, Option<Delays>);

/// Reads the session's counters, for as long as there are any.
type Read = dyn Fn() -> Option<Counted> + Send + Sync;

/// Counts what a flow carries.
pub(super) struct Meter {
    state: Mutex<State>,
    read: Box<Read>,
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Meter").field(&self.state).finish()
    }
}

impl Meter {
    pub(super) fn new<P: PacketFlow>(flow: &Arc<P>) -> Self {
        let flow = Arc::downgrade(flow);
        let now = Instant::now();
        Meter {
            state: Mutex::new(State {
                sent: Side::new(now),
                received: Side::new(now),
                refused: 0,
                watched: false,
                capacity: None,
                counters: FlowCounters::default(),
                given_up: GivenUp::default(),
                delays: Delays::default(),
            }),
            read: Box::new(move || {
                let flow = flow.upgrade()?;
                Some((flow.counters(), flow.given_up(), flow.delays()))
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A local program sent this.
    pub(super) fn sent(&self, datagram: &[u8]) {
        self.state().sent.count(datagram);
    }

    /// Adds datagrams that were not given to the session, or are left in a flow that the server has
    /// closed.
    pub(super) fn refused(&self, datagrams: u64) {
        self.state().refused += datagrams;
    }

    /// The session delivered this.
    pub(super) fn received(&self, datagram: &[u8]) {
        self.state().received.count(datagram);
    }

    /// From now on the session watches whether the paths carry the target rate, or no longer;
    /// nothing is known yet.
    pub(super) fn watch(&self, watched: bool) {
        let mut state = self.state();
        (state.watched, state.capacity) = (watched, None);
    }

    pub(super) fn is_watched(&self) -> bool {
        self.state().watched
    }

    /// The session reported on the target rate.
    pub(super) fn report(&self, report: Option<RateReport>) {
        self.state().capacity = match report {
            Some(RateReport::Below { capacity }) => Some(capacity),
            Some(RateReport::Met) | None => None,
        };
    }

    /// Adds what was counted so far.
    pub(super) fn add_to(&self, sum: &mut Sum) {
        let now = Instant::now();
        let read = (self.read)();
        let mut state = self.state();
        let state = &mut *state;
        if let Some((counters, given_up, delays)) = read {
            state.counters = counters.unwrap_or(state.counters);
            if let Some(given_up) = given_up {
                state.given_up = given_up;
            }
            if let Some(delays) = delays {
                state.delays = delays;
            }
        }
        let (counters, sent, received) = (state.counters, &mut state.sent, &mut state.received);
        sum.source_bytes += counters.source_bytes;
        sum.repeated_bytes += (counters.redundancy() * counters.source_bytes as f64) as u64;
        sum.delays.add(&state.delays);
        sum.watched |= state.watched;
        sum.capacity = match (sum.capacity, state.capacity) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let all = &mut sum.sent;
        all.datagrams += sent.datagrams;
        all.bytes += sent.bytes;
        all.rate_bps += sent.rate.bps(now);
        look(&mut all.content, &mut all.input, &sent.inspector);
        all.refused += state.refused;
        all.given_up += counters.expired_messages + counters.units.lost + counters.units.cancelled;
        all.given_up_waiting += state.given_up.waited;
        for (path, datagrams) in &state.given_up.on {
            *all.given_up_on.entry(path.clone()).or_default() += datagrams;
        }
        all.repaired += counters.repaired_symbols;
        all.lost += counters.peer_missed.saturating_sub(counters.peer_late);
        all.late += counters.peer_late;
        // A peer may report anything.
        all.duplicated = all.duplicated.saturating_add(counters.peer_duplicates);
        let all = &mut sum.received;
        all.datagrams += received.datagrams;
        all.bytes += received.bytes;
        all.rate_bps += received.rate.bps(now);
        look(&mut all.content, &mut all.output, &received.inspector);
        let missing = counters.skipped_messages - counters.late_messages;
        let lost = missing + counters.dropped_messages + counters.units.missing;
        // A peer may leave out any numbers.
        all.lost = all.lost.saturating_add(lost);
        all.late += counters.late_messages + counters.units.late;
        all.duplicated += counters.duplicate_messages;
        all.reordered += counters.reordered_messages;
    }
}

fn look(content: &mut Content, wholeness: &mut Wholeness, inspector: &Inspector) {
    if inspector.content != Content::Opaque {
        *content = inspector.content;
    }
    *wholeness += inspector.found;
}

/// What several flows counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Sum {
    pub(super) sent: LiveSent,
    pub(super) received: LiveReceived,
    /// Bytes that left for the first time, and again.
    pub(super) source_bytes: u64,
    pub(super) repeated_bytes: u64,
    /// How long what was sent took.
    pub(super) delays: Delays,
    /// Whether the session watches the target rate of one of them.
    pub(super) watched: bool,
    /// The least that the paths carry for one of them, while that is below its target.
    pub(super) capacity: Option<Rate>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::io;

    /// A flow with these counts.
    struct Counted(FlowCounters);

    impl PacketFlow for Counted {
        async fn send(&self, _: Bytes) -> io::Result<()> {
            Ok(())
        }

        async fn recv(&self) -> Option<Bytes> {
            None
        }

        fn counters(&self) -> Option<FlowCounters> {
            Some(self.0)
        }
    }

    #[test]
    fn a_peer_that_leaves_out_numbers_without_end_loses_much_and_not_little() {
        // The numbers of messages go up to 2^62.
        let skipping = Arc::new(Counted(FlowCounters {
            skipped_messages: 1 << 62,
            peer_duplicates: 1 << 62,
            ..FlowCounters::default()
        }));
        let mut sum = Sum::default();
        for _ in 0..4 {
            Meter::new(&skipping).add_to(&mut sum);
        }
        assert_eq!(sum.received.lost, u64::MAX);
        assert_eq!(sum.sent.duplicated, u64::MAX);
    }

    /// A flow that the session forgets, at once or between two questions.
    #[derive(Default)]
    struct Forgotten(std::sync::atomic::AtomicU8);

    impl Forgotten {
        fn knows(&self, what: u8) -> bool {
            self.0.load(std::sync::atomic::Ordering::Relaxed) <= what
        }
    }

    impl PacketFlow for Forgotten {
        async fn send(&self, _: Bytes) -> io::Result<()> {
            Ok(())
        }

        async fn recv(&self) -> Option<Bytes> {
            None
        }

        fn counters(&self) -> Option<FlowCounters> {
            self.knows(1).then(|| FlowCounters {
                repaired_symbols: 21,
                ..FlowCounters::default()
            })
        }

        fn given_up(&self) -> Option<GivenUp> {
            self.knows(0).then(|| GivenUp {
                waited: 5,
                on: [("wwan0".to_owned(), 4)].into(),
            })
        }
    }

    #[test]
    fn what_was_known_of_a_flow_outlives_it() {
        let flow = Arc::new(Forgotten::default());
        let meter = Meter::new(&flow);
        let known = || {
            let mut sum = Sum::default();
            meter.add_to(&mut sum);
            let LiveSent {
                repaired,
                given_up_waiting,
                given_up_on,
                ..
            } = sum.sent;
            (repaired, given_up_waiting, given_up_on)
        };
        let first = known();
        assert_eq!((first.0, first.1), (21, 5));
        for forgotten in [1, 2] {
            flow.0
                .store(forgotten, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(known(), first, "{forgotten}");
        }
    }

    #[test]
    fn the_rate_is_that_of_the_last_whole_second() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut rate = RateMeter::new(start);
        rate.add(at(100), 500);
        rate.add(at(900), 500);
        assert_eq!(rate.bps(at(999)), 0);
        rate.add(at(1_200), 70);
        assert_eq!(rate.bps(at(1_900)), 8_000);
        assert_eq!(rate.bps(at(2_000)), 560);
        assert_eq!(rate.bps(at(3_500)), 0);
    }
}
