//! A handle on a running session.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use marline_proto::path::{PathParams, PathState};
use marline_proto::stats::{PathStats, SessionStats};
use marline_proto::wire::{FlowId, FlowKind, PathId};
use marline_proto::{CloseReason, FlowInfo, FlowOptions, OpenError, PathError};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::blocks::Blocks;
use super::objects::Objects;
use super::packets::Packets;
use super::shaping::Shaper;
use super::shared::{Closed, Command, PathNote, Shared};
use super::stream::Stream;
use crate::carrier::{Carrier, CarrierKind};

/// Opens and accepts flows of one session, and adds and removes its paths. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Session {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedSender<Command>,
    runtime: Handle,
}

/// A flow that the peer opened.
#[derive(Debug)]
pub enum Accepted {
    /// A stream of bytes.
    Stream(Stream),
    /// Messages.
    Packets(Packets),
    /// Blocks.
    Blocks(Blocks),
    /// Objects.
    Objects(Objects),
}

/// What a path costs (bytes): its connection's state and its part of what an idle session has,
/// 68 KiB with two paths (`cargo bench -p marline-cli --bench sessions -- 1000 1 mbit=0`).
const CARRIER_COST: u64 = 34 << 10;

impl Session {
    /// Of a session that runs on the runtime of now.
    pub(super) fn new(shared: Arc<Shared>, commands: mpsc::UnboundedSender<Command>) -> Self {
        Self {
            shared,
            commands,
            runtime: Handle::current(),
        }
    }

    /// The runtime that its packets are handled on. Tasks that use its flows cost least there:
    /// where a [server has several workers](crate::ServerOptions::workers), others have to be woken
    /// on another thread.
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    fn open(&self, options: &FlowOptions) -> Result<FlowId, OpenError> {
        let mut state = self.shared.lock();
        let flow = state.session.open_flow(options)?;
        if options.kind.has_units() {
            state.keep_settled(flow);
        }
        state.wake_driver();
        Ok(flow)
    }

    /// Opens a stream.
    ///
    /// # Errors
    /// As [`marline_proto::Session::open_flow`].
    pub fn open_stream(&self, mut options: FlowOptions) -> Result<Stream, OpenError> {
        options.kind = FlowKind::Stream;
        let flow = self.open(&options)?;
        Ok(Stream::new(Arc::clone(&self.shared), flow))
    }

    /// Opens a flow of messages.
    ///
    /// # Errors
    /// As [`marline_proto::Session::open_flow`].
    pub fn open_packets(&self, mut options: FlowOptions) -> Result<Packets, OpenError> {
        options.kind = FlowKind::Packets;
        let flow = self.open(&options)?;
        Ok(Packets::new(Arc::clone(&self.shared), flow))
    }

    /// Opens a flow of blocks.
    ///
    /// # Errors
    /// As [`marline_proto::Session::open_flow`].
    pub fn open_blocks(&self, mut options: FlowOptions) -> Result<Blocks, OpenError> {
        options.kind = FlowKind::Blocks;
        let flow = self.open(&options)?;
        Ok(Blocks::new(Arc::clone(&self.shared), flow))
    }

    /// Opens a flow of objects.
    ///
    /// # Errors
    /// As [`marline_proto::Session::open_flow`].
    pub fn open_objects(&self, mut options: FlowOptions) -> Result<Objects, OpenError> {
        options.kind = FlowKind::Objects;
        let flow = self.open(&options)?;
        Ok(Objects::new(Arc::clone(&self.shared), flow))
    }

