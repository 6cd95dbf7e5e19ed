use super::clients::{Clients, NoUpstream};
use super::clock::Clock;
use super::direction::Lane;
use super::socket::header_bytes;
use super::stats::{LatenessRecorder, Stats};
use super::{Direction, Lateness};
use marline_base::Instant;
use marline_link::{ConfigError, LinkConfig, Verdict};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

/// Bytes on their way in one direction, at most; what comes on top is dropped and counted.
pub(super) const MAX_IN_FLIGHT_BYTES: usize = 64 << 20;

/// What the emulator's thread and its handle share.
#[derive(Debug)]
pub(super) struct Relay {
    clock: Clock,
    listen: Arc<UdpSocket>,
    target: SocketAddr,
    pub(super) clients: Clients,
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

#[derive(Clone, Debug)]
enum Way {
    Up(Arc<UdpSocket>),
    Down(SocketAddr),
}

impl Way {
    const fn direction(&self) -> Direction {
        match self {
            Self::Up(_) => Direction::Up,
            Self::Down(_) => Direction::Down,
        }
    }
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
    pub(super) fn new(
        clock: Clock,
        listen: Arc<UdpSocket>,
        target: SocketAddr,
        clients: Clients,
        lanes: [Lane; 2],
    ) -> Self {
        Self {
            clock,
            listen,
            target,
            clients,
            lanes,
            pending: BinaryHeap::new(),
            sequence: 0,
            refused: 0,
            lateness: LatenessRecorder::new(),
            warned: false,
        }
    }

    /// Takes a datagram of a client.
    pub(super) fn take_from_client(&mut self, from: SocketAddr, payload: &[u8]) {
        let now = self.clock.now();
        match self.clients.upstream(from, now) {
            Ok(upstream) => self.offer(now, &Way::Up(upstream), self.target, payload),
            Err(why) => {
                self.refused += 1;
                if !std::mem::replace(&mut self.warned, true) {
                    match why {
                        NoUpstream::Full => tracing::warn!(
                            "more clients than the emulated link takes; {from} is not served"
                        ),
                        NoUpstream::Socket(error) => {
                            tracing::warn!("no socket for {from} towards {}: {error}", self.target);
                        }
                    }
                }
            }
        }
    }

    /// Takes a datagram of the target for the client at `to`.
    pub(super) fn take_from_target(&mut self, to: SocketAddr, payload: &[u8]) {
        let now = self.clock.now();
        self.clients.answered(to, now);
        self.offer(now, &Way::Down(to), to, payload);
    }

    fn offer(&mut self, now: Instant, way: &Way, to: SocketAddr, payload: &[u8]) {
        let bytes = payload.len() as u32 + header_bytes(to);
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
        let (sent, to) = match &due.way {
            Way::Up(upstream) => (upstream.send(&due.payload), self.target),
            Way::Down(client) => (self.listen.send_to(&due.payload, client), *client),
        };
        let lane = &mut self.lanes[due.way.direction() as usize];
        lane.in_flight_bytes -= due.payload.len();
        lane.stats.in_flight -= 1;
        match sent {
            Ok(_) => {
                lane.stats.sent += 1;
                lane.stats.sent_bytes += due.payload.len() as u64 + u64::from(header_bytes(to));
            }
            Err(error) => {
                lane.stats.send_errors += 1;
                if !std::mem::replace(&mut self.warned, true) {
                    tracing::warn!("the emulated link cannot send to {to}: {error}");
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
        self.clients.expire(self.clock.now());
    }

    pub(super) fn stats(&self) -> Stats {
        let now = self.clock.now();
        let [up, down] = &self.lanes;
        Stats {
            up: up.stats(now),
            down: down.stats(now),
            clients: self.clients.len(),
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
