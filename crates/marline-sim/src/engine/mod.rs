//! The clock, the links, and what is on its way between sessions.
//!
//! The engine owns no session: its caller hands them in, so that a test's two sessions and
//! a scenario's many run on the same code. Session `2k` is the client of pair `k`, session
//! `2k + 1` its server. Several pairs may use one link, and then share its queue.
//!
//! Time jumps from event to event, ties are broken by the order of insertion, and every random
//! draw comes from a stream named after what draws: a run is a function of its inputs and seed.
//!
//! Only what had an event is touched: a session is asked what it has to send, and when it wants to
//! be woken, once after each instant at which it took an input or a timer; in between its answer is
//! remembered. Entries of the event queue are 24 bytes; datagrams wait in slots that are used
//! again.
//!
//! The same bytes come out everywhere: each link, session, workload and source draws from a stream
//! that is named after it, so that two schedulers meet the same links and the same applications,
//! and sums of measures are integers. A run knows nothing of other threads.

mod cable;
mod nat;
mod queue;
mod slots;

use std::ops::IndexMut;

use bytes::{Bytes, BytesMut};
use marline_base::{Duration, Instant, Rng};
use marline_link::{ConfigError, Link, LinkConfig, Verdict};
use marline_proto::Session;
use marline_proto::wire::PathId;

pub use cable::{Cable, End};
use nat::Nat;
pub(crate) use queue::Alarm;
use queue::{Due, Queue};
pub(crate) use slots::Slots;

/// This number of steps at one instant is a loop that lets no time pass.
const MAX_STEPS_AT_ONCE: u32 = 10_000;

/// Datagrams are written one after the other into chunks of this size (bytes): large enough to
/// save most allocations, small enough that one that is held for long keeps little alive.
const CHUNK: usize = 16 << 10;

/// The links of a cable, at work.
#[derive(Debug)]
struct Wire {
    up: Link,
    down: Link,
    nat: Option<Nat>,
    /// Bytes that the network adds to each datagram.
    overhead: u32,
    /// Times that the links were replaced, for seeds that differ.
    replaced: u32,
}

/// A datagram on its way.
#[derive(Debug)]
struct Flight {
    /// Index of the session that it goes to.
    to: usize,
    path: PathId,
    /// Index of the link that carries it.
    link: usize,
    /// It goes from a client to a server.
    up: bool,
    /// When it leaves the link's queue; until then an outage takes it.
    departs: Instant,
    datagram: Bytes,
}

