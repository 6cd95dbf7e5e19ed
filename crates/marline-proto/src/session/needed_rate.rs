//! Applications say what rate they need, and learn whether the paths carry it.

use alloc::collections::binary_heap::PeekMut;
use alloc::collections::{BTreeMap, BinaryHeap};
use core::cmp::Reverse;

use marline_base::{Instant, Rate};

use super::Session;
use super::watch::{Look, Watch};
use crate::event::Event;
use crate::path::Path;
use crate::wire::FlowId;

/// Flows whose applications said what rate they need, or write at it.
#[derive(Debug, Default)]
pub(super) struct Watches {
    flows: BTreeMap<FlowId, Watch>,
    /// When these are looked at.
    looks: BinaryHeap<Reverse<(Instant, FlowId)>>,
}

impl Watches {
    pub(super) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    pub(super) fn has(&self, id: FlowId) -> bool {
        self.flows.contains_key(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&FlowId, &Watch)> {
        self.flows.iter()
    }

    /// When the next look at a flow is due.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.looks.peek().map(|Reverse((at, _))| *at)
    }

    fn remove(&mut self, id: FlowId) {
        let next = self.flows.remove(&id).and_then(|watch| watch.next);
        if next.is_some() {
            self.looks.retain(|Reverse((_, looked))| *looked != id);
        }
    }
}

impl Session {
    /// Tells the session the rate that a flow's application needs, such as an encoder's bit rate:
    /// schedulers that add redundancy spend only what is left over, and
    /// [`Event::BelowNeededRate`] and [`Event::MeetsNeededRate`] report whether the paths carry it.
    /// It may change at any time; then it counts as met until the contrary is seen. Does nothing if
    /// there is no such flow.
    ///
    /// `None` has it measured: schedulers do, and of a flow of messages with a lifetime and without
    /// [a bounded queue](crate::FlowOptions::queue), whose writer is not held back, the events tell
    /// whether the paths carry what is written, once that was seen for two seconds. Of other flows
    /// nothing is announced then.
    pub fn set_needed_rate(&mut self, id: FlowId, rate: Option<Rate>) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        flow.needed_rate = rate;
        self.timers.wake();
        self.plan_for(id);
        self.rewatch(id);
    }

    /// What is needed, or how that is known, is something else from now on.
    pub(super) fn rewatch(&mut self, id: FlowId) {
        self.unwatch(id);
        let Some(flow) = self.flows.get(&id) else {
            return;
        };
        let given = flow.needed_rate.filter(|rate| *rate > Rate::ZERO);
        if given.is_some() || flow.is_live() {
            let watch = Watch::new(given, flow.never_left());
            self.watches.flows.insert(id, watch);
            self.set_live();
        }
    }

    pub(super) fn unwatch(&mut self, id: FlowId) {
        self.watches.remove(id);
        if self.watches.is_empty() {
            self.paths.iter_mut().for_each(Path::ask_no_more);
        }
        self.set_live();
    }

    /// The flow was written: something that has waited `since` an earlier time.
    pub(super) fn watch_rate(&mut self, now: Instant, id: FlowId, since: Instant) {
        if let Some(watch) = self.watches.flows.get_mut(&id)
            && watch.next.is_none()
            && let Some(flow) = self.flows.get(&id)
        {
            let at = watch.begin(now, since, flow.counters.written_bytes);
            self.watches.looks.push(Reverse((at, id)));
            self.tell_demand(now);
        }
    }

    pub(super) fn look_at_rates(&mut self, now: Instant) {
        if self.watches.next_look().is_none_or(|at| at > now) {
            return;
        }
        let rates: Rate = self.view_usable().map(|view| view.rate).sum();
        let Watches { flows, looks } = &mut self.watches;
        while let Some(mut first) = looks.peek_mut()
            && first.0.0 <= now
        {
            let Reverse((_, id)) = *first;
            let (Some(watch), Some(flow)) = (flows.get_mut(&id), self.flows.get(&id)) else {
                PeekMut::pop(first);
                continue;
            };
            let look = Look {
                waiting: flow.waiting(),
                never_left: flow.never_left(),
                written: flow.counters.written_bytes,
                carried: flow.carried(),
                rates,
            };
            let change = watch.look(now, &look);
            match watch.next {
                Some(at) => *first = Reverse((at, id)),
                None => {
                    PeekMut::pop(first);
                }
            }
            match change {
                Some(Some(capacity)) => {
                    let flow = id;
                    self.events
                        .push_back(Event::BelowNeededRate { flow, capacity });
                }
                Some(None) => self.events.push_back(Event::MeetsNeededRate { flow: id }),
                None => {}
            }
        }
        self.tell_demand(now);
    }
}
