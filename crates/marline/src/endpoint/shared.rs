//! The session behind its lock, and who waits for what.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Waker};

use marline_proto::wire::FlowId;
use marline_proto::{CloseReason, Event, Session};

use super::clock::Clock;

/// The session is over, for the reason that it carries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session is over: {0}")]
pub struct Closed(pub CloseReason);

impl From<Closed> for io::Error {
    fn from(closed: Closed) -> Self {
        Self::new(io::ErrorKind::ConnectionAborted, closed)
    }
}

#[derive(Debug, Default)]
struct Waiting {
    read: Option<Waker>,
    write: Option<Waker>,
}

/// What the lock guards.
#[derive(Debug)]
pub(super) struct State {
    pub(super) session: Session,
    /// Flows that the peer opened and nobody accepted yet; the session bounds their number.
    pub(super) incoming: VecDeque<FlowId>,
    pub(super) closed: Option<Closed>,
    flows: BTreeMap<FlowId, Waiting>,
    accept: Option<Waker>,
    /// Those who wait for the end of the session or for room for another flow.
    others: Vec<Waker>,
    driver: Option<Waker>,
}

#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) clock: Clock,
}

impl Shared {
    pub(super) fn new(session: Session, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                session,
                incoming: VecDeque::new(),
                closed: None,
                flows: BTreeMap::new(),
                accept: None,
                others: Vec::new(),
                driver: None,
            }),
            clock,
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock was held has been reported; the state is still consistent enough
        // to close flows with.
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl State {
    /// The session has something to send, or its timer changed.
    pub(super) fn wake_driver(&mut self) {
        if let Some(waker) = self.driver.take() {
            waker.wake();
        }
    }

    pub(super) fn wait_as_driver(&mut self, cx: &Context<'_>) {
        self.driver = Some(cx.waker().clone());
    }

    pub(super) fn wait_to_read(&mut self, flow: FlowId, cx: &Context<'_>) {
        self.flows.entry(flow).or_default().read = Some(cx.waker().clone());
    }

    pub(super) fn wait_to_write(&mut self, flow: FlowId, cx: &Context<'_>) {
        self.flows.entry(flow).or_default().write = Some(cx.waker().clone());
    }

    pub(super) fn wait_to_accept(&mut self, cx: &Context<'_>) {
        self.accept = Some(cx.waker().clone());
    }

    pub(super) fn wait(&mut self, cx: &Context<'_>) {
        if !self.others.iter().any(|w| w.will_wake(cx.waker())) {
            self.others.push(cx.waker().clone());
        }
    }

    pub(super) fn forget(&mut self, flow: FlowId) {
        self.flows.remove(&flow);
    }

    fn wake_others(&mut self) {
        for waker in self.others.drain(..) {
            waker.wake();
        }
    }

    /// Wakes whom an event concerns.
    pub(super) fn on_event(&mut self, event: Event) {
        match event {
            Event::FlowOpened(flow) => {
                self.incoming.push_back(flow);
                if let Some(waker) = self.accept.take() {
                    waker.wake();
                }
            }
            Event::FlowReadable(flow) => {
                if let Some(waiting) = self.flows.get_mut(&flow)
                    && let Some(waker) = waiting.read.take()
                {
                    waker.wake();
                }
            }
            Event::FlowWritable(flow) | Event::FlowStopped(flow, _) => {
                if let Some(waiting) = self.flows.get_mut(&flow)
                    && let Some(waker) = waiting.write.take()
                {
                    waker.wake();
                }
            }
            Event::FlowClosed(flow) => {
                for waker in self.flows.remove(&flow).into_iter().flat_map(both) {
                    waker.wake();
                }
                self.wake_others();
            }
            Event::PathChanged {
                path,
                state,
                reason,
            } => {
                tracing::info!(path = path.0, state = state.name(), reason, "path");
            }
            Event::PathAbandoned(path) => {
                tracing::info!(path = path.0, "the peer gave the path up");
            }
            Event::Closed(reason) => {
                self.closed = Some(Closed(reason));
                for (_, waiting) in std::mem::take(&mut self.flows) {
                    both(waiting).into_iter().for_each(Waker::wake);
                }
                if let Some(waker) = self.accept.take() {
                    waker.wake();
                }
                self.wake_others();
            }
        }
    }
}

fn both(waiting: Waiting) -> Vec<Waker> {
    waiting.read.into_iter().chain(waiting.write).collect()
}