/// What the engine knows of a session.
#[derive(Debug)]
struct Seat {
    /// When it must be woken; holds while it is not touched.
    wake: Instant,
    /// It took an input since its outputs were drained.
    touched: bool,
    /// When they are drained next, if it is touched.
    turn_at: Instant,
    /// Which link each of its paths runs over.
    routes: Vec<(PathId, usize)>,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Engine {
    now: Instant,
    rng: Rng,
    wires: Vec<Wire>,
    seats: Vec<Seat>,
    queue: Queue,
    flights: Slots<Flight>,
    /// Sessions that are touched, in the order in which that happened.
    touched: Vec<usize>,
    alarms: Vec<Alarm>,
    buf: Vec<u8>,
    /// The chunk that datagrams are written to.
    chunk: BytesMut,
    steps: u64,
    steps_at_once: u32,
    datagrams: u64,
    /// Let sessions send after each datagram, not after all of an instant.
    one_by_one: bool,
    /// From a session's input to its outputs.
    turn: Duration,
}

impl Engine {
    /// An engine at time zero for this number of pairs of sessions, without links.
    pub(crate) fn new(pairs: usize, rng: Rng) -> Self {
        let seat = || Seat {
            wake: Instant::ZERO,
            touched: false,
            turn_at: Instant::ZERO,
            routes: Vec::new(),
        };
        Self {
            now: Instant::ZERO,
            rng,
            wires: Vec::new(),
            seats: (0..2 * pairs).map(|_| seat()).collect(),
            queue: Queue::default(),
            flights: Slots::default(),
            touched: Vec::new(),
            alarms: Vec::new(),
            buf: Vec::with_capacity(1_500),
            chunk: BytesMut::with_capacity(CHUNK),
            steps: 0,
            steps_at_once: 0,
            datagrams: 0,
            one_by_one: false,
            turn: Duration::ZERO,
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Steps taken so far; each handles one instant's events.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Datagrams that sessions have put on links so far.
    pub(crate) fn datagrams(&self) -> u64 {
        self.datagrams
    }

    pub(crate) fn set_one_by_one(&mut self, one_by_one: bool) {
        self.one_by_one = one_by_one;
    }

    /// Lets sessions send this long after what made them, as on hosts that have other things to do.
    pub(crate) fn set_turn(&mut self, turn: Duration) {
        self.turn = turn;
    }

    /// Adds a link in both directions; returns its index.
    ///
    /// # Errors
    /// A parameter out of its range.
    pub(crate) fn add_link(&mut self, cable: &Cable, overhead: u32) -> Result<usize, ConfigError> {
        let wire = self.wire(self.wires.len(), cable, overhead, 0)?;
        self.wires.push(wire);
        Ok(self.wires.len() - 1)
    }

    fn wire(
        &self,
        index: usize,
        cable: &Cable,
        overhead: u32,
        replaced: u32,
    ) -> Result<Wire, ConfigError> {
        let link = |config: &LinkConfig, direction: &str| {
            let name = format!("link {index} {direction} {replaced}");
            Link::new(config.clone(), self.rng.stream(&name).next_u64())
        };
        Ok(Wire {
            up: link(&cable.up, "up")?,
            down: link(&cable.down, "down")?,
            nat: None,
            overhead,
            replaced,
        })
    }

    /// Puts other links, with empty queues, in the place of a link; what is on its way arrives
    /// unless `lose` says otherwise.
    ///
    /// # Errors
    /// As [`Engine::add_link`].
    pub(crate) fn replace_link(
        &mut self,
        index: usize,
        cable: &Cable,
        lose: bool,
    ) -> Result<(), ConfigError> {
        let Wire {
            overhead, replaced, ..
        } = self.wires[index];
        self.wires[index] = self.wire(index, cable, overhead, replaced + 1)?;
        if lose {
            self.flights.lose(|f| f.link == index);
        }
        Ok(())
    }

    /// Changes a link's parameters; what waits in its queues stays.
    ///
    /// # Errors
    /// As [`Engine::add_link`]; then nothing has changed upwards, or nothing downwards.
    pub(crate) fn reconfigure(
        &mut self,
        index: usize,
        up: &LinkConfig,
        down: &LinkConfig,
    ) -> Result<(), ConfigError> {
        let wire = &mut self.wires[index];
        wire.up.reconfigure(self.now, up.clone())?;
        wire.down.reconfigure(self.now, down.clone())
    }

    /// One direction of a link: that in which `from` sends.
    pub(crate) fn link(&mut self, index: usize, from: End) -> &mut Link {
        match from {
            End::Client => &mut self.wires[index].up,
            End::Server => &mut self.wires[index].down,
        }
    }

    /// Cuts a link in one or both directions, or restores it. What waits in the queue of a
    /// direction that is cut is lost; what has left it arrives.
    pub(crate) fn set_dark(&mut self, index: usize, up: bool, down: bool) {
        let now = self.now;
        self.wires[index].up.set_dark(now, up);
        self.wires[index].down.set_dark(now, down);
        self.flights.lose(|f| {
            let cut = if f.up { up } else { down };
            cut && f.link == index && f.departs > now
        });
    }

    /// Puts an address translator at the client's end of a link, which remembers it for so long
    /// after the client sent last.
    pub(crate) fn set_nat(&mut self, index: usize, remembers: Duration) {
        self.wires[index].nat = Some(Nat::new(remembers));
    }

    /// Lets a path of a pair of sessions run over a link.
    pub(crate) fn connect(&mut self, pair: usize, path: PathId, link: usize) {
        for seat in &mut self.seats[2 * pair..2 * pair + 2] {
            seat.routes.push((path, link));
        }
    }

    /// Ends what [`Engine::connect`] began; what is on its way arrives.
    pub(crate) fn disconnect(&mut self, pair: usize, path: PathId) {
        for seat in &mut self.seats[2 * pair..2 * pair + 2] {
            seat.routes.retain(|(p, _)| *p != path);
        }
    }

    /// The link that a path of a pair runs over.
    pub(crate) fn link_of(&self, pair: usize, path: PathId) -> Option<usize> {
        let routes = &self.seats[2 * pair].routes;
        routes.iter().find(|(p, _)| *p == path).map(|(_, l)| *l)
    }

    /// Calls the driver at a time, which is not before now.
    pub(crate) fn call_at(&mut self, at: Instant, alarm: Alarm) {
        self.queue.push_alarm(at.max(self.now), alarm);
    }

    /// Alarms that went off in the last [`Engine::advance`], in order.
    pub(crate) fn take_alarms(&mut self, into: &mut Vec<Alarm>) {
        into.clear();
        std::mem::swap(&mut self.alarms, into);
    }

    /// The session was used: it may have something to send.
    pub(crate) fn touch(&mut self, index: usize) {
        let seat = &mut self.seats[index];
        if !seat.touched {
            seat.touched = true;
            seat.turn_at = self.now + self.turn;
            self.touched.push(index);
        }
    }

    /// Sessions that took an input since the last [`Engine::flush`].
    pub(crate) fn touched(&self) -> &[usize] {
        &self.touched
    }

    /// Is it the turn of one of them?
    pub(crate) fn is_due(&self) -> bool {
        let due = |index: &usize| self.seats[*index].turn_at <= self.now;
        self.touched.iter().any(due)
    }

    /// Hands a datagram to a session as if it had arrived on the path.
    pub(crate) fn inject<S>(&mut self, sessions: &mut S, to: usize, path: PathId, datagram: &Bytes)
    where
        S: IndexMut<usize, Output = Session> + ?Sized,
    {
        self.touch(to);
        sessions[to].handle_datagram(self.now, path, datagram);
    }

    /// Puts everything that touched sessions want to send on the links, if it is their turn. The
    /// others have nothing new to say.
    #[inline]
    pub(crate) fn flush<S>(&mut self, sessions: &mut S)
    where
        S: IndexMut<usize, Output = Session> + ?Sized,
    {
        if !self.touched.is_empty() {
            self.flush_touched(sessions);
        }
    }

    fn flush_touched<S>(&mut self, sessions: &mut S)
    where
        S: IndexMut<usize, Output = Session> + ?Sized,
    {
        let now = self.now;
        let mut touched = std::mem::take(&mut self.touched);
        // Not the order of touching, so that it cannot matter what was handed in first.
        touched.sort_unstable();
        let mut buf = std::mem::take(&mut self.buf);
        touched.retain(|&index| {
            if self.seats[index].turn_at > now {
                return true;
            }
            while let Some(transmit) = sessions[index].poll_transmit(now, &mut buf) {
                self.offer(index, transmit.path, &buf);
            }
            let wake = sessions[index].poll_timeout(now);
            let seat = &mut self.seats[index];
            seat.wake = wake.map_or(Instant::FAR_FUTURE, |(at, _)| at);
            seat.touched = false;
            false
        });
        self.buf = buf;
        self.touched = touched;
    }

    fn offer(&mut self, from: usize, path: PathId, datagram: &[u8]) {
        let mut routes = self.seats[from].routes.iter();
        let Some(&(_, index)) = routes.find(|(p, _)| *p == path) else {
            return;
        };
        self.datagrams += 1;
        let wire = &mut self.wires[index];
        let size = datagram.len() as u32 + wire.overhead;
        let up = from.is_multiple_of(2);
        let now = self.now;
        if wire.nat.as_mut().is_some_and(|nat| !nat.passes(now, up)) {
            return;
        }
        let link = if up { &mut wire.up } else { &mut wire.down };
        let Verdict::Delivered { at, departs, copy } = link.offer(self.now, size) else {
            return;
        };
        let flight = |datagram| Flight {
            to: from ^ 1,
            path,
            link: index,
            up,
            departs,
            datagram,
        };
        let lane = 2 * index + usize::from(up);
        self.chunk.extend_from_slice(datagram);
        let datagram = self.chunk.split().freeze();
        // Sharing a buffer costs: only a datagram that arrives twice is cloned.
        let again = copy.map(|at| (at, datagram.clone()));
        let slot = self.flights.insert(flight(datagram));
        self.queue.push_arrival(at, lane, slot);
        if let Some((at, datagram)) = again {
            let slot = self.flights.insert(flight(datagram));
            self.queue.push_arrival(at, lane, slot);
        }
    }

    /// When something happens next, at the latest at `limit`.
    fn next_time(&self, limit: Instant) -> Instant {
        let due = |seat: &Seat| {
            if seat.touched {
                seat.turn_at
            } else {
                seat.wake
            }
        };
        let wake = self.seats.iter().map(due).min();
        let next = self.queue.next_at().into_iter().chain(wake).min();
        next.unwrap_or(limit).max(self.now).min(limit)
    }

    /// Moves the clock to the next event, no further than `limit`, and hands sessions what is due.
    /// Returns false once the clock stands at `limit` with nothing left to do there. Sessions must
    /// have been flushed, and are to be again.
    ///
    /// # Panics
    /// If no time passes: sessions ask for the same instant again and again.
    pub(crate) fn advance<S>(&mut self, sessions: &mut S, limit: Instant) -> bool
    where
        S: IndexMut<usize, Output = Session> + ?Sized,
    {
        let next = self.next_time(limit);
        self.steps += 1;
        self.steps_at_once = if next > self.now {
            0
        } else {
            self.steps_at_once + 1
        };
        if self.steps_at_once > MAX_STEPS_AT_ONCE {
            let wakes = (0..self.seats.len()).map(|i| sessions[i].poll_timeout(self.now));
            let wakes: Vec<_> = wakes.collect();
            panic!("time stands still at {:?}: {wakes:?}", self.now);
        }
        if next >= limit {
            let idle = self.now >= limit;
            self.now = limit;
            if idle {
                return false;
            }
        }
        self.now = next;
        while let Some(due) = self.queue.pop(self.now) {
            match due {
                Due::Alarm(alarm) => self.alarms.push(alarm),
                Due::Arrival(slot) => {
                    if let Some(flight) = self.flights.land(slot) {
                        self.inject(sessions, flight.to, flight.path, &flight.datagram);
                        if self.one_by_one {
                            self.flush(sessions);
                        }
                    }
                }
            }
        }
        for index in 0..self.seats.len() {
            let seat = &self.seats[index];
            if seat.wake <= self.now && !seat.touched {
                self.touch(index);
                sessions[index].handle_timeout(self.now);
            }
        }
        true
    }
}
