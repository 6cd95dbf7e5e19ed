//! The session behind its lock, and the tasks that wait for it.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use marline_proto::flow::Unsettled;
use marline_proto::path::PathState;
use marline_proto::wire::{FlowId, PathId, close_code};
use marline_proto::{CloseReason, Event, Session as Machine};

use super::clock::Clock;
use super::report::{GivenUp, RateReport, Settled};
use super::shaping::Shaper;
use crate::carrier::Carrier;
use crate::carrier::CarrierKind;

/// What a session asks of the driver.
#[derive(Debug)]
pub(super) enum Command {
    /// The session has the path already; here is its carrier.
    Attach(PathId, Box<dyn Carrier>),
    /// The session has removed the path.
    Detach(PathId),
}

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
    report: Option<Waker>,
    /// The latest of its kind that no task has taken.
    reported: Option<RateReport>,
    settle: Option<Waker>,
}

/// Fates of blocks and objects that are kept, for each flow, until a task asks.
const SETTLED: usize = 4_096;

/// Ends of paths that are remembered for tasks that have not asked yet.
const ENDS: usize = 64;

/// A path that the session has.
#[derive(Debug)]
pub(super) struct PathNote {
    /// The name that `marline status` shows.
    pub(super) name: String,
    pub(super) state: PathState,
    pub(super) carrier: CarrierKind,
}

/// A path that the session had.
#[derive(Debug)]
struct PathEnd {
    name: String,
    reason: String,
}

/// What the lock guards.
#[derive(Debug)]
pub(super) struct State {
    pub(super) session: Machine,
    /// The session's paths.
    pub(super) paths: BTreeMap<PathId, PathNote>,
    /// Why paths ended, the latest [`ENDS`] of them.
    ends: BTreeMap<PathId, PathEnd>,
    /// Sessions that its peer has here, this one included: they share a turn on the thread.
    pub(super) siblings: u32,
    /// What its peer may send and receive, at a server.
    pub(super) shaper: Option<Arc<Shaper>>,
    /// Flows that the peer opens are reset.
    pub(super) refuses: bool,
    /// Flows that the peer opened and that are not accepted yet; the session bounds their number.
    pub(super) incoming: VecDeque<FlowId>,
    pub(super) closed: Option<Closed>,
    flows: BTreeMap<FlowId, Waiting>,
    /// What became of blocks and objects, the latest [`SETTLED`] of each flow.
    settled: BTreeMap<FlowId, VecDeque<Settled>>,
    accept: Option<Waker>,
    /// Tasks that wait for the end of the session or for room for another flow.
    others: Vec<Waker>,
    driver: Option<Waker>,
}

#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) clock: Clock,
}

