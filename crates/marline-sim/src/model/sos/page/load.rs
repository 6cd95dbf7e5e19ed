use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use super::super::path::Path;
use super::Loaded;
use super::variant::Planner;
use crate::traces::{Page, PageObject};

/// What happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A path can take its next packet.
    Free(usize),
    /// A packet of an object is at the browser.
    Arrives(usize),
    /// The server has a request for an object.
    Asked(usize),
}

/// How an object stands.
#[derive(Clone, Debug, Default)]
struct State {
    packets: u32,
    unsent: u32,
    arrived: u32,
    /// Packets of it that are under way.
    flying: u32,
    /// Its place among the requests that the server has.
    asked: Option<u32>,
    /// Packets of it that must have come before each of the objects that it names is asked for.
    names: Vec<(u32, usize)>,
}

/// A page that is being loaded.
pub(super) struct Load<'a> {
    page: &'a Page,
    document: usize,
    planner: &'a Planner<'a>,
    paths: Vec<Path<'a>>,
    /// The packets' objects that wait for each path.
    queues: Vec<VecDeque<usize>>,
    busy: Vec<bool>,
    /// The object of which each path took a packet last, and when.
    took: Vec<Option<(usize, f64)>>,
    states: Vec<State>,
    request: f64,
    /// Times as ordered bits: all are at least 0.
    events: BinaryHeap<Reverse<(u64, Event)>>,
    asked: u32,
}

impl<'a> Load<'a> {
    pub(super) fn new(
        page: &'a Page,
        packet: u32,
        request: f64,
        planner: &'a Planner<'a>,
        paths: Vec<Path<'a>>,
    ) -> Self {
        let packets = |size: u64| size.div_ceil(u64::from(packet.max(1))).max(1);
        let mut states: Vec<State> = page
            .objects
            .iter()
            .map(|object| {
                let packets = packets(object.size).min(u64::from(u32::MAX)) as u32;
                State {
                    packets,
                    unsent: packets,
                    ..State::default()
                }
            })
            .collect();
        let needed = planner.variant.alone.then(|| needed(page));
        let mut named: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let document = document(page);
        for object in page.objects.iter().skip(1) {
            let by = initiator(object, document);
            if needed.as_ref().is_none_or(|needed| needed[object.id]) {
                named.entry(by).or_default().push(object.id);
            }
        }
        for (by, objects) in named {
            let (packets, count) = (states[by].packets, objects.len() as u32);
            let names = objects.into_iter().enumerate();
            states[by].names = names
                .map(|(i, id)| {
                    let after = match by == document {
                        true => (packets * (i as u32 + 1)).div_ceil(count + 1).max(1),
                        false => packets,
                    };
                    (after, id)
                })
                .collect();
        }
        Self {
            page,
            document,
            planner,
            queues: vec![VecDeque::new(); paths.len()],
            busy: vec![false; paths.len()],
            took: vec![None; paths.len()],
            paths,
            states,
            request,
            events: BinaryHeap::new(),
            asked: 0,
        }
    }

    /// Loads it.
    pub(super) fn go(mut self) -> Loaded {
        self.at(self.request, Event::Asked(0));
        let mut loaded = Loaded::default();
        while let Some(Reverse((bits, event))) = self.events.pop() {
            let now = f64::from_bits(bits);
            match event {
                Event::Free(path) => self.busy[path] = false,
                Event::Arrives(object) => self.arrives(now, object, &mut loaded),
                Event::Asked(object) => {
                    self.states[object].asked = Some(self.asked);
                    self.asked += 1;
                    // Requests of one moment are planned for together.
                    let more = self.events.peek().is_some_and(|Reverse((next, event))| {
                        *next == bits && matches!(event, Event::Asked(_))
                    });
                    if more {
                        continue;
                    }
                    self.plan();
                }
            }
            self.serve(now);
            // A path that runs dry gets a part of what waits for others, if it is of use.
            let waits = self.queues.iter().any(|queue| !queue.is_empty());
            if waits && self.busy.contains(&false) {
                self.plan();
                self.serve(now);
            }
        }
        loaded
    }

    fn at(&mut self, time: f64, event: Event) {
        self.events.push(Reverse((time.to_bits(), event)));
    }

