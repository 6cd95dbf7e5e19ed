//! Bursts of requests, each answered: what a camera sends to a recogniser that is offloaded to a
//! server when it sees something. Requests of a burst do not wait for replies.

use marline_base::{Duration, Instant};
use marline_proto::wire::FlowId;
use marline_proto::{Event, OpenError};

use super::exchange::{Exchange, Heard, tag_of, time_of};
use super::{Context, Workload};
use crate::engine::End;
use crate::measure::Measure;
use crate::scenario::{SizeLaw, WorkloadPlan};

#[derive(Debug)]
pub(super) struct Bursts {
    plan: WorkloadPlan,
    request: SizeLaw,
    reply: SizeLaw,
    /// Mean requests in a burst.
    burst: f64,
    every: Duration,
    pause: Duration,
    exchange: Option<Exchange>,
    next: Instant,
    /// Requests left in this burst.
    left: u64,
    over: bool,
}

impl Bursts {
    pub(super) fn new(
        plan: &WorkloadPlan,
        (request, reply): (SizeLaw, SizeLaw),
        burst: f64,
        (every, pause): (Duration, Duration),
    ) -> Self {
        Self {
            plan: plan.clone(),
            request,
            reply,
            burst,
            every,
            pause,
            exchange: None,
            next: Instant::ZERO,
            left: 0,
            over: false,
        }
    }

    /// The silence before a burst, and how many requests it has: geometric, at least one.
    fn draw_burst(&mut self, cx: &mut Context<'_>) {
        self.next += self.pause.mul_f64(cx.rng.exponential());
        self.left = 1;
        let more = 1.0 - 1.0 / self.burst.max(1.0);
        while cx.rng.chance(more) {
            self.left += 1;
        }
    }
}

impl Workload for Bursts {
    fn start(&mut self, cx: &mut Context<'_>) -> Result<(), OpenError> {
        self.exchange = Some(Exchange::open(cx, self.plan.from, &self.plan.flow)?);
        self.next = cx.now();
        self.draw_burst(cx);
        cx.wake_at(self.next);
        Ok(())
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        while !self.over && self.next <= cx.now() {
            let Some(exchange) = &mut self.exchange else {
                return;
            };
            let (size, reply) = (self.request.draw(cx.rng), self.reply.draw(cx.rng));
            // The other end answers with as much as the request asked for.
            exchange.ask(cx, size, reply);
            self.left -= 1;
            if self.left > 0 {
                self.next += self.every;
            } else {
                self.draw_burst(cx);
            }
        }
        if !self.over {
            cx.wake_at(self.next);
        }
    }

    fn on_event(&mut self, cx: &mut Context<'_>, end: End, event: &Event) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        let mut heard = Heard::default();
        exchange.on_event(cx, end, event, &mut heard);
        for request in heard.requests.iter().filter(|r| !r.lost) {
            exchange.answer(cx, request.tag, tag_of(request.written));
        }
        for reply in heard.replies.iter().filter(|r| !r.lost) {
            cx.meter
                .delay(Measure::ReplyDelay, time_of(reply.tag), cx.now());
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
