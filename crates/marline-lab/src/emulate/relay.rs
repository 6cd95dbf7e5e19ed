use super::clients::{Clients, NoUpstream};
use super::clock::Clock;
use super::direction::Lane;
use super::ends::{Ends, NoWay};
use super::port::Origin;
use super::stats::{LatenessRecorder, Stats};
use super::way::Way;
use super::{Direction, Lateness};
use marline_base::Instant;
use marline_link::{ConfigError, LinkConfig, Verdict};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Bytes on their way in one direction, at most; what comes on top is dropped and counted.
pub(super) const MAX_IN_FLIGHT_BYTES: usize = 64 << 20;

/// What the emulator's thread and its handle share.
#[derive(Debug)]
pub(super) struct Relay {
    clock: Clock,
    pub(super) ends: Ends,
    lanes: [Lane; 2],
    pending: BinaryHeap<Pending>,
    /// Numbers datagrams, so that those due at the same time leave in the order in which they came.
    sequence: u64,
    refused: u64,
    lateness: LatenessRecorder,
    warned: bool,
}

/// A datagram on its way.
#[derive(Debug)]
struct Pending {
    at: Instant,
    sequence: u64,
    departs: Instant,
    way: Way,
    payload: Vec<u8>,
}

impl Ord for Pending {
    /// The greatest is due first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pending {}

impl Relay {
    pub(super) fn new(clock: Clock, ends: Ends, lanes: [Lane; 2]) -> Self {
        Self {
            clock,
            ends,
            lanes,
            pending: BinaryHeap::new(),
            sequence: 0,
            refused: 0,
            lateness: LatenessRecorder::new(),
            warned: false,
        }
    }

    /// Takes a packet.
    pub(super) fn take(&mut self, origin: Origin, payload: &[u8]) {
        let now = self.clock.now();
        match self.ends.way(origin, now) {
            Ok(way) => self.offer(now, &way, payload),
            Err(NoWay { from, target, why }) => {
                self.refused += 1;
                if !std::mem::replace(&mut self.warned, true) {
                    match why {
                        NoUpstream::Full => tracing::warn!(
                            "more clients than the emulated link takes; {from} is not served"
                        ),
                        NoUpstream::Socket(error) => {
                            tracing::warn!("no socket for {from} towards {target}: {error}");
                        }
                    }
                }
            }
        }
    }

    fn offer(&mut self, now: Instant, way: &Way, payload: &[u8]) {
        let bytes = payload.len() as u32 + way.header_bytes();
        let lane = &mut self.lanes[way.direction() as usize];
        let Verdict::Delivered { at, departs, copy } = lane.offer(now, bytes) else {
            return;
        };
        for at in [Some(at), copy].into_iter().flatten() {
            if lane.in_flight_bytes + payload.len() > MAX_IN_FLIGHT_BYTES {
                lane.stats.overflow += 1;
                continue;
            }
            lane.in_flight_bytes += payload.len();
            lane.stats.in_flight += 1;
            self.sequence += 1;
            self.pending.push(Pending {
                at,
                sequence: self.sequence,
                departs,
                way: way.clone(),
                payload: payload.to_vec(),
            });
        }
    }

    /// Sends what is due; answers when the next datagram is.
    pub(super) fn send_due(&mut self) -> Option<Instant> {
        let mut now = self.clock.now();
        loop {
            let next = self.pending.peek()?.at;
            if next > now {
                now = self.clock.now();
                if next > now {
                    return Some(next);
                }
            }
            let due = self.pending.pop()?;
            self.send(&due);
            now = self.clock.now();
            self.lateness.record(now.since(due.at));
        }
    }

    fn send(&mut self, due: &Pending) {
        let (sent, way) = (due.way.send(&due.payload), &due.way);
        let lane = &mut self.lanes[way.direction() as usize];
        lane.in_flight_bytes -= due.payload.len();
        lane.stats.in_flight -= 1;
        match sent {
            Ok(_) => {
                lane.stats.sent += 1;
                lane.stats.sent_bytes += due.payload.len() as u64 + u64::from(way.header_bytes());
            }
            Err(error) => {
                lane.stats.send_errors += 1;
                if !std::mem::replace(&mut self.warned, true) {
                    tracing::warn!("the emulated link cannot send to {way}: {error}");
                }
            }
        }
    }

    /// Switches one direction off or on; going dark loses what has not left the queue.
    pub(super) fn set_dark(&mut self, direction: Direction, dark: bool) {
        let now = self.clock.now();
        let lane = &mut self.lanes[direction as usize];
        lane.set_dark(now, dark);
        if !dark {
            return;
        }
        self.pending.retain(|pending| {
            let kept = pending.way.direction() != direction || pending.departs <= now;
            if !kept {
                lane.in_flight_bytes -= pending.payload.len();
                lane.stats.in_flight -= 1;
                lane.stats.cut += 1;
            }
            kept
        });
    }

    /// Changes one direction's link for what is offered from now on.
    pub(super) fn reconfigure(
        &mut self,
        direction: Direction,
        config: LinkConfig,
    ) -> Result<(), ConfigError> {
        let now = self.clock.now();
        self.lanes[direction as usize].reconfigure(now, config)
    }

    pub(super) fn expire(&mut self) {
        if let Some(clients) = self.ends.clients_mut() {
            clients.expire(self.clock.now());
        }
    }

    pub(super) fn stats(&self) -> Stats {
        let now = self.clock.now();
        let [up, down] = &self.lanes;
        Stats {
            up: up.stats(now),
            down: down.stats(now),
            clients: self.ends.clients().map_or(0, Clients::len),
            refused: self.refused,
            lateness: self.lateness(),
        }
    }

    fn lateness(&self) -> Lateness {
        self.lateness.lateness()
    }

    pub(super) const fn clock(&self) -> Clock {
        self.clock
    }
}
