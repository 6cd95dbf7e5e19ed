//! A connection as the task sees it that handles it.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use quinn_proto::{
    ConnectionError, ConnectionHandle, EndpointEvent, Event, TransportError, TransportErrorCode,
    VarInt,
};

use super::alarm::Alarm;
use super::clock;
use super::home::Home;
use super::inbox::Inbox;
use super::outgoing::Outgoing;

/// One connection, and whoever waits for it.
pub(super) struct State {
    pub(super) proto: quinn_proto::Connection,
    pub(super) home: Home,
    /// Its number at its endpoint.
    handle: ConnectionHandle,
    /// What a server's socket brought for it.
    inbox: Arc<Inbox>,
    outgoing: Outgoing,
    alarm: Alarm,
    /// Something has happened since the connection was asked last what there is to send.
    stirred: bool,
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
        home: Home,
        inbox: Arc<Inbox>,
    ) -> Self {
        Self {
            proto,
            home,
            handle,
            inbox,
            outgoing: Outgoing::default(),
            alarm: Alarm::default(),
            stirred: true,
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
        self.drive(cx);
        let mut left = most;
        while left > 0 && self.take_in(cx) {
            left -= 1;
        }
        if left == 0 {
            cx.waker().wake_by_ref();
        }
        self.proceed(cx);
        match self.drained {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// The task handles it from now on for a carrier; when the connection has ended it is the
    /// keeper's. False then.
    pub(super) fn carry(&mut self, cx: &Context<'_>) -> bool {
        if self.error.is_some() {
            return false;
        }
        self.carried = true;
        self.drive(cx);
        true
    }

    fn drive(&mut self, cx: &Context<'_>) {
        if !wakes(self.driver.as_ref(), cx) {
            self.driver = Some(cx.waker().clone());
            self.alarm.forget_task();
        }
    }

    /// Leaves the connection to the keeper again.
    fn let_go(&mut self) {
        self.carried = false;
        if let Some(keeper) = &self.keeper {
            keeper.wake_by_ref();
        }
    }

    /// Something was done to the connection that its next turn has to send.
    pub(super) const fn note(&mut self) {
        self.stirred = true;
    }

    /// The same, outside of a turn of the task that handles the connection.
    pub(super) fn stir(&mut self) {
        self.stirred = true;
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
    pub(super) fn take_in(&mut self, cx: &mut Context<'_>) -> bool {
        let event = match &mut self.home {
            Home::Own(own) => match own.poll_recv(cx) {
                Poll::Ready(Ok(event)) => event,
                Poll::Ready(Err(error)) => {
                    self.lose(&error);
                    return false;
                }
                Poll::Pending => return false,
            },
            Home::Hub(_) => match self.inbox.take(cx.waker()) {
                None => return false,
                event => event,
            },
        };
        if let Some(event) = event {
            self.proto.handle_event(event);
            self.stirred = true;
        }
        true
    }

    /// Sends what there is, runs the timers that are due, and sees to what has come of it.
    pub(super) fn proceed(&mut self, cx: &mut Context<'_>) {
        let now = clock::now();
        while !self.drained {
            if self.proto.poll_timeout().is_some_and(|at| at <= now) {
                self.proto.handle_timeout(now);
                self.stirred = true;
            }
            if std::mem::take(&mut self.stirred) {
                let socket = self.home.socket();
                self.outgoing.send(now, &mut self.proto, socket);
                self.see_events();
            } else if !self.outgoing.poll_unblocked(cx) {
                self.alarm.set(cx, self.proto.poll_timeout());
                return;
            } else {
                self.stirred = true;
            }
        }
    }

    /// Tells the endpoint and the tasks what has happened.
    fn see_events(&mut self) {
        while let Some(event) = self.proto.poll_endpoint_events() {
            self.drained |= event.is_drained();
            let answer = match &mut self.home {
                Home::Own(own) => own.handle_event(event),
                Home::Hub(hub) => hub.handle_event(self.handle, event),
            };
            if let Some(answer) = answer {
                self.proto.handle_event(answer);
                self.stirred = true;
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
        self.let_go();
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
        self.stir();
    }

    /// The socket is of no use any more.
    fn lose(&mut self, error: &std::io::Error) {
        self.drained = true;
        self.end(ConnectionError::TransportError(TransportError {
            code: TransportErrorCode::INTERNAL_ERROR,
            frame: None,
            reason: format!("the socket failed: {error}"),
        }));
    }

    /// Another socket has taken the place of the one before.
    pub(super) fn moved(&mut self) {
        self.outgoing.forget_socket();
        self.proto.local_address_changed();
        self.stir();
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if !self.drained
            && let Home::Hub(hub) = &self.home
        {
            hub.handle_event(self.handle, EndpointEvent::drained());
        }
    }
}
