//! What a session carries for long, and batches after it: each on the flow that carried, or on one
//! of its own. How long they take shows what a new flow knows of the paths.

use std::collections::VecDeque;

use marline_base::{Duration, Instant, Rate};
use marline_proto::wire::FlowId;
use marline_proto::{Event, OpenError};

use super::{Context, Delivery, Pipe, Workload};
use crate::engine::End;
use crate::measure::Measure;
use crate::scenario::WorkloadPlan;

/// Flows that are over and may still be read.
const MOST_BEFORE: usize = 8;
/// Bytes of a message, if messages are sent at a rate: seven packets of a transport stream.
const MESSAGE: u64 = 7 * 188;
/// Bytes that are written at once of what has no rate.
const PIECE: u64 = 16 << 10;

/// How batches come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    /// Bytes of a batch.
    pub(super) size: u64,
    /// What is carried before the first one, and for how long.
    pub(super) rate: Option<Rate>,
    pub(super) before: Duration,
    /// From the end of what was carried, or of a batch, to the next batch.
    pub(super) pause: Duration,
    /// Each has a flow of its own.
    pub(super) reopen: bool,
}

/// A batch that is under way.
#[derive(Clone, Copy, Debug)]
struct Batch {
    began: Instant,
    /// Bytes that have not been written.
    unwritten: u64,
    /// Units written that are neither delivered nor lost, and whether any was lost.
    open: u64,
    lost: bool,
}

#[derive(Debug)]
pub(super) struct Batches {
    plan: WorkloadPlan,
    rhythm: Rhythm,
    /// The flow that carries now, after those before it.
    pipes: VecDeque<Pipe>,
    /// When it stops to carry, and how much it has written.
    until: Instant,
    written: u64,
    batch: Option<Batch>,
    /// When the next one begins, or the next message of this one is due.
    next: Instant,
    over: bool,
    deliveries: Vec<Delivery>,
}

impl Batches {
    pub(super) fn new(plan: &WorkloadPlan, rhythm: Rhythm) -> Self {
        Self {
            plan: plan.clone(),
            rhythm,
            pipes: VecDeque::new(),
            until: Instant::ZERO,
            written: 0,
            batch: None,
            next: Instant::ZERO,
            over: false,
            deliveries: Vec::new(),
        }
    }

    fn open(&mut self, cx: &mut Context<'_>) -> Result<(), OpenError> {
        let pipe = Pipe::open(cx, self.plan.from, &self.plan.flow)?.patient();
        if let Some(before) = self.pipes.back_mut() {
            before.end(cx);
        }
        if self.pipes.len() > MOST_BEFORE {
            self.pipes.pop_front();
        }
        self.pipes.push_back(pipe);
        Ok(())
    }

    /// Bytes that are written at once: whole batches where units have a meaning, else messages.
    fn unit(&self) -> u64 {
        match (self.plan.flow.kind.has_units(), self.rhythm.rate) {
            (true, _) => self.rhythm.size,
            (false, Some(_)) => MESSAGE,
            (false, None) => PIECE,
        }
    }

    /// Writes what comes before the first batch, as far as it is due.
    fn carry(&mut self, cx: &mut Context<'_>) {
        let unit = self.unit();
        let Some(pipe) = self.pipes.back_mut() else {
            return;
        };
        match self.rhythm.rate {
            None => {
                pipe.on_writable(cx);
                while pipe.waiting() == 0 && !pipe.is_crowded() {
                    pipe.write(cx, unit, 0);
                }
            }
            Some(rate) => {
                let start = self.until - self.rhythm.before;
                let due = |written| start + rate.time_for(written);
                while due(self.written) <= cx.now() {
                    pipe.write(cx, unit, 0);
                    self.written += unit;
                }
                cx.wake_at(due(self.written));
            }
        }
    }

    fn begin(&mut self, cx: &mut Context<'_>) {
        if self.rhythm.reopen && self.open(cx).is_err() {
            // The peer allows no more flows at once.
            self.over = true;
            return;
        }
        self.batch = Some(Batch {
            began: cx.now(),
            unwritten: self.rhythm.size,
            open: 0,
            lost: false,
        });
        self.go_on(cx);
    }

    /// Writes as much of the batch as is due.
    fn go_on(&mut self, cx: &mut Context<'_>) {
        let unit = self.unit();
        let (Some(batch), Some(pipe)) = (&mut self.batch, self.pipes.back_mut()) else {
            return;
        };
        while batch.unwritten > 0 && self.next <= cx.now() {
            let bytes = unit.min(batch.unwritten);
            batch.unwritten -= bytes;
            match pipe.write(cx, bytes, 1) {
                Some(_) => batch.open += 1,
                None => batch.lost = true,
            }
            if let Some(rate) = self.rhythm.rate.filter(|_| batch.unwritten > 0) {
                self.next += rate.time_for(bytes);
            }
        }
        if batch.unwritten > 0 {
            cx.wake_at(self.next);
        }
        self.conclude(cx);
    }

    /// The batch is there, if it is.
    fn conclude(&mut self, cx: &mut Context<'_>) {
        let is_whole = |batch: &mut Batch| batch.open == 0 && batch.unwritten == 0;
        let Some(batch) = self.batch.take_if(is_whole) else {
            return;
        };
        // What was lost shows in the share of units that never came.
        let unsure = batch.lost && self.plan.flow.lifetime.is_none();
        if !unsure {
            cx.meter.delay(Measure::BatchDelay, batch.began, cx.now());
        }
        self.next = cx.now() + self.rhythm.pause;
        cx.wake_at(self.next);
    }
}

impl Workload for Batches {
    fn start(&mut self, cx: &mut Context<'_>) -> Result<(), OpenError> {
        self.until = cx.now() + self.rhythm.before;
        self.next = self.until + self.rhythm.pause;
        self.open(cx)?;
        cx.wake_at(self.until);
        self.carry(cx);
        Ok(())
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        if self.over {
            return;
        }
        if cx.now() < self.until {
            cx.wake_at(self.until);
            return self.carry(cx);
        }
        if self.batch.is_some() {
            self.go_on(cx);
        } else if self.next <= cx.now() {
            self.begin(cx);
        } else {
            cx.wake_at(self.next);
        }
    }

    fn on_event(&mut self, cx: &mut Context<'_>, _: End, event: &Event) {
        let (Event::FlowReadable(flow) | Event::FlowWritable(flow)) = event else {
            return;
        };
        let Some(pipe) = self.pipes.iter_mut().find(|pipe| pipe.flow() == *flow) else {
            return;
        };
        if matches!(event, Event::FlowWritable(_)) {
            pipe.on_writable(cx);
            if cx.now() < self.until && !self.over {
                self.carry(cx);
            }
            return;
        }
        pipe.read(cx, &mut self.deliveries);
        let deliveries = self.deliveries.drain(..);
        let own = deliveries.filter(|delivery| delivery.tag > 0);
        if let Some(batch) = &mut self.batch {
            for delivery in own {
                batch.open = batch.open.saturating_sub(1);
                batch.lost |= delivery.lost;
            }
            self.conclude(cx);
        }
    }

    fn stop(&mut self, _: &mut Context<'_>) {
        self.over = true;
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        for pipe in &mut self.pipes {
            pipe.settle(cx, None, &mut self.deliveries);
        }
    }

    fn flows(&self) -> Vec<(FlowId, End)> {
        self.pipes.iter().map(Pipe::sends).collect()
    }
}
