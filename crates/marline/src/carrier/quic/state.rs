//! A connection as the task sees it that handles it.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use quinn_proto::{
    ConnectionError, ConnectionHandle, EndpointEvent, Event, TransportError, TransportErrorCode,
    VarInt,
};

use super::clock;
use super::inbox::Inbox;
use super::outgoing::Outgoing;
use super::timer::Timer;
use super::underlay::Underlay;

/// One connection, and whoever waits for it.
pub(super) struct State {
    pub(super) proto: quinn_proto::Connection,
    pub(super) underlay: Underlay,
    /// Its number at its endpoint.
    handle: ConnectionHandle,
    /// What a server's socket brought for it.
    inbox: Arc<Inbox>,
    outgoing: Outgoing,
    timer: Timer,
    /// Something has happened since the connection was asked last what there is to send.
    dirty: bool,
    connected: bool,
    drained: bool,
    /// Why it has ended.
    error: Option<ConnectionError>,
    /// A carrier's task handles it, not the keeper.
    carried: bool,
    /// The task that handles it.
    driver: Option<Waker>,
    keeper: Option<Waker>,
    /// Tasks that wait for something to happen: the handshake, a stream, the end.
    waiting: Vec<Waker>,
}

/// Is it this task that `waker` wakes?
fn wakes(waker: Option<&Waker>, cx: &Context<'_>) -> bool {
    waker.is_some_and(|waker| waker.will_wake(cx.waker()))
}

impl State {
    pub(super) fn new(
        proto: quinn_proto::Connection,
        handle: ConnectionHandle,
        underlay: Underlay,
        inbox: Arc<Inbox>,
    ) -> Self {
        Self {
            proto,
            underlay,
            handle,
            inbox,
            outgoing: Outgoing::default(),
            timer: Timer::default(),
            dirty: true,
            connected: false,
            drained: false,
            error: None,
            carried: false,
            driver: None,
            keeper: None,
            waiting: Vec::new(),
        }
    }

    pub(super) const fn is_connected(&self) -> bool {
        self.connected
    }

    /// Nothing is left of it.
    pub(super) const fn is_drained(&self) -> bool {
        self.drained
    }

    pub(super) const fn error(&self) -> Option<&ConnectionError> {
        self.error.as_ref()
    }

