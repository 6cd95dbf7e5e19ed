//! A closed loop of recorded requests: the next one leaves some time after the reply.

use std::sync::Arc;

use marline_base::Duration;
use marline_proto::wire::FlowId;
use marline_proto::{Event, OpenError};

use super::exchange::{Exchange, Heard, tag_of, time_of};
use super::{Context, Workload};
use crate::engine::End;
use crate::measure::Measure;
use crate::scenario::WorkloadPlan;

#[derive(Debug)]
pub(super) struct Offload {
    plan: WorkloadPlan,
    /// Request, reply (bytes), and the pause before the request.
    steps: Arc<[(u64, u64, Duration)]>,
    next: usize,
    exchange: Option<Exchange>,
    over: bool,
}

impl Offload {
    /// # Errors
    /// Without a step.
    pub(super) fn new(
        plan: &WorkloadPlan,
        steps: &Arc<[(u64, u64, Duration)]>,
    ) -> Result<Self, String> {
        if steps.is_empty() {
            return Err("an offload needs a request".to_owned());
        }
        Ok(Self {
            plan: plan.clone(),
            steps: Arc::clone(steps),
            next: 0,
            exchange: None,
            over: false,
        })
    }

    fn think(&self, cx: &mut Context<'_>) {
        if !self.over {
            cx.wake_at(cx.now() + self.steps[self.next].2);
        }
    }
}

impl Workload for Offload {
    fn start(&mut self, cx: &mut Context<'_>) -> Result<(), OpenError> {
        self.exchange = Some(Exchange::open(cx, self.plan.from, &self.plan.flow)?);
        self.think(cx);
        Ok(())
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        if self.over {
            return;
        }
        let (size, reply, _) = self.steps[self.next];
        self.next = (self.next + 1) % self.steps.len();
        if exchange.ask(cx, size, reply).is_none() {
            self.think(cx);
        }
    }

    fn on_event(&mut self, cx: &mut Context<'_>, end: End, event: &Event) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        let mut heard = Heard::default();
        exchange.on_event(cx, end, event, &mut heard);
        for request in &heard.requests {
            exchange.answer(cx, request.tag, tag_of(request.written));
        }
        for reply in &heard.replies {
            cx.meter
                .delay(Measure::ReplyDelay, time_of(reply.tag), cx.now());
            self.think(cx);
        }
    }

    fn stop(&mut self, _: &mut Context<'_>) {
        self.over = true;
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(exchange) = &mut self.exchange {
            exchange.finish(cx);
        }
    }

    fn flows(&self) -> Vec<(FlowId, End)> {
        self.exchange.iter().flat_map(Exchange::sends).collect()
    }
}
