//! The task that moves datagrams and time through a session.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use marline_base::Instant;
use marline_proto::wire::{PathId, close_code};
use marline_proto::{CloseReason, Event, Session as Machine, WakeReason};
use tokio::sync::mpsc;
use tokio::time::Sleep;

use super::buffers::lend;
use super::clock::Clock;
use super::session::Session;
use super::shared::{Command, Shared, State};
use crate::carrier::{Carrier, CarrierEnd, CarrierKind, SESSION_OVER, SendError};

/// Datagrams taken from one carrier, and sent in all, before the other side has its turn.
const BATCH: usize = 64;
/// A client's sessions keep their thread, each its lock, no longer than this, and one datagram
/// each: what others add to a packet's delay stays below a millisecond where three clients are
/// busy.
const SLICE: Duration = Duration::from_micros(250);
/// Datagrams of a peer with a limit that wait at most: 60 ms of 800 Mb/s; small ones of a fast
/// peer are dropped sooner than their time says.
const HELD: usize = 4_096;
/// Time for the session's last datagrams to leave before the carriers are closed: closing drops
/// what is queued.
const MOMENT: Duration = Duration::from_millis(20);
/// Longest wait, after that, for the carriers to inform the peer.
const FAREWELL: Duration = Duration::from_millis(500);

#[derive(Debug)]
struct Attached {
    path: PathId,
    carrier: Box<dyn Carrier>,
    /// Longest datagram (bytes) that the carrier took when the session was told last.
    max_datagram: usize,
    /// A datagram that the carrier had no room for.
    pending: Option<Bytes>,
    /// The carrier loses nothing that it took, as TCP.
    reliable: bool,
}

/// Drives one session; must be spawned (or awaited) for anything to happen.
///
/// Completes when the session is over and the peer was informed, with the carriers closed.
#[derive(Debug)]
pub struct Driver {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedReceiver<Command>,
    attached: Vec<Attached>,
    timer: Pin<Box<Sleep>>,
    /// What carriers brought and the session has not seen yet.
    received: VecDeque<(PathId, Bytes)>,
    /// The same, of a peer that sends more than it may, with when the session is to see it.
    held: VecDeque<(tokio::time::Instant, PathId, Bytes)>,
    batch: Vec<Bytes>,
    /// When the peer may be sent the next datagram, if that was too early in the last turn.
    closed_until: Option<tokio::time::Instant>,
    /// When more is taken from reliable carriers, if much waits of what the peer sent.
    full_until: Option<tokio::time::Instant>,
    /// The carrier that is asked first in the next turn.
    first: usize,
    buf: Vec<u8>,
    stage: Stage,
}

/// The time that a session has before others have theirs.
#[derive(Debug)]
struct Slice {
    begun: std::time::Instant,
    length: Duration,
    /// Times that it was asked for, and whether it was found to be over.
    asked: Cell<u32>,
    over: Cell<bool>,
}

impl Slice {
    /// A datagram takes some microseconds at most, and the clock is read for every eighth alone
    /// where a session has as long as this.
    const LONG: Duration = Duration::from_micros(100);

    /// A session's part of what its client's `sessions` have together.
    fn begin(sessions: u32) -> Self {
        Self {
            begun: std::time::Instant::now(),
            length: SLICE / sessions.max(1),
            asked: Cell::new(0),
            over: Cell::new(false),
        }
    }

    fn is_over(&self) -> bool {
        let asked = self.asked.replace(self.asked.get().wrapping_add(1));
        if !self.over.get() && (asked.is_multiple_of(8) || self.length < Self::LONG) {
            self.over.set(self.begun.elapsed() >= self.length);
        }
        self.over.get()
    }
}

/// How far the driver is.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Running,
    /// The session is over and its last datagrams are with the carriers.
    Over,
    /// The carriers are closed, and inform their peers.
    Farewell,
}

impl Driver {
    /// A driver for a session that `make` creates at the driver's own time zero, and a handle on
    /// it.
    pub fn new<E>(make: impl FnOnce(Instant) -> Result<Machine, E>) -> Result<(Self, Session), E> {
        let clock = Clock::new();
        let shared = Shared::new(make(clock.now())?, clock);
        let (asked, commands) = mpsc::unbounded_channel();
        let handle = Session::new(Arc::clone(&shared), asked);
        let driver = Self {
            shared,
            commands,
            attached: Vec::new(),
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
            received: VecDeque::new(),
            held: VecDeque::new(),
            batch: Vec::new(),
            closed_until: None,
            full_until: None,
            first: 0,
            buf: Vec::new(),
            stage: Stage::Running,
        };
        Ok((driver, handle))
    }

