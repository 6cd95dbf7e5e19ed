use hdrhistogram::Histogram;
use marline_link::Counters;
use std::time::Duration;

/// What an emulator has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// From the clients to the target, or from the near device to the far one.
    pub up: DirectionStats,
    /// From the target to the clients, or from the far device to the near one.
    pub down: DirectionStats,
    /// Clients in the table; none between devices.
    pub clients: usize,
    /// Datagrams dropped because the table of clients was full or no socket could be made for
    /// a new client.
    pub refused: u64,
    /// How late datagrams were sent.
    pub lateness: Lateness,
}

/// What happened in one direction. Bytes count with IP and UDP headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DirectionStats {
    /// The link model's verdicts.
    pub link: Counters,
    /// Datagrams sent on, second copies included.
    pub sent: u64,
    /// Bytes sent on.
    pub sent_bytes: u64,
    /// Accepted datagrams that were in the queue when the link was switched dark.
    pub cut: u64,
    /// Accepted datagrams dropped because too many bytes were on their way at once.
    pub overflow: u64,
    /// Datagrams that the system did not take; the first error is logged.
    pub send_errors: u64,
    /// Bytes in the link's queue now.
    pub queued_bytes: u64,
    /// Datagrams on their way now, in the queue or behind it.
    pub in_flight: usize,
}

/// Time from when the model says that a datagram arrives to when it had been handed to the system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lateness {
    /// Datagrams measured.
    pub count: u64,
    /// Median.
    pub p50: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// The worst.
    pub max: Duration,
}

/// Collects lateness in nanoseconds, to 1 %; more than a minute counts as a minute.
#[derive(Debug)]
pub(super) struct LatenessRecorder(Histogram<u64>);

const SHORTEST_NS: u64 = 1_000;
const LONGEST_NS: u64 = 60_000_000_000;

impl LatenessRecorder {
    pub(super) fn new() -> Self {
        Self(
            Histogram::new_with_bounds(SHORTEST_NS, LONGEST_NS, 2).expect("constant, valid bounds"),
        )
    }

    pub(super) fn record(&mut self, late: Duration) {
        let nanos = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record(nanos);
    }

    pub(super) fn lateness(&self) -> Lateness {
        Lateness {
            count: self.0.len(),
            p50: Duration::from_nanos(self.0.value_at_quantile(0.5)),
            p99: Duration::from_nanos(self.0.value_at_quantile(0.99)),
            max: Duration::from_nanos(self.0.max()),
        }
    }
}
