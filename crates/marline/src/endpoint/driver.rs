//! The task that moves datagrams and time through a session.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use marline_base::Instant;
use marline_proto::wire::{PathId, close_code};
use marline_proto::{Event, Session};
use tokio::sync::mpsc;
use tokio::time::Sleep;

use super::clock::Clock;
use super::handle::Handle;
use super::shared::{Shared, State};
use crate::carrier::{Carrier, SendError};

/// Datagrams taken from one carrier, and sent in all, before the other side has its turn.
const BATCH: usize = 64;
/// Turns before the task yields to the runtime.
const TURNS: usize = 8;

/// Time for the session's last datagrams to leave before the carriers are closed.
const FAREWELL: Duration = Duration::from_millis(20);

/// A path's carrier has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathEnd {
    /// The path, which the session no longer has.
    pub path: PathId,
    /// Why, in words.
    pub reason: String,
}

/// What a [`Handle`] asks of the driver.
#[derive(Debug)]
pub(super) enum Command {
    /// The session has the path already; here is its carrier.
    Attach(PathId, Box<dyn Carrier>),
    /// The session has removed the path.
    Detach(PathId),
}

#[derive(Debug)]
struct Attached {
    path: PathId,
    carrier: Box<dyn Carrier>,
    /// A datagram that the carrier had no room for.
    pending: Option<Bytes>,
}

/// Drives one session; must be spawned (or awaited) for anything to happen.
///
/// Completes when the session is over and the peer was told, with the carriers closed.
#[derive(Debug)]
pub struct Driver {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedReceiver<Command>,
    ends: mpsc::UnboundedSender<PathEnd>,
    attached: Vec<Attached>,
    timer: Pin<Box<Sleep>>,
    received: Vec<Bytes>,
    buf: Vec<u8>,
    parting: bool,
}

impl Driver {
    /// A driver for a session that `make` creates at the driver's own time zero, a handle on it,
    /// and the news of carriers that ended.
    pub fn new<E>(
        make: impl FnOnce(Instant) -> Result<Session, E>,
    ) -> Result<(Self, Handle, mpsc::UnboundedReceiver<PathEnd>), E> {
        let clock = Clock::new();
        let shared = Shared::new(make(clock.now())?, clock);
        let (asked, commands) = mpsc::unbounded_channel();
        let (ends, ended) = mpsc::unbounded_channel();
        let handle = Handle::new(Arc::clone(&shared), asked);
        let driver = Self {
            shared,
            commands,
            ends,
            attached: Vec::new(),
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
            received: Vec::new(),
            buf: Vec::new(),
            parting: false,
        };
        Ok((driver, handle, ended))
    }

