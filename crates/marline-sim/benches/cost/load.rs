//! What applications do at both ends.

use super::Failure;
use bytes::Bytes;
use marline_proto::flow::{BlockTerms, Chunk, ObjectOptions, Received};
use marline_proto::sched::Choice;
use marline_proto::wire::{FlowId, FlowKind};
use marline_proto::{Event, FlowOptions, Session};
use marline_sim::{Duration, Instant};

/// Kinds of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// As much as the paths take.
    Stream,
    /// Records of 1316 bytes, 20 Mb/s, worth nothing after 200 ms.
    Live,
    /// The same in order, which repair symbols keep, over links that lose a fiftieth.
    CodedLive,
    /// 60 kB every 25 ms, with a deadline of 100 ms.
    Blocks,
    /// The same without.
    Objects,
}

/// What a stream is written in.
static CHUNK: [u8; 64 << 10] = [0; 64 << 10];
/// Seven packets of an MPEG transport stream.
const RECORD: usize = 1_316;
/// What is due every time, in all flows together, for 20 Mb/s.
const RECORDS: (u64, Duration) = (19, Duration::from_millis(10));
const UNIT: (usize, Duration) = (60_000, Duration::from_millis(25));
const LIFETIME: Duration = Duration::from_millis(200);
const DEADLINE: Duration = Duration::from_millis(100);

impl Kind {
    pub(super) const ALL: [(&str, Kind); 5] = [
        ("stream", Kind::Stream),
        ("live", Kind::Live),
        ("coded-live", Kind::CodedLive),
        ("blocks", Kind::Blocks),
        ("objects", Kind::Objects),
    ];

    pub(super) fn named(name: &str) -> Option<Kind> {
        let found = Kind::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| *kind)
    }
}

/// Flows of one kind, and what they carry together.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) kind: Kind,
    pub(super) count: usize,
    pub(super) scheduler: Option<Choice>,
    /// The links lose a fiftieth.
    pub(super) lossy: bool,
}

/// The load's flows at the sender.
#[derive(Debug, Default)]
pub(super) struct Flows {
    ids: Vec<FlowId>,
    next: usize,
    pub(super) due: Option<Instant>,
}

impl Load {
    pub(super) fn new(kind: Kind, count: usize) -> Self {
        Load {
            kind,
            count,
            scheduler: None,
            lossy: kind == Kind::CodedLive,
        }
    }

    pub(super) fn begin(&self, sender: &mut Session) -> Result<Flows, Failure> {
        let (kind, lifetime) = match self.kind {
            Kind::Stream => (FlowKind::Stream, None),
            Kind::Live | Kind::CodedLive => (FlowKind::Packets, Some(LIFETIME)),
            Kind::Blocks => (FlowKind::Blocks, Some(DEADLINE)),
            Kind::Objects => (FlowKind::Objects, None),
        };
        let options = FlowOptions {
            lifetime,
            scheduler: self.scheduler,
            ordered: self.kind != Kind::Live,
            ..FlowOptions::new(kind)
        };
        let ids = (0..self.count).map(|_| sender.open_flow(&options));
        let flows = Flows {
            ids: ids.collect::<Result<_, _>>()?,
            next: 0,
            due: Some(Instant::ZERO),
        };
        Ok(flows)
    }

    /// Writes what is due.
    pub(super) fn write(&self, sender: &mut Session, flows: &mut Flows, now: Instant) {
        if flows.due.is_none_or(|due| now < due) {
            return;
        }
        let every = match self.kind {
            Kind::Stream => {
                for id in &flows.ids {
                    fill(sender, *id, now);
                }
                flows.due = None;
                return;
            }
            Kind::Live | Kind::CodedLive => {
                for _ in 0..RECORDS.0 {
                    let record = Bytes::from_static(&CHUNK[..RECORD]);
                    let _ = sender.send(now, flows.turn(), record);
                }
                RECORDS.1
            }
            Kind::Blocks => {
                let block = Bytes::from_static(&CHUNK[..UNIT.0]);
                let terms = BlockTerms {
                    deadline: Some(DEADLINE),
                    reliability: None,
                };
                let _ = sender.write_block(now, flows.turn(), &block, terms);
                UNIT.1
            }
            Kind::Objects => {
                let object = Bytes::from_static(&CHUNK[..UNIT.0]);
                let options = ObjectOptions::default();
                let _ = sender.send_object(now, flows.turn(), &object, &options);
                UNIT.1
            }
        };
        flows.due = Some(now + every);
    }

    pub(super) fn on_sender_event(&self, sender: &mut Session, event: &Event, now: Instant) {
        if let (Kind::Stream, Event::FlowWritable(id)) = (self.kind, event) {
            fill(sender, *id, now);
        }
    }

    /// Reads all that is there; returns its length (bytes).
    pub(super) fn on_receiver_event(&self, to: &mut Session, event: &Event, now: Instant) -> u64 {
        let Event::FlowReadable(id) = event else {
            return 0;
        };
        let mut bytes = 0;
        match self.kind {
            Kind::Stream => {
                while let Chunk::Data(data) = to.read(now, *id, usize::MAX) {
                    bytes += data.len() as u64;
                }
            }
            Kind::Live | Kind::CodedLive => {
                while let Chunk::Data(data) = to.receive(now, *id) {
                    bytes += data.len() as u64;
                }
            }
            Kind::Blocks | Kind::Objects => loop {
                match to.receive_unit(now, *id) {
                    Received::Piece(piece) => bytes += piece.data.len() as u64,
                    Received::Gone { .. } => {}
                    _ => break,
                }
            },
        }
        bytes
    }
}

impl Flows {
    /// The flow whose turn it is.
    fn turn(&mut self) -> FlowId {
        self.next += 1;
        self.ids[self.next % self.ids.len()]
    }
}

/// Writes all that the stream takes.
fn fill(sender: &mut Session, id: FlowId, now: Instant) {
    let data = Bytes::from_static(&CHUNK);
    while sender.write(now, id, &data).is_ok() {}
}
