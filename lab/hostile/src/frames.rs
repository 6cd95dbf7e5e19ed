//! Waves: what each datagram holds, by its number in its session. Every datagram opens the flows
//! that it speaks of, so that it means something whatever was lost before.

use bytes::Bytes;
use marline_proto::wire::{
    Ack, Arrival, Availability, Content, DeliveryOrder, FlowId, FlowKind, Frame, LEAST_SYMBOL,
    MAX_MESSAGE, MAX_UNIT, MaxData, MaxFlowData, OpenFlow, PacketPart, PathId, PathStatus,
    RepairSymbol, ResetFlow, SourceSymbol, StopSending, Stream, UnitData, UnitRepair, varint,
};

use crate::by_hand::ByHand;

/// Where a datagram goes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Site {
    /// It comes from a client, whose flows have even numbers.
    pub(crate) client: bool,
    /// What streams are opened for.
    pub(crate) stream: Bytes,
    /// What flows of messages are opened for.
    pub(crate) messages: Bytes,
    /// Flows that may be opened.
    pub(crate) flows: u64,
    /// Bytes of frames that fit.
    pub(crate) room: usize,
}

/// A row of the table of waves.
pub(crate) struct Wave {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    /// How far apart packet numbers are.
    pub(crate) step: u64,
    /// Writes the frames of datagram number n.
    pub(crate) fill: fn(&Site, u64, &mut Vec<u8>),
}

/// The waves. What a session answers with CLOSE begins again in a new one.
pub(crate) const WAVES: &[Wave] = &[
    Wave {
        name: "pings",
        help: "a datagram full of PINGs",
        step: 1,
        fill: pings,
    },
    Wave {
        name: "gaps",
        help: "packet numbers with gaps between them",
        step: 7,
        fill: pings,
    },
    Wave {
        name: "control",
        help: "credit that is a lie, and a path's status, changed for ever",
        step: 1,
        fill: control,
    },
    Wave {
        name: "acks",
        help: "acknowledgements of what was never sent",
        step: 1,
        fill: acks,
    },
    Wave {
        name: "opens",
        help: "all flows that may be opened, with credit without end",
        step: 1,
        fill: opens,
    },
    Wave {
        name: "resets",
        help: "flows that are opened, reset and stopped at once",
        step: 1,
        fill: resets,
    },
    Wave {
        name: "overrun",
        help: "bytes beyond all credit",
        step: 1,
        fill: overrun,
    },
    Wave {
        name: "crumbs",
        help: "every other byte of a stream, one a datagram",
        step: 1,
        fill: crumbs,
    },
    Wave {
        name: "parts",
        help: "a byte each of long messages",
        step: 1,
        fill: parts,
    },
    Wave {
        name: "claims",
        help: "a byte each of objects that fill the credit",
        step: 1,
        fill: claims,
    },
    Wave {
        name: "huge",
        help: "a byte of an object of the largest size",
        step: 1,
        fill: huge,
    },
    Wave {
        name: "repairs",
        help: "objects of repair symbols alone",
        step: 1,
        fill: repairs,
    },
    Wave {
        name: "symbols",
        help: "a coded stream of which much is missing, and nonsense to mend it",
        step: 1,
        fill: symbols,
    },
    Wave {
        name: "garbage",
        help: "bytes that are no frames",
        step: 1,
        fill: garbage,
    },
];

/// Bytes of an object that is claimed: with its heading and what the credit counts, a megabyte.
const CLAIM: u64 = (1 << 20) - 256;
/// Claims within a flow's credit of 8 MiB, and flows within a session's of 32 MiB.
const CLAIMS: u64 = 8;
const CLAIMANTS: u64 = 4;
/// Pieces of one stream that a receiver with 8 MiB of credit puts up with.
const PIECES: u64 = 32_000;
/// Symbols of an object of repair symbols alone.
const SYMBOLS: u64 = 1000;

impl Site {
    /// As the session stands.
    pub(crate) fn of(&self, session: &mut ByHand) -> Self {
        Self {
            flows: session.max_flows,
            room: session.room(),
            ..self.clone()
        }
    }

    fn flow(&self, index: u64) -> FlowId {
        FlowId::new(self.client, index)
    }

    /// Writes that a flow is opened, and returns it.
    fn open(&self, index: u64, kind: FlowKind, out: &mut Vec<u8>) -> FlowId {
        let flow = self.flow(index);
        let (order, target) = match kind {
            FlowKind::Stream => (DeliveryOrder::InOrder, &self.stream),
            FlowKind::Packets => (DeliveryOrder::AsTheyCome, &self.messages),
            FlowKind::Blocks | FlowKind::Objects => (DeliveryOrder::AsTheyCome, &self.stream),
        };
        let opening = OpenFlow {
            flow,
            kind,
            order,
            priority: 3,
            lifetime_us: 0,
            target,
        };
        Frame::OpenFlow(opening).encode(out);
        flow
    }
}

fn pings(site: &Site, _: u64, out: &mut Vec<u8>) {
    (0..site.room).for_each(|_| Frame::Ping.encode(out));
}

fn control(site: &Site, n: u64, out: &mut Vec<u8>) {
    let flow = site.open(0, FlowKind::Stream, out);
    let mut number = n * 64;
    while out.len() + 64 < site.room {
        number += 1;
        let status = match number % 2 {
            0 => Availability::Available,
            _ => Availability::Standby,
        };
        let path = PathId(0);
        Frame::MaxData(MaxData { max: number }).encode(out);
        Frame::MaxFlowData(MaxFlowData {
            flow,
            max: varint::MAX / 2 + number,
        })
        .encode(out);
        Frame::PathStatus(PathStatus {
            path,
            sequence: number,
            status,
        })
        .encode(out);
    }
}