    fn arrives(&mut self, now: f64, object: usize, loaded: &mut Loaded) {
        let state = &mut self.states[object];
        state.flying -= 1;
        if state.arrived == state.packets {
            // A coded packet that was not needed.
            return;
        }
        state.arrived += 1;
        let arrived = state.arrived;
        if arrived == state.packets {
            loaded.whole = now;
            if self.page.objects[object].render_blocking {
                loaded.dom = now;
            }
        }
        let named = std::mem::take(&mut self.states[object].names);
        let (due, later): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|(after, _)| *after <= arrived);
        self.states[object].names = later;
        for (_, id) in due {
            self.at(now + self.request, Event::Asked(id));
        }
    }

    /// Lets every idle path take what waits for it.
    fn serve(&mut self, now: f64) {
        for i in 0..self.paths.len() {
            if self.busy[i] {
                continue;
            }
            let next = match self.planner.variant.is_rateless() {
                true => self.pull(now, i),
                false => self.queues[i].pop_front(),
            };
            let Some(object) = next else {
                continue;
            };
            self.busy[i] = true;
            self.took[i] = Some((object, now));
            let state = &mut self.states[object];
            state.flying += 1;
            state.unsent = state.unsent.saturating_sub(1);
            let free = self.paths[i].serve(now);
            let arrival = free + self.paths[i].way.delay;
            self.at(free, Event::Free(i));
            self.at(arrival, Event::Arrives(object));
        }
    }

    /// The object of a path's next packet where nothing is divided beforehand: the first of which
    /// something is unsent, unless a more urgent one waits for a packet that this path may
    /// overtake. Then a coded packet of that one goes, at most one more than it lacks, so that the
    /// earliest of these completes it.
    fn pull(&self, now: f64, path: usize) -> Option<usize> {
        let first = self.order().first().copied();
        let rank = first.map_or(u8::MAX, |id| self.rank(id));
        let lacks = |id: &usize| {
            let state = &self.states[*id];
            let missing = state.packets - state.arrived;
            let all_sent = state.asked.is_some() && state.unsent == 0;
            let late = self
                .took
                .iter()
                .zip(&self.busy)
                .enumerate()
                .any(|(i, (took, busy))| {
                    took.is_some_and(|(object, since)| {
                        *busy && object == *id && self.planner.overtakes(path, now, i, since)
                    })
                });
            all_sent && missing > 0 && state.flying <= missing && late && self.rank(*id) < rank
        };
        let tails = (0..self.states.len()).filter(lacks);
        let tail = tails.min_by_key(|id| (self.rank(*id), self.states[*id].asked));
        tail.or(first)
    }

    /// What goes first: 0, or else 1.
    fn rank(&self, id: usize) -> u8 {
        let first = self.planner.variant.priority && self.page.objects[id].render_blocking;
        u8::from(!first)
    }

    /// Divides all that waits again.
    fn plan(&mut self) {
        if self.planner.variant.is_rateless() {
            return;
        }
        self.queues.iter_mut().for_each(VecDeque::clear);
        let mut ahead: Vec<u32> = self.busy.iter().map(|busy| u32::from(*busy)).collect();
        for object in self.order() {
            let unsent = self.states[object].unsent;
            let (times, packets) = match object == self.document {
                true => (unsent, 1),
                false => (1, unsent),
            };
            for _ in 0..times {
                for path in self.planner.place(&mut ahead, packets) {
                    self.queues[path].push_back(object);
                }
            }
        }
    }

    /// What waits, in the order in which it goes.
    fn order(&self) -> Vec<usize> {
        let waits = |id: &usize| self.states[*id].asked.is_some() && self.states[*id].unsent > 0;
        let mut waiting: Vec<usize> = (0..self.states.len()).filter(waits).collect();
        let begun = |id: usize| self.states[id].unsent < self.states[id].packets;
        // Who has begun is in the way of all that wait on its connection.
        let mut ranks: BTreeMap<u32, u8> = BTreeMap::new();
        for id in &waiting {
            let least = ranks.entry(self.page.objects[*id].connection).or_insert(1);
            *least = self.rank(*id).min(*least);
        }
        waiting.sort_by_key(|id| {
            let connection = self.page.objects[*id].connection;
            let rank = match begun(*id) {
                true => ranks.get(&connection).copied().unwrap_or(1),
                false => self.rank(*id),
            };
            (rank, !begun(*id), self.states[*id].asked)
        });
        waiting
    }
}

/// The document. Recordings begin with what redirects to it, so it is the first object that the
/// page cannot be shown without.
fn document(page: &Page) -> usize {
    let first = page.objects.iter().position(|o| o.render_blocking);
    first.unwrap_or(0)
}

/// Who names an object that is not the first; what nothing in the recording explains, the document
/// does.
fn initiator(object: &PageObject, document: usize) -> usize {
    let unexplained = if object.id > document { document } else { 0 };
    object.initiator.unwrap_or(unexplained)
}

/// What the page cannot be shown without, and what names that.
fn needed(page: &Page) -> Vec<bool> {
    let mut needed: Vec<bool> = page.objects.iter().map(|o| o.render_blocking).collect();
    let document = document(page);
    // Who names an object stands before it.
    for object in page.objects.iter().rev() {
        if needed[object.id] {
            needed[initiator(object, document)] = true;
        }
    }
    needed
}
