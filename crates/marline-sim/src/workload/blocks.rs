//! Blocks of one size at fixed intervals, each worth nothing after its deadline: what a remote
//! renderer, a teleoperator or HOP's application sends.

use marline_base::{Duration, Instant};
use marline_proto::wire::{FlowId, FlowKind};
use marline_proto::{Event, OpenError};

use super::{Context, Delivery, Pipe, Workload};
use crate::engine::End;
use crate::measure::Measure;
use crate::scenario::WorkloadPlan;

#[derive(Debug)]
pub(super) struct Blocks {
    plan: WorkloadPlan,
    size: u64,
    every: Duration,
    deadline: Duration,
    phase: Option<Duration>,
    pipe: Option<Pipe>,
    next: Instant,
    over: bool,
    deliveries: Vec<Delivery>,
}

impl Blocks {
    pub(super) fn new(
        plan: &WorkloadPlan,
        size: u64,
        (every, deadline): (Duration, Duration),
        phase: Option<Duration>,
    ) -> Self {
        let mut plan = plan.clone();
        if plan.flow.kind == FlowKind::Blocks {
            plan.flow.lifetime.get_or_insert(deadline);
        }
        Self {
            plan,
            size,
            every,
            deadline,
            phase,
            pipe: None,
            next: Instant::ZERO,
            over: false,
            deliveries: Vec::new(),
        }
    }

    fn record(&mut self, cx: &mut Context<'_>) {
        for Delivery { written, lost, .. } in self.deliveries.drain(..) {
            let late = lost || cx.now().since(written) > self.deadline;
            cx.meter.trial(Measure::BlockLateness, written, late);
            if !lost {
                cx.meter.delay(Measure::BlockDelay, written, cx.now());
            }
        }
    }
}

impl Workload for Blocks {
    fn start(&mut self, cx: &mut Context<'_>) -> Result<(), OpenError> {
        self.pipe = Some(Pipe::open(cx, self.plan.from, &self.plan.flow)?);
        let phase = match self.phase {
            Some(phase) => phase,
            None => self.every.mul_f64(cx.rng.uniform()),
        };
        self.next = cx.now() + phase;
        cx.wake_at(self.next);
        Ok(())
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        let Some(pipe) = &mut self.pipe else { return };
        while !self.over && self.next <= cx.now() {
            if pipe.write(cx, self.size, 0).is_none() {
                cx.meter.trial(Measure::BlockLateness, cx.now(), true);
            }
            self.next += self.every;
        }
        if !self.over {
            cx.wake_at(self.next);
        }
    }

    fn on_event(&mut self, cx: &mut Context<'_>, _: End, event: &Event) {
        let Some(pipe) = &mut self.pipe else { return };
        match event {
            Event::FlowWritable(_) => pipe.on_writable(cx),
            Event::FlowReadable(_) => {
                pipe.read(cx, &mut self.deliveries);
                self.record(cx);
            }
            _ => {}
        }
    }

    fn stop(&mut self, _: &mut Context<'_>) {
        self.over = true;
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(pipe) = &mut self.pipe {
            pipe.settle(cx, Some(self.deadline), &mut self.deliveries);
            self.record(cx);
        }
    }

    fn flows(&self) -> Vec<(FlowId, End)> {
        self.pipe.iter().map(Pipe::sends).collect()
    }
}
