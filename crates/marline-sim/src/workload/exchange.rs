//! Requests one way, replies the other, on one flow.

use marline_base::Instant;
use marline_proto::wire::FlowId;
use marline_proto::{Event, OpenError};

use super::{Context, Delivery, Pipe};
use crate::engine::End;
use crate::scenario::FlowPlan;

/// Both directions of a flow on which one end asks and the other answers.
///
/// The flow is reliable whatever its plan says: an exchange whose request is lost would never end.
#[derive(Debug)]
pub(super) struct Exchange {
    ask: Pipe,
    answer: Pipe,
}

/// What an event brought.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Requests that arrived.
    pub(super) requests: Vec<Delivery>,
    /// Replies that arrived.
    pub(super) replies: Vec<Delivery>,
}

impl Exchange {
    pub(super) fn open(
        cx: &mut Context<'_>,
        from: End,
        plan: &FlowPlan,
    ) -> Result<Self, OpenError> {
        let plan = FlowPlan {
            lifetime: None,
            queue: None,
            ..plan.clone()
        };
        let ask = Pipe::open(cx, from, &plan)?.patient();
        let answer = ask.back(&plan).patient();
        Ok(Self { ask, answer })
    }

    pub(super) fn flow(&self) -> FlowId {
        self.ask.flow()
    }

    /// Asks; what arrives at the other end bears the tag.
    pub(super) fn ask(&mut self, cx: &mut Context<'_>, size: u64, tag: u64) -> Option<u64> {
        self.ask.write(cx, size, tag)
    }

    /// Answers a request that has arrived.
    pub(super) fn answer(&mut self, cx: &mut Context<'_>, size: u64, tag: u64) {
        self.answer.write(cx, size, tag);
    }

    pub(super) fn on_event(
        &mut self,
        cx: &mut Context<'_>,
        end: End,
        event: &Event,
        heard: &mut Heard,
    ) {
        let at_asker = end == self.ask.from();
        match event {
            Event::FlowWritable(_) if at_asker => self.ask.on_writable(cx),
            Event::FlowWritable(_) => self.answer.on_writable(cx),
            Event::FlowReadable(_) if at_asker => self.answer.read(cx, &mut heard.replies),
            Event::FlowReadable(_) => self.ask.read(cx, &mut heard.requests),
            _ => {}
        }
    }

    /// Nothing more is asked or answered.
    pub(super) fn end(&mut self, cx: &mut Context<'_>) {
        self.ask.end(cx);
        self.answer.end(cx);
    }

    /// The run is over: counts what did not arrive.
    pub(super) fn finish(&mut self, cx: &mut Context<'_>) {
        let mut lost = Vec::new();
        self.ask.settle(cx, None, &mut lost);
        self.answer.settle(cx, None, &mut lost);
    }

    pub(super) fn sends(&self) -> [(FlowId, End); 2] {
        [self.ask.sends(), self.answer.sends()]
    }
}

/// A time as a tag.
pub(super) const fn tag_of(at: Instant) -> u64 {
    at.as_nanos()
}

/// The time that [`tag_of`] hid in a tag.
pub(super) const fn time_of(tag: u64) -> Instant {
    Instant::from_nanos(tag)
}
