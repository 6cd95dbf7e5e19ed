//! Hashes every record of a session, and keeps some on request.

use std::sync::{Arc, Mutex};

use marline_proto::flow::{Fate, Symbol};
use marline_proto::observe::{Observer, Record};
use marline_proto::path::{EmissionKind, PathState};
use marline_proto::wire::{FlowId, PathId};
use marline_sim::{End, Instant};

/// What tests look at afterwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Logged {
    /// With its packet number and size.
    Sent(PathId, u64, usize),
    Emitted(PathId, FlowId, Symbol, EmissionKind),
    Lost(PathId, u64),
    Acked(PathId, u64, bool),
    Repaired(FlowId, Symbol),
    State(PathId, PathState),
}

#[derive(Debug, Default)]
struct State {
    hash: u64,
    records: u64,
    keep: bool,
    log: Vec<(Instant, End, Logged)>,
}

/// The records of both sessions, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace(Arc<Mutex<State>>);

impl Trace {
    pub(crate) fn observer(&self, end: End) -> Box<dyn Observer> {
        Box::new(Tap(end, self.clone()))
    }

    /// Everything that happened, as one number.
    pub(crate) fn hash(&self) -> (u64, u64) {
        let state = self
            .0
            .lock()
            .expect("no test panics while it holds the trace");
        (state.hash, state.records)
    }

    pub(crate) fn keep(&self) {
        self.0.lock().expect("as above").keep = true;
    }

    pub(crate) fn log(&self) -> Vec<(Instant, End, Logged)> {
        self.0.lock().expect("as above").log.clone()
    }
}

#[derive(Debug)]
struct Tap(End, Trace);

impl Observer for Tap {
    fn on(&mut self, now: Instant, record: &Record) {
        // What says in other words what the rest says already.
        if let Record::Heard { .. }
        | Record::PathNamed { .. }
        | Record::PathMetrics(_)
        | Record::FlowOpened { .. }
        | Record::FlowClosed { .. } = record
        {
            return;
        }
        let Ok(mut state) = self.1.0.lock() else {
            return;
        };
        let mut mix = |value: u64| {
            state.hash = (state.hash.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
        };
        mix(now.as_nanos());
        mix(self.0 as u64);
        let logged = match *record {
            Record::Sent {
                path,
                packet,
                size,
                in_flight,
            } => {
                [1, path.0, packet, size as u64, in_flight]
                    .into_iter()
                    .for_each(&mut mix);
                Some(Logged::Sent(path, packet, size))
            }
            Record::Emitted {
                flow,
                symbol,
                path,
                kind,
            } => {
                let Symbol { unit, offset, len } = symbol;
                [2, flow.0, unit, offset, u64::from(len), path.0, kind as u64]
                    .into_iter()
                    .for_each(&mut mix);
                Some(Logged::Emitted(path, flow, symbol, kind))
            }
            Record::Acked {
                path,
                packet,
                after,
                spurious,
                ..
            } => {
                [
                    3,
                    path.0,
                    packet,
                    after.as_nanos() as u64,
                    u64::from(spurious),
                ]
                .into_iter()
                .for_each(&mut mix);
                Some(Logged::Acked(path, packet, spurious))
            }
            Record::Lost { path, packet, .. } => {
                [4, path.0, packet].into_iter().for_each(&mut mix);
                Some(Logged::Lost(path, packet))
            }
            Record::Received {
                path,
                packet,
                size,
                duplicate,
            } => {
                [5, path.0, packet, size as u64, u64::from(duplicate)]
                    .into_iter()
                    .for_each(&mut mix);
                None
            }
            Record::Progress { flow, frontier, .. } => {
                [7, flow.0, frontier.0, frontier.1]
                    .into_iter()
                    .for_each(&mut mix);
                None
            }
            Record::Repaired { flow, symbol } => {
                [8, flow.0, symbol.unit, symbol.offset]
                    .into_iter()
                    .for_each(&mut mix);
                Some(Logged::Repaired(flow, symbol))
            }
            Record::UnitWhole { flow, unit, late } => {
                [8, flow.0, unit, u64::from(late)]
                    .into_iter()
                    .for_each(&mut mix);
                None
            }
            Record::UnitSettled { flow, unit, fate } => {
                let late = fate == Fate::Late;
                [9, flow.0, unit, u64::from(late)]
                    .into_iter()
                    .for_each(&mut mix);
                None
            }
            Record::PathState {
                path,
                state,
                ref reason,
            } => {
                [6, path.0, state as u64].into_iter().for_each(&mut mix);
                reason.bytes().map(u64::from).for_each(&mut mix);
                Some(Logged::State(path, state))
            }
            Record::Heard { .. }
            | Record::PathNamed { .. }
            | Record::PathMetrics(_)
            | Record::FlowOpened { .. }
            | Record::FlowClosed { .. } => None,
        };
        state.records += 1;
        if state.keep
            && let Some(logged) = logged
        {
            let end = self.0;
            state.log.push((now, end, logged));
        }
    }
}
