//! Two sessions, the links between them, and a clock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use bytes::Bytes;
use marline_base::{Instant, Rng};
use marline_link::{Link, LinkConfig, Verdict};
use marline_proto::path::PathParams;
use marline_proto::wire::PathId;
use marline_proto::{Config, Event, PathError, Session, Side, Transmit};

/// Which end of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The session that dialled.
    Client,
    /// The session that was dialled.
    Server,
}

impl End {
    /// The other end.
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// The two directions of what a path runs over.
#[derive(Clone, Debug)]
pub struct Cable {
    /// From the client to the server.
    pub up: LinkConfig,
    /// From the server to the client.
    pub down: LinkConfig,
}

impl Cable {
    /// The same link in both directions.
    pub fn symmetric(link: LinkConfig) -> Self {
        Self {
            up: link.clone(),
            down: link,
        }
    }
}

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct WorldConfig {
    /// The client's session.
    pub client: Config,
    /// The server's session.
    pub server: Config,
    /// Feeds every random draw.
    pub seed: u64,
}

#[derive(Debug)]
struct Wire {
    up: Link,
    down: Link,
}

impl Wire {
    fn from(&mut self, end: End) -> &mut Link {
        match end {
            End::Client => &mut self.up,
            End::Server => &mut self.down,
        }
    }
}

/// A datagram on its way; ordered by arrival, then by the order of sending.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    at: Instant,
    order: u64,
    to: End,
    path: PathId,
    /// When it leaves the link's queue; until then an outage takes it.
    departs: Instant,
    datagram: Bytes,
}

/// So many steps at one instant are a loop that lets no time pass.
const MAX_STEPS_AT_ONCE: u32 = 10_000;

/// Datagrams shorter than this (bytes) are copied out of the buffer that they were written in.
const COPY_BELOW: usize = 512;

/// Two sessions and the links between them in virtual time.
#[derive(Debug)]
pub struct World {
    now: Instant,
    /// The client's session.
    pub client: Session,
    /// The server's session.
    pub server: Session,
    wires: BTreeMap<PathId, Wire>,
    arrivals: BinaryHeap<Reverse<Arrival>>,
    order: u64,
    /// Times that each path got new links, for seeds that differ.
    rewired: u64,
    rng: Rng,
    buf: Vec<u8>,
    /// When each end must be woken; valid for ends that are not `touched`.
    wake: [Instant; 2],
    /// Ends that took an input since their outputs were drained.
    touched: [bool; 2],
    steps: u64,
    steps_at_once: u32,
    offered: u64,
    /// Let the sessions act after each datagram and not after all of an instant.
    one_by_one: bool,
}

