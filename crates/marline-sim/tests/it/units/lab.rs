//! Two applications on one flow of blocks or objects, and what either side knows in the end.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

use bytes::Bytes;
use marline_proto::flow::{BlockTerms, Fate, ObjectOptions, Received, SendError};
use marline_proto::sched::Choice;
use marline_proto::wire::{FlowId, FlowKind, PathId};
use marline_proto::{Config, Event, FlowOptions};
use marline_sim::{Duration, Instant};

use crate::kit::{Lab, pattern};

/// A block or object as its writer knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) at: Instant,
    pub(super) len: usize,
    pub(super) deadline: Option<Duration>,
}

/// One that was whole at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) at: Instant,
    pub(super) late: bool,
}

/// The client writes, the server reads.
#[derive(Debug)]
pub(super) struct Units {
    pub(super) lab: Lab,
    pub(super) flow: FlowId,
    pub(super) written: BTreeMap<u64, Written>,
    pub(super) read: BTreeMap<u64, usize>,
    pub(super) whole: BTreeMap<u64, Whole>,
    pub(super) gone: BTreeMap<u64, Fate>,
    pub(super) settled: BTreeMap<u64, (Fate, Duration)>,
    /// The server does not read for now.
    pub(super) paused: bool,
    opened: bool,
    pub(super) finished: bool,
    pub(super) closed: bool,
}

