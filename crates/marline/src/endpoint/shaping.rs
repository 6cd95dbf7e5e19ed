//! What a server lets each client send and receive: one bucket of tokens for each direction, which
//! all sessions of the client share.
//!
//! What the server sends is held back where it would be planned, so that it waits in the flows'
//! own queues, which their writers know the length of. What the client sends passes a short queue,
//! as over a link of that rate, so its congestion control finds the rate. What would stand
//! longer in that queue is dropped, or left in the kernel where it came over TCP.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use marline_base::Rate;
use tokio::time::Instant;

use crate::support::lock;

/// What may leave at once after a pause: some turns of the driver, so that a timer of milliseconds
/// costs no throughput. A choice, not tuned.
const BURST: Duration = Duration::from_millis(4);
/// Longest that a datagram from a client waits. A queue of a usual round trip, which congestion
/// control needs to find the rate; what a call still bears. A choice, not tuned.
const WAIT: Duration = Duration::from_millis(60);
/// Datagrams of 1,500 bytes that may wait whatever time that takes, or a slow client would have
/// each burst dropped.
const LEAST: u32 = 10;

/// Rates that a server keeps a client to, counted over its datagrams with all that Marline adds to
/// the data, the headers of UDP and IP left out. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientLimits {
    /// What the server sends to it.
    pub down: Option<Rate>,
    /// What it sends to the server.
    pub up: Option<Rate>,
}

/// Both directions of a client.
#[derive(Debug, Default)]
pub(super) struct Shaper {
    pub(super) down: Bucket,
    pub(super) up: Bucket,
}

impl Shaper {
    pub(super) fn set(&self, limits: ClientLimits) {
        self.down.set(limits.down);
        self.up.set(limits.up);
    }
}

/// The tokens of one direction, counted as the time until which those that were spent last.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// Spares others the lock.
    limited: AtomicBool,
    spent: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    /// Never zero.
    rate: Option<Rate>,
    until: Option<Instant>,
}

impl Spent {
    fn last(&self, now: Instant) -> Instant {
        self.until.map_or(now, |until| until.max(now))
    }

    /// Longest that a datagram waits.
    fn longest(&self) -> Duration {
        let some = self.rate.map(|rate| LEAST * rate.time_for(1_500));
        WAIT.max(some.unwrap_or_default())
    }
}

impl Bucket {
    fn set(&self, rate: Option<Rate>) {
        let mut spent = lock(&self.spent);
        let rate = rate.map(|rate| rate.max(Rate::from_bps(1)));
        if spent.rate != rate {
            *spent = Spent { rate, until: None };
        }
        self.limited.store(rate.is_some(), Ordering::Relaxed);
    }

    pub(super) fn is_limited(&self) -> bool {
        self.limited.load(Ordering::Relaxed)
    }

    /// When the next datagram may leave, if that is later than `now`.
    pub(super) fn opens(&self, now: Instant) -> Option<Instant> {
        if !self.is_limited() {
            return None;
        }
        let opens = lock(&self.spent).until?.checked_sub(BURST)?;
        (opens > now).then_some(opens)
    }

    /// Takes the tokens of a datagram that leaves now.
    pub(super) fn spend(&self, now: Instant, bytes: usize) {
        if !self.is_limited() {
            return;
        }
        let mut spent = lock(&self.spent);
        if let Some(rate) = spent.rate {
            spent.until = Some(spent.last(now) + rate.time_for(bytes as u64));
        }
    }

    /// Until when nothing more is to be taken from a carrier that loses nothing and so learns of no
    /// rate by losses; `None` if it may be taken.
    pub(super) fn full(&self, now: Instant) -> Option<Instant> {
        if !self.is_limited() {
            return None;
        }
        let spent = lock(&self.spent);
        let full = spent.until?.checked_sub(spent.longest())?;
        (full > now).then_some(full)
    }