    fn take_commands(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(command)) = self.commands.poll_recv(cx) {
            match command {
                Command::Attach(path, carrier) => self.attached.push(Attached {
                    path,
                    carrier,
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

    /// Takes a batch from every carrier; true if one may have more.
    fn receive(&mut self, cx: &mut Context<'_>, state: &mut State) -> bool {
        let mut more = false;
        let mut ended = Vec::new();
        for attached in &mut self.attached {
            self.received.clear();
            match attached.carrier.poll_recv(cx, &mut self.received, BATCH) {
                Poll::Pending => {}
                Poll::Ready(Ok(count)) => {
                    more = true;
                    debug_assert!(count > 0);
                    let now = self.shared.clock.now();
                    for datagram in self.received.drain(..) {
                        state.session.handle_datagram(now, attached.path, &datagram);
                    }
                }
                Poll::Ready(Err(end)) => ended.push((attached.path, end.to_string())),
            }
        }
        for (path, reason) in ended {
            self.on_ended(state, path, reason);
        }
        more
    }

    fn on_ended(&mut self, state: &mut State, path: PathId, reason: String) {
        self.attached.retain(|a| a.path != path);
        let now = self.shared.clock.now();
        // The peer may have abandoned it already, and then the session does not know it any more.
        let _ = state.session.remove_path(now, path);
        tracing::info!(path = path.0, reason, "a path's carrier ended");
        // Nobody listens on a server: clients redial.
        let _ = self.ends.send(PathEnd { path, reason });
    }

    /// Sends a batch; true if there may be more.
    fn transmit(&mut self, cx: &mut Context<'_>, state: &mut State) -> bool {
        for attached in &mut self.attached {
            if let Some(datagram) = attached.pending.take() {
                match attached.carrier.send(datagram) {
                    Err(SendError::Full(datagram)) => attached.pending = Some(datagram),
                    _ => state.session.path_unblocked(attached.path),
                }
            }
        }
        let now = self.shared.clock.now();
        let mut ended = Vec::new();
        let mut sent = 0;
        while sent < BATCH {
            let Some(transmit) = state.session.poll_transmit(now, &mut self.buf) else {
                break;
            };
            sent += 1;
            let carrier = self.attached.iter_mut().find(|a| a.path == transmit.path);
            let Some(attached) = carrier else {
                continue;
            };
            match attached.carrier.send(Bytes::copy_from_slice(&self.buf)) {
                Ok(()) => {}
                Err(SendError::Full(datagram)) => {
                    attached.pending = Some(datagram);
                    state.session.path_blocked(attached.path);
                }
                // Loss detection sends it again elsewhere; a path whose limit has shrunk for good
                // looks lossy, which it is.
                Err(error @ SendError::TooLarge { .. }) => {
                    tracing::warn!(path = attached.path.0, %error, "datagram dropped");
                }
                Err(SendError::Ended(end)) => ended.push((attached.path, end.to_string())),
            }
        }
        for (path, reason) in ended {
            self.on_ended(state, path, reason);
        }
        for attached in &mut self.attached {
            // If there is room again already, the next turn sends what is pending.
            if attached.pending.is_some() && attached.carrier.poll_writable(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        sent == BATCH
    }

    /// Tells everybody concerned what has happened.
    fn report(&mut self, state: &mut State) {
        while let Some(event) = state.session.poll_event() {
            if let Event::PathAbandoned(path) = event {
                self.detach(path, "given up by the peer");
                let reason = String::from("given up by the peer");
                let _ = self.ends.send(PathEnd { path, reason });
            }
            state.on_event(event);
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>, state: &mut State) -> bool {
        self.take_commands(cx);
        let received = self.receive(cx, state);
        state.session.handle_timeout(self.shared.clock.now());
        let sent = self.transmit(cx, state);
        self.report(state);
        received || sent
    }

    /// Closes the carriers, a moment after the session's last datagrams were queued there: closing
    /// drops what is queued.
    fn part(&mut self, cx: &mut Context<'_>, reason: &str) -> Poll<()> {
        if !self.parting {
            self.parting = true;
            let moment = tokio::time::Instant::now() + FAREWELL;
            self.timer.as_mut().reset(moment);
        }
        if self.timer.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        for mut attached in self.attached.drain(..) {
            attached.carrier.close(close_code::NONE as u32, reason);
        }
        Poll::Ready(())
    }

    /// Waits for the session's next timer; false if it has run out already.
    fn set_timer(&mut self, cx: &mut Context<'_>, state: &State) -> bool {
        let now = self.shared.clock.now();
        let Some((at, _)) = state.session.poll_timeout(now) else {
            return true;
        };
        let at = self.shared.clock.real(at.max(now));
        if self.timer.deadline() != at {
            self.timer.as_mut().reset(at);
        }
        self.timer.as_mut().poll(cx).is_pending()
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let shared = Arc::clone(&this.shared);
        let mut state = shared.lock();
        state.wait_as_driver(cx);
        for _ in 0..TURNS {
            let busy = this.turn(cx, &mut state);
            if let Some(closed) = &state.closed {
                return this.part(cx, &closed.to_string());
            }
            if !busy && this.set_timer(cx, &state) {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