impl Units {
    /// Over these links, alike in both directions.
    pub(super) fn over(
        seed: u64,
        config: &Config,
        kind: FlowKind,
        scheduler: Option<Choice>,
        links: &[&str],
    ) -> Self {
        let mut lab = Lab::new(seed, config);
        for link in links {
            lab.path(link);
        }
        let options = FlowOptions {
            scheduler,
            ..FlowOptions::new(kind)
        };
        let opened = lab.world.client.open_flow(&options);
        let flow = opened.unwrap_or_else(|error| panic!("{error}"));
        Self {
            lab,
            flow,
            written: BTreeMap::new(),
            read: BTreeMap::new(),
            whole: BTreeMap::new(),
            gone: BTreeMap::new(),
            settled: BTreeMap::new(),
            paused: false,
            opened: false,
            finished: false,
            closed: false,
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.lab.now()
    }

    /// Writes a block whose bytes follow from its number; `None` if there is no room.
    pub(super) fn block(&mut self, len: usize, deadline: Option<Duration>) -> Option<u64> {
        let now = self.now();
        let terms = BlockTerms {
            deadline,
            reliability: None,
        };
        let next = self.written.len() as u64;
        let data = bytes(next, 0, len);
        let written = self
            .lab
            .world
            .client
            .write_block(now, self.flow, &data, terms);
        let number = match written {
            Ok(accepted) => accepted.number,
            Err(SendError::Full) => return None,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(number, next, "blocks are numbered as they are written");
        self.written.insert(
            number,
            Written {
                at: now,
                len,
                deadline,
            },
        );
        Some(number)
    }

    /// Sends an object whose bytes follow from its number; `None` if there is no room.
    pub(super) fn object(&mut self, len: usize, options: &ObjectOptions) -> Option<u64> {
        let now = self.now();
        let next = self.written.len() as u64;
        let data = bytes(next, 0, len);
        let client = &mut self.lab.world.client;
        let number = match client.send_object(now, self.flow, &data, options) {
            Ok(number) => number,
            Err(SendError::Full) => return None,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(number, next, "objects are numbered as they are opened");
        let deadline = None;
        self.written.insert(
            number,
            Written {
                at: now,
                len,
                deadline,
            },
        );
        Some(number)
    }

    /// Lets the applications act on what has happened.
    fn pump(&mut self) {
        loop {
            let mut any = false;
            while let Some(event) = self.lab.world.client.poll_event() {
                any = true;
                match event {
                    Event::UnitSettled {
                        number,
                        fate,
                        after,
                        ..
                    } => {
                        let before = self.settled.insert(number, (fate, after));
                        assert_eq!(before, None, "{number} was settled twice");
                    }
                    // The server writes nothing: this is its end.
                    Event::FlowReadable(flow) => {
                        let now = self.lab.now();
                        self.lab.world.client.receive_unit(now, flow);
                    }
                    Event::FlowClosed(_) => self.closed = true,
                    Event::Closed(reason) => panic!("the client's session ended: {reason}"),
                    _ => {}
                }
            }
            while let Some(event) = self.lab.world.server.poll_event() {
                any = true;
                match event {
                    Event::FlowOpened(flow) => {
                        self.opened = true;
                        self.lab.world.server.finish(flow);
                    }
                    Event::Closed(reason) => panic!("the server's session ended: {reason}"),
                    _ => {}
                }
            }
            while self.opened && !self.paused && !self.finished {
                let now = self.lab.now();
                let received = self.lab.world.server.receive_unit(now, self.flow);
                any |= received != Received::Blocked;
                if !self.take(received) {
                    break;
                }
            }
            if !any {
                break;
            }
        }
    }

    /// Checks what was read. False if nothing more is there.
    fn take(&mut self, received: Received) -> bool {
        match received {
            Received::Piece(piece) => {
                let number = piece.number;
                let read = self.read.entry(number).or_default();
                assert_eq!(
                    piece.offset, *read as u64,
                    "pieces of {number} follow each other"
                );
                for (i, byte) in piece.data.iter().enumerate() {
                    assert_eq!(*byte, pattern(number, (*read + i) as u64), "{number}");
                }
                *read += piece.data.len();
                assert!(!self.gone.contains_key(&number), "{number} is gone");
                if piece.last {
                    if let Some(written) = self.written.get(&number) {
                        assert_eq!(*read, written.len, "{number}");
                    }
                    let whole = Whole {
                        at: self.lab.now(),
                        late: piece.late,
                    };
                    let before = self.whole.insert(number, whole);
                    assert_eq!(before, None, "{number} came twice");
                }
                true
            }
            Received::Gone { number, fate } => {
                assert!(!self.whole.contains_key(&number), "{number} came");
                assert_eq!(self.gone.insert(number, fate), None);
                true
            }
            Received::Finished => {
                self.finished = true;
                false
            }
            Received::Blocked => false,
            Received::Reset(code) => panic!("reset with {code}"),
        }
    }

    pub(super) fn run_until(&mut self, limit: Instant) {
        self.pump();
        while self.lab.world.step(limit) {
            self.pump();
        }
        self.pump();
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        let limit = self.now() + time;
        self.run_until(limit);
    }

    /// Ends the writer's half and runs until both sides know everything.
    pub(super) fn finish_within(&mut self, time: Duration) {
        let flow = self.flow;
        self.lab.world.client.finish(flow);
        let limit = self.now() + time;
        while !(self.finished && self.closed) {
            assert!(self.now() < limit, "not over in time\n{}", self.lab);
            let next = (self.now() + Duration::from_millis(50)).min(limit);
            self.run_until(next);
        }
    }

    /// What both sides say of every unit is the same, and nothing is left open.
    pub(super) fn check_fates(&self) {
        for number in self.written.keys() {
            let (fate, _) = self.settled.get(number).unwrap_or_else(|| {
                panic!("nobody told what became of {number}");
            });
            let seen = match (self.whole.get(number), self.gone.get(number)) {
                (Some(Whole { late: false, .. }), None) => Fate::OnTime,
                (Some(Whole { late: true, .. }), None) => Fate::Late,
                (None, Some(gone)) => *gone,
                other => panic!("the receiver has {other:?} of {number}, the sender {fate:?}"),
            };
            assert_eq!(seen, *fate, "unit {number}");
        }
        assert_eq!(self.settled.len(), self.written.len());
    }

    pub(super) fn path(&self, index: u64) -> PathId {
        PathId(index)
    }

    /// Counters of the writer's and the reader's side.
    pub(super) fn counters(&self) -> [marline_proto::stats::UnitCounters; 2] {
        let world = &self.lab.world;
        [&world.client, &world.server].map(|session| {
            let counters = session.flow_counters(self.flow);
            counters.map(|c| c.units).unwrap_or_default()
        })
    }

    /// Delay that the fraction `q` of these units did not exceed.
    pub(super) fn quantile(&self, of: impl RangeBounds<u64>, q: f64) -> Duration {
        let whole = self.whole.range(of);
        let mut delays: Vec<Duration> =
            whole.map(|(n, w)| w.at.since(self.written[n].at)).collect();
        delays.sort_unstable();
        let rank = (q * delays.len() as f64).ceil() as usize;
        delays.get(rank.max(1) - 1).copied().unwrap_or_default()
    }
}

pub(super) fn bytes(number: u64, from: u64, len: usize) -> Bytes {
    (from..from + len as u64)
        .map(|offset| pattern(number, offset))
        .collect()
}
