//! As much as the session takes: a download, a backup.

use marline_base::Instant;
use marline_proto::wire::FlowId;
use marline_proto::{Event, OpenError};

use super::{Context, Delivery, Pipe, Workload};
use crate::engine::End;
use crate::measure::Measure;
use crate::scenario::WorkloadPlan;

#[derive(Debug)]
pub(super) struct Backlogged {
    plan: WorkloadPlan,
    size: u32,
    /// Bytes still to write.
    left: Option<u64>,
    pipe: Option<Pipe>,
    over: bool,
    /// When something was delivered last.
    heard: Instant,
    deliveries: Vec<Delivery>,
}

impl Backlogged {
    pub(super) fn new(plan: &WorkloadPlan, size: u32, bytes: Option<u64>) -> Self {
        Self {
            plan: plan.clone(),
            size,
            left: bytes,
            pipe: None,
            over: false,
            heard: Instant::ZERO,
            deliveries: Vec::new(),
        }
    }

    /// Writes until the session takes no more; one unit waits, so that the session reports room.
    fn fill(&mut self, cx: &mut Context<'_>) {
        let Some(pipe) = &mut self.pipe else { return };
        pipe.on_writable(cx);
        while !self.over && pipe.waiting() == 0 && !pipe.is_crowded() {
            let size = self.left.unwrap_or(u64::MAX).min(u64::from(self.size));
            if size == 0 {
                self.over = true;
                pipe.end(cx);
                return;
            }
            pipe.write(cx, size, 0);
            if let Some(left) = &mut self.left {
                *left -= size;
            }
        }
    }
}

impl Workload for Backlogged {
    fn start(&mut self, cx: &mut Context<'_>) -> Result<(), OpenError> {
        self.heard = cx.now();
        self.pipe = Some(Pipe::open(cx, self.plan.from, &self.plan.flow)?.patient());
        self.fill(cx);
        Ok(())
    }

    fn on_event(&mut self, cx: &mut Context<'_>, _: End, event: &Event) {
        match event {
            Event::FlowWritable(_) => self.fill(cx),
            Event::FlowReadable(_) => {
                let Some(pipe) = &mut self.pipe else { return };
                let before = cx.meter.all_bytes();
                pipe.read(cx, &mut self.deliveries);
                if cx.meter.all_bytes() > before {
                    cx.meter.silence(Measure::Silence, self.heard, cx.now());
                    self.heard = cx.now();
                }
                let measure = match pipe.is_ordered() {
                    true => Measure::InOrderDelay,
                    false => Measure::PacketDelay,
                };
                for delivery in self.deliveries.drain(..).filter(|d| !d.lost) {
                    cx.meter.delay(measure, delivery.written, cx.now());
                }
                self.fill(cx);
            }
            _ => {}
        }
    }

    fn stop(&mut self, _: &mut Context<'_>) {
        self.over = true;
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if !self.over {
            cx.meter.silence(Measure::Silence, self.heard, cx.now());
        }
        if let Some(pipe) = &mut self.pipe {
            pipe.settle(cx, None, &mut self.deliveries);
        }
    }

    fn flows(&self) -> Vec<(FlowId, End)> {
        self.pipe.iter().map(Pipe::sends).collect()
    }
}
