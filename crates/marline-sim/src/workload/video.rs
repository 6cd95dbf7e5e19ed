//! Video frames of recorded sizes at their recorded times, with a playout deadline.

use std::sync::Arc;

use marline_base::{Duration, Instant};
use marline_proto::wire::FlowId;
use marline_proto::{Event, OpenError};

use super::{Context, Delivery, Pipe, Workload};
use crate::engine::End;
use crate::measure::Measure;
use crate::scenario::WorkloadPlan;

#[derive(Debug)]
pub(super) struct Video {
    plan: WorkloadPlan,
    /// Time of each frame from the first, and its size (bytes).
    frames: Arc<[(Duration, u32)]>,
    period: Duration,
    playout: Duration,
    pipe: Option<Pipe>,
    /// Start of the present repetition, and the next frame in it.
    began: Instant,
    next: usize,
    over: bool,
    deliveries: Vec<Delivery>,
}

impl Video {
    /// # Errors
    /// Without a frame, or if the frames repeat before the last of them.
    pub(super) fn new(
        plan: &WorkloadPlan,
        frames: &Arc<[(Duration, u32)]>,
        period: Duration,
        playout: Duration,
    ) -> Result<Self, String> {
        let last = frames.last().ok_or("a video needs a frame")?;
        if period.is_zero() || last.0 >= period {
            return Err(format!(
                "frames up to {:?} cannot repeat after {period:?}",
                last.0
            ));
        }
        Ok(Self {
            plan: plan.clone(),
            frames: Arc::clone(frames),
            period,
            playout,
            pipe: None,
            began: Instant::ZERO,
            next: 0,
            over: false,
            deliveries: Vec::new(),
        })
    }

    fn due(&self) -> Instant {
        self.began + self.frames[self.next].0
    }

    fn record(&mut self, cx: &mut Context<'_>) {
        for Delivery { written, lost, .. } in self.deliveries.drain(..) {
            let late = lost || cx.now().since(written) > self.playout;
            cx.meter.trial(Measure::FramesDiscarded, written, late);
            if !lost {
                cx.meter.delay(Measure::FrameDelay, written, cx.now());
            }
        }
    }
}

impl Workload for Video {
    fn start(&mut self, cx: &mut Context<'_>) -> Result<(), OpenError> {
        self.pipe = Some(Pipe::open(cx, self.plan.from, &self.plan.flow)?);
        self.began = cx.now();
        self.wake(cx);
        Ok(())
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        while !self.over && self.due() <= cx.now() {
            let Some(pipe) = &mut self.pipe else { return };
            let size = u64::from(self.frames[self.next].1);
            if pipe.write(cx, size, 0).is_none() {
                cx.meter.trial(Measure::FramesDiscarded, cx.now(), true);
            }
            self.next += 1;
            if self.next == self.frames.len() {
                self.next = 0;
                self.began += self.period;
            }
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
            pipe.settle(cx, Some(self.playout), &mut self.deliveries);
            self.record(cx);
        }
    }

    fn flows(&self) -> Vec<(FlowId, End)> {
        self.pipe.iter().map(Pipe::sends).collect()
    }
}