fn acks(_: &Site, n: u64, out: &mut Vec<u8>) {
    let packet = 1_000_000 + n;
    let ranges = (0..64).map(|i| packet - 3 * i..=packet - 3 * i).collect();
    let arrivals = vec![Arrival { packet, at_us: n }];
    Frame::Ack(Ack {
        path: PathId(0),
        delay_us: 0,
        ranges,
        arrivals,
    })
    .encode(out);
}

fn opens(site: &Site, n: u64, out: &mut Vec<u8>) {
    Frame::MaxData(MaxData { max: varint::MAX }).encode(out);
    let flow = site.open(n % site.flows.max(1), FlowKind::Stream, out);
    Frame::MaxFlowData(MaxFlowData {
        flow,
        max: varint::MAX,
    })
    .encode(out);
}

fn resets(site: &Site, n: u64, out: &mut Vec<u8>) {
    let flow = site.open(n.min(site.flows.saturating_sub(1)), FlowKind::Stream, out);
    Frame::ResetFlow(ResetFlow {
        flow,
        code: 0,
        final_size: 0,
    })
    .encode(out);
    Frame::StopSending(StopSending { flow, code: 0 }).encode(out);
}

fn overrun(site: &Site, n: u64, out: &mut Vec<u8>) {
    let flow = site.open(0, FlowKind::Stream, out);
    let offset = (1 << 40) + n;
    Frame::Stream(Stream {
        flow,
        offset,
        fin: false,
        data: &[0; 1000],
    })
    .encode(out);
}

fn crumbs(site: &Site, n: u64, out: &mut Vec<u8>) {
    let flow = site.open(n / PIECES % site.flows.max(1), FlowKind::Stream, out);
    let offset = 1 + 2 * (n % PIECES);
    Frame::Stream(Stream {
        flow,
        offset,
        fin: false,
        data: &[0],
    })
    .encode(out);
    // A receiver that keeps a byte must not keep all this for it.
    out.resize(site.room, 0);
}

fn parts(site: &Site, n: u64, out: &mut Vec<u8>) {
    let flow = site.open(n % site.flows.clamp(1, 64), FlowKind::Packets, out);
    let total = MAX_MESSAGE as u64;
    for k in 0..32 {
        let sequence = n * 32 + k;
        Frame::PacketPart(PacketPart {
            flow,
            sequence,
            offset: total - 1,
            total,
            data: &[0],
        })
        .encode(out);
    }
}

fn claims(site: &Site, n: u64, out: &mut Vec<u8>) {
    let flow = site.open(n % CLAIMANTS, FlowKind::Objects, out);
    let unit = n / CLAIMANTS % CLAIMS;
    Frame::Unit(UnitData {
        flow,
        unit,
        size: CLAIM,
        offset: CLAIM - 1,
        data: &[0],
    })
    .encode(out);
}

fn huge(site: &Site, n: u64, out: &mut Vec<u8>) {
    let flow = site.open(n % CLAIMANTS, FlowKind::Objects, out);
    Frame::Unit(UnitData {
        flow,
        unit: 0,
        size: MAX_UNIT,
        offset: MAX_UNIT - 1,
        data: &[0],
    })
    .encode(out);
}

fn repairs(site: &Site, n: u64, out: &mut Vec<u8>) {
    let data = [n as u8; LEAST_SYMBOL as usize];
    let size = SYMBOLS * LEAST_SYMBOL;
    for k in 0..2 {
        let number = 2 * n + k;
        let (unit, index) = (number / SYMBOLS, (number % SYMBOLS) as u16);
        let flow = site.open(unit / CLAIMS % site.flows.max(1), FlowKind::Objects, out);
        let unit = unit % CLAIMS;
        Frame::UnitRepair(UnitRepair {
            flow,
            unit,
            size,
            index,
            data: &data,
        })
        .encode(out);
    }
}

fn symbols(site: &Site, n: u64, out: &mut Vec<u8>) {
    let flow = site.open(0, FlowKind::Stream, out);
    let mut content = Vec::new();
    Content::Stream {
        offset: 300 * n,
        fin: false,
        data: &[0; 16],
    }
    .encode(&mut content);
    Frame::Symbol(SourceSymbol {
        flow,
        symbol: 2 * n,
        content: &content,
    })
    .encode(out);
    let payload = [n as u8; 1000];
    let (first, key) = ((2 * n).saturating_sub(255), n as u16);
    Frame::Repair(RepairSymbol {
        flow,
        first,
        count: 255,
        key,
        payload: &payload,
    })
    .encode(out);
}

fn garbage(site: &Site, n: u64, out: &mut Vec<u8>) {
    out.extend((0..site.room as u64).map(|i| (i * i + n) as u8 | 0x40));
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_proto::wire::Frames;

    fn site() -> Site {
        Site {
            client: true,
            stream: Bytes::from_static(b"a stream's target"),
            messages: Bytes::from_static(b"a target for messages"),
            flows: 1024,
            room: 1300,
        }
    }

    #[test]
    fn every_wave_writes_frames_that_fit_but_garbage() {
        for wave in WAVES {
            for n in (0..5_000).chain([1 << 30]) {
                let mut out = Vec::new();
                (wave.fill)(&site(), n, &mut out);
                assert!(
                    !out.is_empty() && out.len() <= 1300,
                    "{} {n}: {}",
                    wave.name,
                    out.len()
                );
                let sound = Frames::new(&out).all(|frame| frame.is_ok());
                assert_eq!(sound, wave.name != "garbage", "{} {n}", wave.name);
            }
        }
    }
}