    /// The keeper's turn, if no carrier handles the connection: packets are taken in, at most
    /// `most` before others have their turn, and what there is to do is done.
    pub(super) fn keep(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<()> {
        if !wakes(self.keeper.as_ref(), cx) {
            self.keeper = Some(cx.waker().clone());
        }
        if self.carried {
            return Poll::Pending;
        }
        self.set_driver(cx);
        let mut left = most;
        while left > 0 && self.receive_packet(cx) {
            left -= 1;
        }
        if left == 0 {
            cx.waker().wake_by_ref();
        }
        self.drive(cx);
        match self.drained {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// The task handles it from now on for a carrier; when the connection has ended it is the
    /// keeper's. False then.
    pub(super) fn take_over(&mut self, cx: &Context<'_>) -> bool {
        if self.error.is_some() {
            return false;
        }
        self.carried = true;
        self.set_driver(cx);
        true
    }

    fn set_driver(&mut self, cx: &Context<'_>) {
        if !wakes(self.driver.as_ref(), cx) {
            self.driver = Some(cx.waker().clone());
            self.timer.forget_task();
        }
    }

    /// Leaves the connection to the keeper again.
    fn return_to_keeper(&mut self) {
        self.carried = false;
        if let Some(keeper) = &self.keeper {
            keeper.wake_by_ref();
        }
    }

    /// Something was done to the connection that its next turn has to send.
    pub(super) const fn mark_dirty(&mut self) {
        self.dirty = true;
    }

    /// The same, outside of a turn of the task that handles the connection.
    pub(super) fn wake_driver(&mut self) {
        self.dirty = true;
        if let Some(driver) = &self.driver {
            driver.wake_by_ref();
        }
    }

    /// Wakes the task when anything happens.
    pub(super) fn wait(&mut self, cx: &Context<'_>) {
        if !self.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.waiting.push(cx.waker().clone());
        }
    }

    /// Handles one packet; false when none waits, and the task will be woken.
    pub(super) fn receive_packet(&mut self, cx: &mut Context<'_>) -> bool {
        let event = match &mut self.underlay {
            Underlay::Own(own) => match own.poll_recv(cx) {
                Poll::Ready(Ok(event)) => event,
                Poll::Ready(Err(error)) => {
                    self.on_socket_error(&error);
                    return false;
                }
                Poll::Pending => return false,
            },
            Underlay::Shared(_) => match self.inbox.take(cx.waker()) {
                None => return false,
                event => event,
            },
        };
        if let Some(event) = event {
            self.proto.handle_event(event);
            self.dirty = true;
        }
        true
    }

    /// Sends what there is, runs the timers that are due, and sees to what has come of it.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        let now = clock::now();
        while !self.drained {
            if self.proto.poll_timeout().is_some_and(|at| at <= now) {
                self.proto.handle_timeout(now);
                self.dirty = true;
            }
            if std::mem::take(&mut self.dirty) {
                let socket = self.underlay.socket();
                self.outgoing.send(now, &mut self.proto, socket);
                self.handle_events();
            } else if !self.outgoing.poll_unblocked(cx) {
                self.timer.set(cx, self.proto.poll_timeout());
                return;
            } else {
                self.dirty = true;
            }
        }
    }

    /// Tells the endpoint and the tasks what has happened.
    fn handle_events(&mut self) {
        while let Some(event) = self.proto.poll_endpoint_events() {
            self.drained |= event.is_drained();
            let answer = match &mut self.underlay {
                Underlay::Own(own) => own.handle_event(event),
                Underlay::Shared(demux) => demux.handle_event(self.handle, event),
            };
            if let Some(answer) = answer {
                self.proto.handle_event(answer);
                self.dirty = true;
            }
        }
        let mut happened = self.drained;
        while let Some(event) = self.proto.poll() {
            match event {
                Event::DatagramReceived | Event::DatagramsUnblocked => continue,
                Event::Connected => self.connected = true,
                Event::ConnectionLost { reason } => self.end(reason),
                Event::HandshakeDataReady | Event::Stream(_) => {}
            }
            happened = true;
        }
        if happened {
            self.waiting.drain(..).for_each(Waker::wake);
        }
    }

    /// It has ended; the keeper sees to the rest.
    fn end(&mut self, error: ConnectionError) {
        self.error.get_or_insert(error);
        self.return_to_keeper();
        self.waiting.drain(..).for_each(Waker::wake);
    }

    /// Closes it, if it has not ended.
    pub(super) fn close(&mut self, code: VarInt, reason: &[u8]) {
        if self.error.is_some() {
            return;
        }
        let reason = Bytes::copy_from_slice(reason);
        self.proto.close(clock::now(), code, reason);
        self.end(ConnectionError::LocallyClosed);
        self.wake_driver();
    }

    /// The socket is of no use any more.
    fn on_socket_error(&mut self, error: &std::io::Error) {
        self.drained = true;
        self.end(ConnectionError::TransportError(TransportError {
            code: TransportErrorCode::INTERNAL_ERROR,
            frame: None,
            reason: format!("the socket failed: {error}"),
        }));
    }

    /// Another socket has taken the place of the one before.
    pub(super) fn on_rebind(&mut self) {
        self.outgoing.forget_socket();
        self.proto.local_address_changed();
        self.wake_driver();
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if !self.drained
            && let Underlay::Shared(demux) = &self.underlay
        {
            demux.handle_event(self.handle, EndpointEvent::drained());
        }
    }
}
