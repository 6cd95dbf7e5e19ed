//! A web page from its object graph, loaded again and again.
//!
//! Each connection of the page is a flow with the priority of its most urgent object. The browser
//! asks for an object once the one that names it has arrived; the server thinks, then writes the
//! whole reply. Handshakes and the browser's own work are not modelled.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use marline_base::{Duration, Instant};
use marline_proto::wire::FlowId;
use marline_proto::{Event, OpenError};

use super::exchange::{Exchange, Heard};
use super::{Context, Workload};
use crate::engine::End;
use crate::measure::Measure;
use crate::scenario::{FlowPlan, WebObject, WorkloadPlan};

/// Bytes of a request: a line and some headers, compressed.
const REQUEST: u64 = 400;

#[derive(Debug)]
pub(super) struct Web {
    plan: WorkloadPlan,
    page: Arc<[WebObject]>,
    pause: Duration,
    /// Each load opens its connections again.
    reopen: bool,
    /// By the number of the connection.
    connections: BTreeMap<u32, Exchange>,
    /// When the server has thought about an object.
    thinking: BTreeSet<(Instant, usize)>,
    begun: Instant,
    /// Objects that have not arrived, and those of them that block rendering.
    missing: usize,
    blocking: usize,
    /// When the next load begins, while none is under way.
    next: Option<Instant>,
    over: bool,
}

impl Web {
    /// # Errors
    /// Without an object, or if one comes after itself or a later one.
    pub(super) fn new(
        plan: &WorkloadPlan,
        page: &Arc<[WebObject]>,
        (pause, reopen): (Duration, bool),
    ) -> Result<Self, String> {
        if page.is_empty() {
            return Err("a page needs an object".to_owned());
        }
        for (i, object) in page.iter().enumerate() {
            if object.after.is_some_and(|after| after >= i) {
                return Err(format!("object {i} must come after an earlier one"));
            }
        }
        Ok(Self {
            plan: plan.clone(),
            page: Arc::clone(page),
            pause,
            reopen,
            connections: BTreeMap::new(),
            thinking: BTreeSet::new(),
            begun: Instant::ZERO,
            missing: 0,
            blocking: 0,
            next: None,
            over: false,
        })
    }

    /// Opens the page's connections.
    fn connect(&mut self, cx: &mut Context<'_>) -> Result<(), OpenError> {
        for object in self.page.iter() {
            let number = object.connection;
            if !self.connections.contains_key(&number) {
                let own = self.page.iter().filter(|o| o.connection == number);
                let plan = FlowPlan {
                    priority: own.map(|o| o.priority).min().unwrap_or_default(),
                    ..self.plan.flow.clone()
                };
                let connection = Exchange::open(cx, self.plan.from, &plan)?;
                self.connections.insert(number, connection);
            }
        }
        Ok(())
    }

    fn load(&mut self, cx: &mut Context<'_>) {
        self.begun = cx.now();
        self.missing = self.page.len();
        self.blocking = self.page.iter().filter(|o| o.blocking).count();
        self.ask_after(cx, None);
    }

    /// The browser asks for what an object names, or for the first.
    fn ask_after(&mut self, cx: &mut Context<'_>, arrived: Option<usize>) {
        for (i, object) in self.page.iter().enumerate() {
            if object.after == arrived
                && let Some(connection) = self.connections.get_mut(&object.connection)
            {
                connection.ask(cx, REQUEST, i as u64);
            }
        }
    }

    fn on_object(&mut self, cx: &mut Context<'_>, index: usize) {
        self.missing -= 1;
        if self.page[index].blocking {
            self.blocking -= 1;
            if self.blocking == 0 {
                cx.meter
                    .delay(Measure::PageRenderTime, self.begun, cx.now());
            }
        }
        if self.missing == 0 {
            cx.meter.delay(Measure::PageLoadTime, self.begun, cx.now());
            self.next = Some(cx.now() + self.pause);
        } else {
            self.ask_after(cx, Some(index));
        }
    }

    fn ask_to_wake(&self, cx: &mut Context<'_>) {
        let thought = self.thinking.first().map(|(at, _)| *at);
        let next = self.next.filter(|_| !self.over);
        if let Some(at) = thought.into_iter().chain(next).min() {
            cx.wake_at(at);
        }
    }
}

impl Workload for Web {
    fn start(&mut self, cx: &mut Context<'_>) -> Result<(), OpenError> {
        self.connect(cx)?;
        self.load(cx);
        Ok(())
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        while let Some(&(at, index)) = self.thinking.first() {
            if at > cx.now() {
                break;
            }
            self.thinking.pop_first();
            let WebObject {
                size, connection, ..
            } = self.page[index];
            if let Some(connection) = self.connections.get_mut(&connection) {
                connection.answer(cx, size, index as u64);
            }
        }
        if !self.over && self.next.take_if(|at| *at <= cx.now()).is_some() {
            if self.reopen {
                self.connections.values_mut().for_each(|c| c.end(cx));
                self.connections.clear();
                // Without new ones, the peer allows no more flows at once.
                self.over = self.connect(cx).is_err();
            }
            if !self.over {
                self.load(cx);
            }
        }
        self.ask_to_wake(cx);
    }

    fn on_event(&mut self, cx: &mut Context<'_>, end: End, event: &Event) {
        let (Event::FlowReadable(flow) | Event::FlowWritable(flow)) = event else {
            return;
        };
        let mut all = self.connections.values_mut();
        let Some(connection) = all.find(|c| c.flow() == *flow) else {
            return;
        };
        let mut heard = Heard::default();
        connection.on_event(cx, end, event, &mut heard);
        for request in &heard.requests {
            let index = request.tag as usize;
            self.thinking
                .insert((cx.now() + self.page[index].think, index));
        }
        for reply in &heard.replies {
            self.on_object(cx, reply.tag as usize);
        }
        self.ask_to_wake(cx);
    }

    fn stop(&mut self, _: &mut Context<'_>) {
        self.over = true;
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        for connection in self.connections.values_mut() {
            connection.finish(cx);
        }
    }

    fn flows(&self) -> Vec<(FlowId, End)> {
        let all = self.connections.values();
        all.flat_map(Exchange::sends).collect()
    }
}