    /// The next flow that the peer opens, with what it was opened for.
    ///
    /// # Errors
    /// The session is over.
    pub async fn accept(&self) -> Result<(FlowInfo, Accepted), Closed> {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            while let Some(flow) = state.incoming.pop_front() {
                let Some(info) = state.session.flow_info(flow) else {
                    continue;
                };
                if info.kind.has_units() {
                    state.keep_settled(flow);
                }
                let shared = Arc::clone(&self.shared);
                let accepted = match info.kind {
                    FlowKind::Stream => Accepted::Stream(Stream::new(shared, flow)),
                    FlowKind::Packets => Accepted::Packets(Packets::new(shared, flow)),
                    FlowKind::Blocks => Accepted::Blocks(Blocks::new(shared, flow)),
                    FlowKind::Objects => Accepted::Objects(Objects::new(shared, flow)),
                };
                return Poll::Ready(Ok((info, accepted)));
            }
            if let Some(closed) = &state.closed {
                return Poll::Ready(Err(closed.clone()));
            }
            state.wait_to_accept(cx);
            Poll::Pending
        })
        .await
    }

    /// Bytes that the session's flows and carriers hold.
    pub fn held(&self) -> u64 {
        let state = self.shared.lock();
        state.session.held() + state.paths.len() as u64 * CARRIER_COST
    }

    /// Sets by how much what the session's flows hold may grow (bytes).
    pub(super) fn limit_growth(&self, bytes: u64) {
        self.shared.lock().session.limit_growth(bytes);
    }

    /// Sets how many sessions its peer has here: they share a turn on the thread.
    pub(super) fn set_siblings(&self, sessions: u32) {
        self.shared.lock().siblings = sessions;
    }

    /// Keeps the peer to what `shaper` says, which its other sessions share.
    pub(super) fn set_shaper(&self, shaper: Arc<Shaper>) {
        self.shared.lock().shaper = Some(shaper);
    }

    /// The flows that hold something: since when nothing of that was read or acknowledged, and its
    /// bytes.
    pub(super) fn stalled_flows(&self) -> Vec<(tokio::time::Instant, FlowId, u64)> {
        let (clock, state) = (self.shared.clock, self.shared.lock());
        let flows = state.session.stalled_flows();
        flows
            .map(|(since, flow, held)| (clock.real(since), flow, held))
            .collect()
    }

    /// Gives flows up.
    pub(super) fn give_up(&self, flows: impl IntoIterator<Item = FlowId>) {
        let mut state = self.shared.lock();
        for flow in flows {
            state.session.give_up(flow);
        }
        state.wake_driver();
    }

    /// Gives the longest-stalled flow up. Public for tests of `marline-apps`.
    #[doc(hidden)]
    pub fn give_up_stalled(&self) {
        let mut state = self.shared.lock();
        state.session.give_up_stalled();
        state.wake_driver();
    }

    /// An id that no path of the session has had.
    pub fn next_path_id(&self) -> PathId {
        self.shared.lock().session.next_path_id()
    }

    /// Adds a path with its carrier, under the name that people see in logs.
    ///
    /// # Errors
    /// As [`marline_proto::Session::add_path`]; the carrier is closed then.
    pub fn add_path(
        &self,
        path: PathId,
        name: &str,
        params: &PathParams,
        mut carrier: Box<dyn Carrier>,
    ) -> Result<(), PathError> {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        if let Err(error) = state.session.add_path(now, path, params) {
            carrier.close(0, &error.to_string());
            return Err(error);
        }
        state.session.name_path(now, path, name);
        // The session's own first word about the path is still in its queue of events.
        let note = PathNote {
            name: name.to_owned(),
            state: PathState::Validating,
            carrier: carrier.kind(),
        };
        state.paths.insert(path, note);
        // The driver is gone only when the session is over, and then the carrier may go too.
        let _ = self.commands.send(Command::Attach(path, carrier));
        state.wake_driver();
        Ok(())
    }

    /// Removes a path and closes its carrier.
    ///
    /// # Errors
    /// [`PathError::Unknown`].
    pub fn remove_path(&self, path: PathId) -> Result<(), PathError> {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        state.session.remove_path(now, path)?;
        state.path_ended(path, "removed at this end");
        let _ = self.commands.send(Command::Detach(path));
        state.wake_driver();
        Ok(())
    }

    /// Doubts a path for a reason that was learnt outside the session.
    ///
    /// # Errors
    /// [`PathError::Unknown`].
    pub(super) fn suspect_path(&self, path: PathId, reason: &'static str) -> Result<(), PathError> {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        state.session.suspect_path(now, path, reason)?;
        state.wake_driver();
        Ok(())
    }

    /// Asks whether a path still works, since something outside the session gave reason to.
    ///
    /// # Errors
    /// [`PathError::Unknown`].
    pub(super) fn probe_path(&self, path: PathId) -> Result<(), PathError> {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        state.session.probe_path(now, path)?;
        state.wake_driver();
        Ok(())
    }

    /// Keeps a path in reserve, or takes it back into use.
    ///
    /// # Errors
    /// [`PathError::Unknown`].
    pub fn set_standby(&self, path: PathId, standby: bool) -> Result<(), PathError> {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        state.session.set_standby(now, path, standby)?;
        state.wake_driver();
        Ok(())
    }

    /// Gives a path another cost rank at this end.
    ///
    /// # Errors
    /// [`PathError::Unknown`].
    pub fn set_cost(&self, path: PathId, cost: u32) -> Result<(), PathError> {
        let mut state = self.shared.lock();
        state.session.set_cost(path, cost)?;
        state.wake_driver();
        Ok(())
    }

    /// How the session stands now.
    pub fn stats(&self) -> SessionStats {
        self.shared.lock().session.stats()
    }

    /// How one path stands now; `None` when the session does not have it.
    pub(super) fn path_stats(&self, path: PathId) -> Option<PathStats> {
        self.shared.lock().session.path(path)
    }

    /// The session's time.
    pub(super) fn now(&self) -> marline_base::Instant {
        self.shared.clock.now()
    }

    /// The names of the session's paths.
    pub fn path_names(&self) -> BTreeMap<PathId, String> {
        let state = self.shared.lock();
        let names = state.paths.iter();
        names.map(|(id, note)| (*id, note.name.clone())).collect()
    }

    /// What carries each of the session's paths.
    pub fn path_carriers(&self) -> BTreeMap<PathId, CarrierKind> {
        let state = self.shared.lock();
        let paths = state.paths.iter();
        paths.map(|(id, note)| (*id, note.carrier)).collect()
    }

    /// What the session thinks of a path; `None` when it does not have it.
    pub fn path_state(&self, path: PathId) -> Option<PathState> {
        self.shared.lock().paths.get(&path).map(|note| note.state)
    }

    /// Has the session a path that carries data, or could at once?
    pub fn has_working_path(&self) -> bool {
        let state = self.shared.lock();
        let mut states = state.paths.values().map(|note| note.state);
        states.any(|state| !matches!(state, PathState::Dead | PathState::Validating))
    }

    /// Waits until the session no longer has the path, and says why.
    pub async fn path_ended(&self, path: PathId) -> String {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            match state.path_end(path) {
                Some(reason) => Poll::Ready(reason),
                None => {
                    state.wait(cx);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Waits until a path that the session has is dead (or, with `false`, is not).
    pub async fn path_dead(&self, path: PathId, dead: bool) {
        let is = |state| (state == PathState::Dead) == dead;
        self.path_becomes(path, is).await;
    }

    /// Waits until the state of a path that the session has is such a one.
    pub(super) async fn path_becomes(&self, path: PathId, is: impl Fn(PathState) -> bool) {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            let known = state.paths.get(&path);
            match known.is_some_and(|note| is(note.state)) {
                true => Poll::Ready(()),
                false => {
                    state.wait(cx);
                    Poll::Pending
                }
            }
        })
        .await;
    }

    /// Takes the flows that the peer opens from now on, or refuses them.
    pub(super) fn take_flows(&self, takes: bool) {
        let mut state = self.shared.lock();
        match takes {
            true => state.refuses = false,
            false => state.refuse_flows(),
        }
    }

    /// Resets the flows that the peer opens from now on, and those that wait to be accepted.
    pub fn refuse_flows(&self) {
        self.shared.lock().refuse_flows();
    }

    /// Ends the session for a reason that was learned outside it.
    pub(super) fn end(&self, reason: CloseReason) {
        self.shared.lock().end(reason);
    }

    /// Ends the session; the peer is sent the code and the reason.
    pub fn close(&self, code: u64, reason: &str) {
        let mut state = self.shared.lock();
        state.session.close(code, reason);
        state.wake_driver();
    }

    /// Waits until no flow is open, or the session is over.
    pub async fn idle(&self) {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            if state.closed.is_some() || state.session.open_flows() == 0 {
                return Poll::Ready(());
            }
            state.wait(cx);
            Poll::Pending
        })
        .await;
    }

    /// Waits for the end of the session and says why it ended.
    pub async fn closed(&self) -> Closed {
        poll_fn(|cx| {
            let mut state = self.shared.lock();
            match &state.closed {
                Some(closed) => Poll::Ready(closed.clone()),
                None => {
                    state.wait(cx);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Why the session is over, if it is.
    pub fn is_closed(&self) -> Option<Closed> {
        self.shared.lock().closed.clone()
    }
}
