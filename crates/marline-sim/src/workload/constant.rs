//! Units of one size at a constant rate: a live stream, telemetry, voice.

use marline_base::{Instant, Rate};
use marline_proto::wire::FlowId;
use marline_proto::{Event, OpenError};

use super::{Context, Delivery, Pipe, Workload};
use crate::engine::End;
use crate::measure::Measure;
use crate::scenario::WorkloadPlan;

#[derive(Debug)]
pub(super) struct Constant {
    plan: WorkloadPlan,
    rate: Rate,
    size: u32,
    pipe: Option<Pipe>,
    began: Instant,
    written: u64,
    over: bool,
    deliveries: Vec<Delivery>,
}

impl Constant {
    pub(super) fn new(plan: &WorkloadPlan, rate: Rate, size: u32) -> Self {
        Self {
            plan: plan.clone(),
            rate,
            size,
            pipe: None,
            began: Instant::ZERO,
            written: 0,
            over: false,
            deliveries: Vec::new(),
        }
    }

    /// When the next unit is due: counted from the beginning, so that rounding does not add up.
    fn due(&self) -> Instant {
        self.began + self.rate.time_for(self.written * u64::from(self.size))
    }
}

impl Workload for Constant {
    fn start(&mut self, cx: &mut Context<'_>) -> Result<(), OpenError> {
        self.began = cx.now();
        self.pipe = Some(Pipe::open(cx, self.plan.from, &self.plan.flow)?);
        self.wake(cx);
        Ok(())
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        while !self.over && self.due() <= cx.now() {
            let Some(pipe) = &mut self.pipe else { return };
            pipe.write(cx, u64::from(self.size), 0);
            self.written += 1;
        }
        if !self.over {
            cx.wake_at(self.due());
        }
    }

    fn on_event(&mut self, cx: &mut Context<'_>, _: End, event: &Event) {
        let Some(pipe) = &mut self.pipe else { return };
        match event {
            Event::FlowWritable(_) => pipe.on_writable(cx),
            Event::FlowReadable(_) => {
                pipe.read(cx, &mut self.deliveries);
                let measure = match pipe.is_ordered() {
                    true => Measure::InOrderDelay,
                    false => Measure::PacketDelay,
                };
                for delivery in self.deliveries.drain(..).filter(|d| !d.lost) {
                    cx.meter.delay(measure, delivery.written, cx.now());
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