impl Shared {
    pub(super) fn new(session: Machine, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                session,
                paths: BTreeMap::new(),
                ends: BTreeMap::new(),
                siblings: 1,
                shaper: None,
                refuses: false,
                incoming: VecDeque::new(),
                closed: None,
                flows: BTreeMap::new(),
                settled: BTreeMap::new(),
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

    /// Is the session over, or about to be?
    pub(super) fn is_over(&self) -> bool {
        let state = self.lock();
        state.closed.is_some() || state.session.is_closing()
    }

    /// Is nothing more to be read of a flow because it was given up, or the session is over?
    pub(super) fn poll_given_up(&self, flow: FlowId, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.closed.is_some() || state.session.is_given_up(flow) {
            return Poll::Ready(());
        }
        state.wait_to_read(flow, cx);
        Poll::Pending
    }

    /// What was written on a flow, is not given up and not known to be at the other end.
    pub(super) fn unsettled(&self, flow: FlowId) -> Vec<Unsettled> {
        self.lock().session.unsettled(flow)
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

    /// Takes the latest report on the rate that a flow needs, or has the task woken when there is
    /// one.
    pub(super) fn rate_report(&mut self, flow: FlowId, cx: &Context<'_>) -> Option<RateReport> {
        let waiting = self.flows.entry(flow).or_default();
        let reported = waiting.reported.take();
        if reported.is_none() {
            waiting.report = Some(cx.waker().clone());
        }
        reported
    }

    /// What was learnt about an earlier rate is out of date.
    pub(super) fn forget_report(&mut self, flow: FlowId) {
        if let Some(waiting) = self.flows.get_mut(&flow) {
            waiting.reported = None;
        }
    }

    fn on_rate_report(&mut self, flow: FlowId, report: RateReport) {
        let waiting = self.flows.entry(flow).or_default();
        waiting.reported = Some(report);
        if let Some(waker) = waiting.report.take() {
            waker.wake();
        }
    }

    pub(super) fn wait_to_settle(&mut self, flow: FlowId, cx: &Context<'_>) {
        self.flows.entry(flow).or_default().settle = Some(cx.waker().clone());
    }

    /// Keeps what becomes of the flow's blocks or objects until it is forgotten.
    pub(super) fn keep_settled(&mut self, flow: FlowId) {
        self.settled.entry(flow).or_default();
    }

    /// No task will ask what becomes of them.
    pub(super) fn ignore_settled(&mut self, flow: FlowId) {
        self.settled.remove(&flow);
    }

    /// The next fate of a flow's blocks or objects.
    pub(super) fn take_settled(&mut self, flow: FlowId) -> Option<Settled> {
        self.settled.get_mut(&flow)?.pop_front()
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
        self.settled.remove(&flow);
    }

    /// Why a path is no more; `None` while the session has it.
    pub(super) fn path_end(&self, path: PathId) -> Option<String> {
        if let Some(closed) = &self.closed {
            return Some(closed.to_string());
        }
        if self.paths.contains_key(&path) {
            return None;
        }
        let known = self.ends.get(&path).map(|end| end.reason.clone());
        Some(known.unwrap_or_else(|| String::from("the session does not have it")))
    }

    /// Forgets a path that the session no longer has.
    pub(super) fn path_ended(&mut self, path: PathId, reason: &str) {
        if let Some(note) = self.paths.remove(&path) {
            tracing::info!(path = note.name, number = path.0, reason, "a path ended");
            let end = PathEnd {
                name: note.name,
                reason: reason.to_owned(),
            };
            self.ends.insert(path, end);
            while self.ends.len() > ENDS {
                self.ends.pop_first();
            }
            self.wake_others();
        }
    }

    /// The name of a path that the session has, or had lately.
    fn path_name(&self, path: PathId) -> Option<&str> {
        let here = self.paths.get(&path).map(|note| &note.name);
        let name = here.or_else(|| self.ends.get(&path).map(|end| &end.name));
        name.map(String::as_str)
    }

    /// Where the messages were that a flow gave up at the end of their lifetime; `None` once the
    /// session has forgotten it.
    pub(super) fn given_up(&self, flow: FlowId) -> Option<GivenUp> {
        let known = self.session.given_up(flow)?;
        let mut given_up = GivenUp {
            waited: known.waited,
            on: BTreeMap::new(),
        };
        for (path, count) in known.on {
            let name = self.path_name(path).unwrap_or("a path that is gone");
            *given_up.on.entry(name.to_owned()).or_default() += count;
        }
        Some(given_up)
    }

    /// Ends the session because of what was learned outside it.
    pub(super) fn end(&mut self, reason: CloseReason) {
        self.session.close(close_code::NONE, &reason.to_string());
        self.on_event(Event::Closed(reason));
        self.wake_driver();
    }

    /// Resets the flows that the peer opened and that are not accepted, and those that it will
    /// open.
    pub(super) fn refuse_flows(&mut self) {
        self.refuses = true;
        while let Some(flow) = self.incoming.pop_front() {
            self.refuse(flow);
        }
        self.wake_driver();
    }

    fn refuse(&mut self, flow: FlowId) {
        self.session.reset(flow, 0);
        self.session.stop(flow, 0);
    }

    fn on_settled(&mut self, flow: FlowId, settled: Settled) {
        let Some(kept) = self.settled.get_mut(&flow) else {
            return;
        };
        kept.push_back(settled);
        if kept.len() > SETTLED {
            kept.pop_front();
        }
        if let Some(waiting) = self.flows.get_mut(&flow)
            && let Some(waker) = waiting.settle.take()
        {
            waker.wake();
        }
    }

    fn wake_others(&mut self) {
        for waker in self.others.drain(..) {
            waker.wake();
        }
    }

    /// Wakes the tasks that an event concerns.
    pub(super) fn on_event(&mut self, event: Event) {
        match event {
            Event::FlowOpened(flow) if self.refuses => {
                self.refuse(flow);
                self.wake_driver();
            }
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
            Event::UnitSettled {
                flow,
                number,
                fate,
                after,
            } => self.on_settled(
                flow,
                Settled {
                    number,
                    fate,
                    after,
                },
            ),
            Event::FlowWritable(flow) => {
                if let Some(waiting) = self.flows.get_mut(&flow)
                    && let Some(waker) = waiting.write.take()
                {
                    waker.wake();
                }
            }
            Event::FlowStopped(flow, _) => {
                if let Some(waiting) = self.flows.get_mut(&flow) {
                    let wakers = [waiting.write.take(), waiting.settle.take()];
                    wakers.into_iter().flatten().for_each(Waker::wake);
                }
            }
            Event::FlowClosed(flow) => {
                for waker in self.flows.remove(&flow).into_iter().flat_map(all) {
                    waker.wake();
                }
                self.wake_others();
            }
            Event::BelowNeededRate { flow, capacity } => {
                self.on_rate_report(flow, RateReport::Below { capacity });
            }
            Event::MeetsNeededRate { flow } => self.on_rate_report(flow, RateReport::Met),
            Event::PathChanged {
                path,
                state,
                reason,
            } => {
                if let Some(note) = self.paths.get_mut(&path)
                    && note.state != state
                {
                    note.state = state;
                    let (name, number) = (&note.name, path.0);
                    tracing::info!(path = name, number, reason, "a path is {}", state.name());
                    self.wake_others();
                }
            }
            Event::PathAbandoned(path) => self.path_ended(path, "given up by the peer"),
            // The caller that ended it from outside knows better than the session why.
            Event::Closed(_) if self.closed.is_some() => {}
            Event::Closed(reason) => {
                self.closed = Some(Closed(reason));
                for (_, waiting) in std::mem::take(&mut self.flows) {
                    all(waiting).into_iter().for_each(Waker::wake);
                }
                if let Some(waker) = self.accept.take() {
                    waker.wake();
                }
                self.wake_others();
            }
        }
    }
}

fn all(waiting: Waiting) -> Vec<Waker> {
    let Waiting {
        read,
        write,
        report,
        settle,
        ..
    } = waiting;
    [read, write, report, settle]
        .into_iter()
        .flatten()
        .collect()
}