impl World {
    /// A world without paths.
    ///
    /// # Panics
    /// If a session refuses its configuration: a mistake of the experiment.
    pub fn new(config: WorldConfig) -> Self {
        let now = Instant::ZERO;
        let rng = Rng::new(config.seed);
        let session = |side, own: &Config, peer: &Config, name| {
            let seed = rng.stream(name).next_u64();
            Session::new(now, side, own.clone(), peer.params(), seed)
                .unwrap_or_else(|error| panic!("the {name} session's configuration: {error}"))
        };
        Self {
            now,
            client: session(Side::Client, &config.client, &config.server, "client"),
            server: session(Side::Server, &config.server, &config.client, "server"),
            wires: BTreeMap::new(),
            arrivals: BinaryHeap::new(),
            order: 0,
            rewired: 0,
            rng,
            buf: Vec::with_capacity(1_500),
            wake: [Instant::ZERO; 2],
            touched: [true; 2],
            steps: 0,
            steps_at_once: 0,
            offered: 0,
            one_by_one: false,
        }
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The session at one end.
    pub fn session(&mut self, end: End) -> &mut Session {
        match end {
            End::Client => &mut self.client,
            End::Server => &mut self.server,
        }
    }

    /// Lays a path between the two ends, present on both at once.
    ///
    /// # Errors
    /// As [`Session::add_path`].
    ///
    /// # Panics
    /// If the link refuses its configuration: a mistake of the experiment.
    pub fn add_path(&mut self, cable: &Cable, params: &PathParams) -> Result<PathId, PathError> {
        let id = self.client.next_path_id().max(self.server.next_path_id());
        let wire = self.wire(id, cable);
        self.client.add_path(self.now, id, params)?;
        self.server.add_path(self.now, id, params)?;
        self.wires.insert(id, wire);
        Ok(id)
    }

    fn wire(&self, id: PathId, cable: &Cable) -> Wire {
        let link = |config: &LinkConfig, direction: &str| {
            let name = format!("path {} {direction} {}", id.0, self.rewired);
            Link::new(config.clone(), self.rng.stream(&name).next_u64())
                .unwrap_or_else(|error| panic!("the {direction} link of path {}: {error}", id.0))
        };
        Wire {
            up: link(&cable.up, "up"),
            down: link(&cable.down, "down"),
        }
    }

    /// Lets a path run over other links from now on, as after a change of network beneath its
    /// carrier. What is on its way still arrives unless `lose` says otherwise.
    ///
    /// # Panics
    /// As [`World::add_path`].
    pub fn rewire(&mut self, path: PathId, cable: &Cable, lose: bool) {
        self.rewired += 1;
        let wire = self.wire(path, cable);
        self.wires.insert(path, wire);
        if lose {
            self.arrivals.retain(|Reverse(a)| a.path != path);
        }
    }

    /// Cuts a path's wire in one or both directions, or mends it. What waits in the queue of a
    /// link that is cut is lost; what has left it arrives.
    pub fn set_dark(&mut self, path: PathId, up: bool, down: bool) {
        let now = self.now;
        let Some(wire) = self.wires.get_mut(&path) else {
            return;
        };
        wire.up.set_dark(now, up);
        wire.down.set_dark(now, down);
        self.arrivals.retain(|Reverse(a)| {
            let cut = if a.to == End::Server { up } else { down };
            !(cut && a.path == path && a.departs > now)
        });
    }

    /// Lets the sessions send after each datagram that they receive, and not only when all that
    /// arrive at an instant were handed over.
    pub fn set_one_by_one(&mut self, one_by_one: bool) {
        self.one_by_one = one_by_one;
    }

    /// Steps taken so far; each handles one instant's events.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Datagrams that the sessions have sent so far.
    pub fn datagrams(&self) -> u64 {
        self.offered
    }

    /// Hands a datagram to one end as if it had arrived on the path.
    pub fn inject(&mut self, to: End, path: PathId, datagram: Bytes) {
        let now = self.now;
        self.touched[to as usize] = true;
        self.session(to).handle_datagram(now, path, &datagram);
    }

    /// Puts everything that the sessions want to send on the links. Only sessions that took an
    /// input are asked: the others have nothing new to say.
    fn flush(&mut self) {
        let now = self.now;
        for end in [End::Client, End::Server] {
            if !std::mem::take(&mut self.touched[end as usize]) {
                continue;
            }
            let mut buf = std::mem::take(&mut self.buf);
            while let Some(transmit) = self.session(end).poll_transmit(now, &mut buf) {
                self.offer(end, transmit, &mut buf);
            }
            self.buf = buf;
            let wake = self.session(end).poll_timeout(now);
            self.wake[end as usize] = wake.map_or(Instant::FAR_FUTURE, |(at, _)| at);
        }
    }

    fn offer(&mut self, from: End, transmit: Transmit, datagram: &mut Vec<u8>) {
        let Some(wire) = self.wires.get_mut(&transmit.path) else {
            return;
        };
        self.offered += 1;
        let verdict = wire.from(from).offer(self.now, datagram.len() as u32);
        if let Verdict::Delivered { at, departs, copy } = verdict {
            // A long datagram is handed over with its buffer, a short one copied out of it.
            let datagram = if datagram.len() < COPY_BELOW {
                Bytes::copy_from_slice(datagram)
            } else {
                let next = Vec::with_capacity(datagram.capacity());
                Bytes::from(std::mem::replace(datagram, next))
            };
            for at in std::iter::once(at).chain(copy) {
                self.order += 1;
                self.arrivals.push(Reverse(Arrival {
                    at,
                    order: self.order,
                    to: from.other(),
                    path: transmit.path,
                    departs,
                    datagram: datagram.clone(),
                }));
            }
        }
    }

    /// When something happens next, at the latest at `limit`.
    fn next_time(&self, limit: Instant) -> Instant {
        let arrival = self.arrivals.peek().map(|Reverse(a)| a.at);
        let wake = self.wake[0].min(self.wake[1]);
        wake.min(arrival.unwrap_or(limit)).max(self.now).min(limit)
    }

    /// Moves the clock to the next event (no further than `limit`) and lets the sessions act.
    /// Returns false once the clock stands at `limit` with nothing left to do there.
    ///
    /// # Panics
    /// If the sessions' timers let no time pass: they ask for the same instant again and again.
    pub fn step(&mut self, limit: Instant) -> bool {
        // The caller may have used either session.
        self.touched = [true; 2];
        self.advance(limit)
    }

    fn advance(&mut self, limit: Instant) -> bool {
        self.flush();
        let next = self.next_time(limit);
        self.steps += 1;
        self.steps_at_once = if next > self.now {
            0
        } else {
            self.steps_at_once + 1
        };
        if self.steps_at_once > MAX_STEPS_AT_ONCE {
            let timers = [&self.client, &self.server].map(|s| s.poll_timeout(self.now));
            panic!(
                "time stands still at {:?}: client and server wait for {timers:?}",
                self.now
            );
        }
        if next >= limit {
            let idle = self.now >= limit;
            self.now = limit;
            if idle {
                return false;
            }
        }
        self.now = next.max(self.now);
        while let Some(Reverse(first)) = self.arrivals.peek() {
            if first.at > self.now {
                break;
            }
            if let Some(Reverse(arrival)) = self.arrivals.pop() {
                self.inject(arrival.to, arrival.path, arrival.datagram);
                if self.one_by_one {
                    self.flush();
                }
            }
        }
        let now = self.now;
        for end in [End::Client, End::Server] {
            if self.wake[end as usize] <= now {
                self.touched[end as usize] = true;
                self.session(end).handle_timeout(now);
            }
        }
        self.flush();
        true
    }

    /// Runs until `limit`, handing every event of either session to `on_event`.
    pub fn run_until(&mut self, limit: Instant, mut on_event: impl FnMut(&mut Self, End, Event)) {
        self.touched = [true; 2];
        loop {
            let more = self.advance(limit);
            self.drain(&mut on_event);
            if !more {
                break;
            }
        }
    }

    fn drain(&mut self, on_event: &mut impl FnMut(&mut Self, End, Event)) {
        for end in [End::Client, End::Server] {
            while let Some(event) = self.session(end).poll_event() {
                // Whoever hears of it may use either session.
                self.touched = [true; 2];
                on_event(self, end, event);
            }
        }
    }
}
