//! Applications that use a session, and what they measure of it.
//!
//! # Adding one
//!
//! A workload is a file here that implements [`Workload`], a variant of [`Load`] with its
//! parameters, and a line in `build`. It sends units through a [`Pipe`], which stamps them with
//! their time of writing, copes with full buffers and says when they are delivered; it records what
//! it learns by the [`Meter`](crate::measure::Meter) of its context, under a name of the
//! [`catalogue`](crate::measure::catalogue): a new one is a line there. One that stays outside of
//! this crate is [handed in](Load::Outside).
//!
//! ```text
//! start ─▶ Pipe::open ─▶ Pipe::write(unit) ┄┄ session, links, session ┄┄▶ Pipe::read ─▶ Meter
//!            ▲ wake (time asked for by Context::wake_at) · on_event (readable, writable)
//! ```

mod backlogged;
mod batches;
mod blocks;
mod bursts;
mod constant;
mod context;
mod exchange;
mod objects;
mod offload;
mod pipe;
mod size;
mod tcp;
mod video;
mod web;

use std::fmt;
use std::sync::Arc;

use marline_proto::{Event, OpenError};

use crate::engine::End;
use crate::scenario::{Load, Outside, WorkloadPlan};

pub use context::Context;
pub use pipe::{Delivery, Pipe};

/// An application on both ends of a session.
pub trait Workload: fmt::Debug {
    /// Its time has come: open flows, write, ask to be woken.
    ///
    /// # Errors
    /// A flow that the session does not open: a mistake of the experiment.
    fn start(&mut self, cx: &mut Context<'_>) -> Result<(), OpenError>;

    /// The time that it asked for by [`Context::wake_at`] has come.
    fn wake(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }

    /// A session reports something about one of its flows.
    fn on_event(&mut self, cx: &mut Context<'_>, end: End, event: &Event);

    /// Its time is over: it writes nothing more. What is on its way may still arrive.
    fn stop(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }

    /// The run is over: account for what did not arrive.
    fn finish(&mut self, cx: &mut Context<'_>);

    /// Flows whose counters make up its redundancy, with the end that sends.
    fn flows(&self) -> Vec<(marline_proto::wire::FlowId, End)>;
}

type Maker = Box<dyn Fn(&WorkloadPlan) -> Box<dyn Workload> + Send + Sync>;

impl Outside {
    /// `name` stands for the application in descriptions and digests; `make` is called once a run.
    pub fn new(
        name: &str,
        make: impl Fn(&WorkloadPlan) -> Box<dyn Workload> + Send + Sync + 'static,
    ) -> Self {
        let maker: Maker = Box::new(make);
        Self {
            name: name.into(),
            maker: Arc::new(maker),
        }
    }

    fn make(&self, plan: &WorkloadPlan) -> Result<Box<dyn Workload>, String> {
        let maker = self.maker.downcast_ref::<Maker>();
        let maker = maker.ok_or_else(|| "it has no application".to_owned())?;
        Ok(maker(plan))
    }
}

/// The workload of a plan, or why it cannot be.
pub(crate) fn build(plan: &WorkloadPlan) -> Result<Box<dyn Workload>, String> {
    Ok(match &plan.load {
        Load::Constant { rate, size } => Box::new(constant::Constant::new(plan, *rate, *size)),
        Load::Backlogged { size, bytes } => {
            Box::new(backlogged::Backlogged::new(plan, *size, *bytes))
        }
        Load::Blocks {
            size,
            every,
            deadline,
            phase,
        } => Box::new(blocks::Blocks::new(
            plan,
            *size,
            (*every, *deadline),
            *phase,
        )),
        Load::Objects {
            size,
            every,
            random,
        } => Box::new(objects::Objects::new(plan, *size, *every, *random)),
        Load::Video {
            frames,
            period,
            playout,
        } => Box::new(video::Video::new(plan, frames, *period, *playout)?),
        Load::Batches {
            size,
            rate,
            before,
            pause,
            reopen,
        } => Box::new(batches::Batches::new(
            plan,
            batches::Rhythm {
                size: *size,
                rate: *rate,
                before: *before,
                pause: *pause,
                reopen: *reopen,
            },
        )),
        Load::Bursts {
            request,
            reply,
            burst,
            every,
            pause,
        } => Box::new(bursts::Bursts::new(
            plan,
            (*request, *reply),
            *burst,
            (*every, *pause),
        )),
        Load::Offload { steps } => Box::new(offload::Offload::new(plan, steps)?),
        Load::Web {
            page,
            pause,
            reopen,
        } => Box::new(web::Web::new(plan, page, (*pause, *reopen))?),
        Load::Tcp {
            congestion,
            bytes,
            beyond,
        } => Box::new(tcp::Tcp::new(plan, congestion, *bytes, *beyond)?),
        Load::Outside(outside) => outside.make(plan)?,
    })
}