    /// Until when a datagram that has come is to wait; its tokens are taken. `None` where it would
    /// wait too long, and its carrier may lose it.
    pub(super) fn pass(&self, now: Instant, bytes: usize, may_lose: bool) -> Option<Instant> {
        let mut spent = lock(&self.spent);
        let Some(rate) = spent.rate else {
            return Some(now);
        };
        let last = spent.last(now);
        if may_lose && last.duration_since(now) > spent.longest() {
            return None;
        }
        spent.until = Some(last + rate.time_for(bytes as u64));
        Some(last.checked_sub(BURST).map_or(now, |due| due.max(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(mbps: u64) -> Bucket {
        let bucket = Bucket::default();
        bucket.set(Some(Rate::from_mbps(mbps)));
        bucket
    }

    #[test]
    fn what_leaves_keeps_the_rate_and_a_pause_saves_up_no_more_than_a_burst() {
        let (bucket, start) = (bucket(8), Instant::now());
        let send = |from: Duration, during: Duration| {
            let (mut now, end, mut sent) = (start + from, start + from + during, 0);
            loop {
                match bucket.opens(now) {
                    Some(opens) if opens >= end => return sent,
                    Some(opens) => now = opens,
                    None => {
                        bucket.spend(now, 1_000);
                        sent += 1;
                    }
                }
            }
        };
        let second = Duration::from_secs(1);
        // 8 Mb/s are one of these datagrams a millisecond; the burst is four, and the one that
        // empties it.
        assert!((1_000..=1_005).contains(&send(Duration::ZERO, second)));
        assert!((1_000..=1_005).contains(&send(100 * second, second)));
    }

    #[test]
    fn what_comes_waits_as_over_a_link_and_no_longer_than_a_call_bears() {
        let (bucket, now) = (bucket(8), Instant::now());
        let waits: Vec<Option<Instant>> = (0..100).map(|_| bucket.pass(now, 1_000, true)).collect();
        let passed: Vec<Instant> = waits.iter().copied().flatten().collect();
        assert_eq!(passed.len(), 61, "60 ms of a datagram a millisecond");
        assert!(passed.is_sorted() && passed[4] == now);
        assert_eq!(passed[60].duration_since(now), WAIT - BURST);
        assert!(waits[61..].iter().all(Option::is_none));
        // What is dropped costs nothing: after the queue is empty the next one passes at once.
        let later = now + Duration::from_millis(61);
        assert_eq!(bucket.pass(later, 1_000, true), Some(later));
    }

    #[test]
    fn a_carrier_that_loses_nothing_is_not_read_from_while_much_waits() {
        let (bucket, now) = (bucket(8), Instant::now());
        assert_eq!(bucket.full(now), None);
        let waits: Vec<_> = (0..100).map(|_| bucket.pass(now, 1_000, false)).collect();
        assert!(waits.iter().all(Option::is_some));
        let full = bucket.full(now).unwrap();
        assert_eq!(full.duration_since(now), Duration::from_millis(100) - WAIT);
        assert_eq!(bucket.full(full), None);
    }

    #[test]
    fn a_slow_client_has_room_for_some_datagrams() {
        let bucket = Bucket::default();
        bucket.set(Some(Rate::from_kbps(100)));
        let now = Instant::now();
        let passed = (0..100)
            .filter_map(|_| bucket.pass(now, 1_500, true))
            .count();
        assert_eq!(passed, 11);
    }

    #[test]
    fn without_a_limit_nothing_waits_and_one_may_be_lifted() {
        let (bucket, now) = (Bucket::default(), Instant::now());
        bucket.spend(now, 1 << 30);
        assert!(!bucket.is_limited() && bucket.opens(now).is_none());
        assert_eq!(bucket.pass(now, 1 << 30, true), Some(now));
        assert_eq!(bucket.full(now), None);
        bucket.set(Some(Rate::from_kbps(8)));
        bucket.spend(now, 1_000);
        assert!(bucket.opens(now).is_some());
        bucket.set(None);
        assert!(bucket.opens(now).is_none());
        bucket.set(Some(Rate::ZERO));
        assert!(bucket.pass(now, 1, true).is_some(), "slow, but no panic");
    }
}