    fn take_commands(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(command)) = self.commands.poll_recv(cx) {
            match command {
                Command::Attach(path, carrier) => self.attached.push(Attached {
                    reliable: carrier.kind() == CarrierKind::Tcp,
                    path,
                    carrier,
                    max_datagram: 0,
                    pending: None,
                }),
                Command::Detach(path) => self.detach(path, "the path was removed"),
            }
        }
    }

    fn detach(&mut self, path: PathId, reason: &str) {
        if let Some(index) = self.attached.iter().position(|a| a.path == path) {
            let mut attached = self.attached.swap_remove(index);
            attached.carrier.close(close_code::NONE as u32, reason);
        }
    }

    /// Takes a batch from every carrier, while its time lasts; true if one may have more.
    fn receive(&mut self, cx: &mut Context<'_>, state: &mut State, slice: &Slice) -> bool {
        let mut more = !self.received.is_empty();
        let mut ended = Vec::new();
        self.full_until = None;
        let shaper = state.shaper.clone();
        let shaper = shaper.as_ref().map(|shaper| &shaper.up);
        let shaper = shaper.filter(|bucket| bucket.is_limited());
        let carriers = self.attached.len();
        for turn in 0..carriers {
            if !self.received.is_empty() {
                break;
            }
            let attached = &mut self.attached[(self.first + turn) % carriers];
            if let Some(bucket) = shaper.filter(|_| attached.reliable)
                && let Some(full) = bucket.full(tokio::time::Instant::now())
            {
                self.full_until = Some(full);
                continue;
            }
            self.batch.clear();
            match attached.carrier.poll_recv(cx, &mut self.batch, BATCH) {
                Poll::Pending => continue,
                Poll::Ready(Ok(_)) => more = true,
                Poll::Ready(Err(end)) => ended.push((attached.path, end)),
            }
            let path = attached.path;
            match shaper {
                None => self
                    .received
                    .extend(self.batch.drain(..).map(|datagram| (path, datagram))),
                Some(bucket) => {
                    let may_lose = !attached.reliable;
                    let now = tokio::time::Instant::now();
                    for datagram in self.batch.drain(..) {
                        if (self.held.len() < HELD || !may_lose)
                            && let Some(due) = bucket.pass(now, datagram.len(), may_lose)
                        {
                            self.held.push_back((due, path, datagram));
                        }
                    }
                    self.let_pass(now);
                }
            }
            self.handle(state, slice);
        }
        self.first = self.first.wrapping_add(1);
        for (path, end) in ended {
            self.on_ended(state, path, &end);
        }
        more
    }

    /// Takes what has waited for as long as it had to.
    fn let_pass(&mut self, now: tokio::time::Instant) {
        let waits = self.held.iter().position(|(due, ..)| *due > now);
        let passes = self.held.drain(..waits.unwrap_or(self.held.len()));
        self.received
            .extend(passes.map(|(_, path, datagram)| (path, datagram)));
    }

    /// Shows the session what was received, while its time lasts.
    fn handle(&mut self, state: &mut State, slice: &Slice) {
        let now = self.shared.clock.now();
        while let Some((path, datagram)) = self.received.pop_front() {
            state.session.handle_datagram(now, path, &datagram);
            if slice.is_over() {
                break;
            }
        }
    }

    fn on_ended(&mut self, state: &mut State, path: PathId, end: &CarrierEnd) {
        self.attached.retain(|a| a.path != path);
        let now = self.shared.clock.now();
        // The peer may have abandoned it already, and then the session does not know it any more.
        let _ = state.session.remove_path(now, path);
        state.path_ended(path, &end.to_string());
        // Unlike the session's own CLOSE this is not lost with a datagram.
        if let CarrierEnd::Peer { code, reason } = end
            && *code == u64::from(SESSION_OVER)
        {
            let (code, reason) = (close_code::NONE, reason.clone());
            state.end(CloseReason::Peer { code, reason });
        }
    }

    /// Sends a batch; true if there may be more.
    fn transmit(&mut self, cx: &mut Context<'_>, state: &mut State, slice: &Slice) -> bool {
        let now = self.shared.clock.now();
        for attached in &mut self.attached {
            if let Some(told) = attached.carrier.congestion() {
                state.session.on_carrier_state(now, attached.path, &told);
            }
            let size = attached.carrier.max_datagram();
            if size != attached.max_datagram {
                attached.max_datagram = size;
                // It may have been removed meanwhile.
                let _ = state.session.path_max_datagram(now, attached.path, size);
            }
            if let Some(datagram) = attached.pending.take() {
                match attached.carrier.send(datagram) {
                    Err(SendError::Full(datagram)) => attached.pending = Some(datagram),
                    _ => state.session.path_unblocked(attached.path),
                }
            }
        }
        let mut ended = Vec::new();
        let (mut sent, mut more) = (0, true);
        let shaper = state.shaper.clone();
        let shaper = shaper.as_ref().map(|shaper| &shaper.down);
        let shaper = shaper.filter(|bucket| bucket.is_limited());
        self.closed_until = None;
        while sent < BATCH && (sent == 0 || !slice.is_over()) {
            let opens = shaper.and_then(|bucket| bucket.opens(tokio::time::Instant::now()));
            if opens.is_some() {
                self.closed_until = opens;
                more = false;
                break;
            }
            let Some(transmit) = state.session.poll_transmit(now, &mut self.buf) else {
                more = false;
                break;
            };
            sent += 1;
            if let Some(bucket) = shaper {
                bucket.spend(tokio::time::Instant::now(), self.buf.len());
            }
            let carrier = self.attached.iter_mut().find(|a| a.path == transmit.path);
            let Some(attached) = carrier else {
                continue;
            };
            match attached.carrier.send(lend(&mut self.buf)) {
                Ok(()) => {}
                Err(SendError::Full(datagram)) => {
                    attached.pending = Some(datagram);
                    state.session.path_blocked(attached.path);
                }
                // The path has just shrunk. Loss detection sends it again, in pieces.
                Err(error @ SendError::TooLarge { .. }) => {
                    tracing::debug!(path = attached.path.0, %error, "datagram dropped");
                }
                Err(SendError::Ended(end)) => ended.push((attached.path, end)),
            }
        }
        for (path, end) in ended {
            self.on_ended(state, path, &end);
        }
        for attached in &mut self.attached {
            let _ = attached.carrier.poll_flush(cx);
            // If there is room again already, the next turn sends what is pending.
            if attached.pending.is_some() && attached.carrier.poll_writable(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        more
    }

    /// Wakes every task that what has happened concerns.
    fn report(&mut self, state: &mut State) {
        while let Some(event) = state.session.poll_event() {
            if let Event::PathAbandoned(path) = event {
                self.detach(path, "given up by the peer");
            }
            state.on_event(event);
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>, state: &mut State, slice: &Slice) -> bool {
        self.take_commands(cx);
        if !self.held.is_empty() {
            self.let_pass(tokio::time::Instant::now());
        }
        self.handle(state, slice);
        let received = self.receive(cx, state, slice);
        state.session.handle_timeout(self.shared.clock.now());
        let sent = self.transmit(cx, state, slice);
        self.report(state);
        received || sent
    }

    /// Waits for the session's next timer; false if it has run out already.
    fn set_timer(&mut self, cx: &mut Context<'_>, state: &State) -> bool {
        let now = self.shared.clock.now();
        let at = match (self.closed_until, state.session.poll_timeout(now)) {
            // Whatever the session would send now waits until then.
            (Some(opens), _) => Some(opens),
            (None, None) => None,
            (None, Some((_, WakeReason::Planning))) => return false,
            (None, Some((at, _))) => Some(self.shared.clock.real(at.max(now))),
        };
        let due = self.held.front().map(|(due, ..)| *due);
        let Some(at) = at.into_iter().chain(due).chain(self.full_until).min() else {
            return true;
        };
        if self.timer.deadline() != at {
            self.timer.as_mut().reset(at);
        }
        self.timer.as_mut().poll(cx).is_pending()
    }

    /// Sees the carriers through their end.
    fn finish(&mut self, cx: &mut Context<'_>, reason: &str) -> Poll<()> {
        match self.stage {
            Stage::Running => {
                self.set_limit(MOMENT);
                self.stage = Stage::Over;
            }
            Stage::Over if self.timer.as_mut().poll(cx).is_ready() => {
                for attached in &mut self.attached {
                    attached.carrier.close(SESSION_OVER, reason);
                }
                self.set_limit(FAREWELL);
                self.stage = Stage::Farewell;
            }
            Stage::Over => return Poll::Pending,
            Stage::Farewell => {
                let carriers = &mut self.attached;
                carriers.retain_mut(|a| a.carrier.poll_drained(cx).is_pending());
                let late = self.timer.as_mut().poll(cx).is_ready();
                if late || self.attached.is_empty() {
                    self.attached.clear();
                    return Poll::Ready(());
                }
                return Poll::Pending;
            }
        }
        // The next stage has to register for what it waits for.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn set_limit(&mut self, after: Duration) {
        let at = tokio::time::Instant::now() + after;
        self.timer.as_mut().reset(at);
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let shared = Arc::clone(&this.shared);
        let mut state = shared.lock();
        state.wait_as_driver(cx);
        let slice = Slice::begin(state.siblings);
        while !slice.is_over() {
            let over = |state: &State| state.closed.as_ref().map(|closed| closed.0.to_string());
            if this.stage != Stage::Running {
                return this.finish(cx, &over(&state).unwrap_or_default());
            }
            let busy = this.turn(cx, &mut state, &slice);
            if let Some(reason) = over(&state) {
                return this.finish(cx, &reason);
            }
            if !busy && this.set_timer(cx, &state) {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
