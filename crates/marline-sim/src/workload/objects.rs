//! Objects at fixed or random intervals: files, pictures, messages of a queue.

use marline_base::{Duration, Instant};
use marline_proto::wire::FlowId;
use marline_proto::{Event, OpenError};

use super::{Context, Delivery, Pipe, Workload};
use crate::engine::End;
use crate::measure::Measure;
use crate::scenario::{SizeLaw, WorkloadPlan};

#[derive(Debug)]
pub(super) struct Objects {
    plan: WorkloadPlan,
    size: SizeLaw,
    every: Duration,
    /// Exponential intervals.
    random: bool,
    pipe: Option<Pipe>,
    next: Instant,
    over: bool,
    deliveries: Vec<Delivery>,
}

impl Objects {
    pub(super) fn new(plan: &WorkloadPlan, size: SizeLaw, every: Duration, random: bool) -> Self {
        Self {
            plan: plan.clone(),
            size,
            every,
            random,
            pipe: None,
            next: Instant::ZERO,
            over: false,
            deliveries: Vec::new(),
        }
    }
}

impl Workload for Objects {
    fn start(&mut self, cx: &mut Context<'_>) -> Result<(), OpenError> {
        let pipe = Pipe::open(cx, self.plan.from, &self.plan.flow)?;
        self.pipe = Some(pipe.patient());
        self.next = cx.now();
        self.wake(cx);
        Ok(())
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        let Some(pipe) = &mut self.pipe else { return };
        while !self.over && self.next <= cx.now() {
            let size = self.size.draw(cx.rng);
            pipe.write(cx, size, 0);
            self.next += match self.random {
                true => self.every.mul_f64(cx.rng.exponential()),
                false => self.every,
            };
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
                for delivery in self.deliveries.drain(..).filter(|d| !d.lost) {
                    cx.meter
                        .delay(Measure::ObjectDelay, delivery.written, cx.now());
                }
            }
            _ => {}
        }
    }

    fn stop(&mut self, _: &mut Context<'_>) {
        self.over = true;
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(pipe) = &mut self.pipe {
            pipe.settle(cx, None, &mut self.deliveries);
        }
    }

    fn flows(&self) -> Vec<(FlowId, End)> {
        self.pipe.iter().map(Pipe::sends).collect()
    }
}
