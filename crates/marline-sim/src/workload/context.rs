use marline_base::{Instant, Rng};
use marline_proto::wire::FlowId;
use marline_proto::{FlowOptions, OpenError, Session};

use crate::engine::End;
use crate::measure::Meter;

/// What a workload may see and use while it is called.
#[derive(Debug)]
pub struct Context<'a> {
    now: Instant,
    /// Client, server.
    sessions: &'a mut [Session],
    /// Random numbers of its own.
    pub rng: &'a mut Rng,
    /// Where its measures go.
    pub meter: &'a mut Meter,
    /// Flows that it opened in this call.
    opened: &'a mut Vec<FlowId>,
    touched: [bool; 2],
    wake: Option<Instant>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        now: Instant,
        sessions: &'a mut [Session],
        rng: &'a mut Rng,
        meter: &'a mut Meter,
        opened: &'a mut Vec<FlowId>,
    ) -> Self {
        Self {
            now,
            sessions,
            rng,
            meter,
            opened,
            touched: [false; 2],
            wake: None,
        }
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// The session at one end, to be used.
    pub fn session(&mut self, end: End) -> &mut Session {
        self.touched[end as usize] = true;
        &mut self.sessions[end as usize]
    }

    /// Opens a flow whose events, at both ends, are this workload's.
    ///
    /// # Errors
    /// As [`Session::open_flow`].
    pub fn open_flow(&mut self, end: End, options: &FlowOptions) -> Result<FlowId, OpenError> {
        let flow = self.session(end).open_flow(options)?;
        self.opened.push(flow);
        Ok(flow)
    }

    /// Asks for [`Workload::wake`](super::Workload::wake) at a time. The earliest time asked for
    /// counts until it is granted.
    pub fn wake_at(&mut self, at: Instant) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }

    /// Which ends were used, and when the workload wants to be woken.
    pub(crate) fn outcome(self) -> ([bool; 2], Option<Instant>) {
        (self.touched, self.wake)
    }
}
