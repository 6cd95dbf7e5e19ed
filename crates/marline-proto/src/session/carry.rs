//! The frame that carries a symbol.

use alloc::vec::Vec;

use marline_base::Instant;

use super::flow::Flow;
use crate::flow::{Due, Form, SendHalf, Symbol, UnitsSend};
use crate::wire::{
    Content, FlowId, Packet, PacketPart, PathId, RepairSymbol, SourceSymbol, Stream, UnitData,
    UnitRepair,
};

/// Bytes that a REPAIR may take more than the longest SYMBOL that it combines: its count and key,
/// the coded length, and numbers that have grown since. A source symbol leaves them free, so that
/// where it fits, its repair symbol fits too.
const REPAIR_MARGIN: usize = 12;

/// Bytes of the symbol that fit `room` in this form; what was sent before as a source symbol fits
/// whole or not at all.
pub(super) fn data_room(flow: &Flow, symbol: &Symbol, form: Form, room: usize) -> u32 {
    let fits = match form {
        Form::Plain => plain_room(&flow.send, flow.id, symbol, room),
        Form::New(number) => coded_room(flow, number, symbol, room.saturating_sub(REPAIR_MARGIN)),
        Form::Again(number, _) => {
            let fits = coded_room(flow, number, symbol, room);
            fits.filter(|fits| *fits >= symbol.len as usize)
        }
    };
    fits.unwrap_or(0).min(u32::MAX as usize) as u32
}

fn plain_room(send: &SendHalf, flow: FlowId, symbol: &Symbol, room: usize) -> Option<usize> {
    match send {
        SendHalf::Stream(_) => Stream::data_room(flow, symbol.offset, room),
        SendHalf::Packets(packets) => {
            let total = packets.total(symbol);
            if symbol.len == total {
                let whole = Packet::data_room(flow, symbol.unit, room);
                match whole {
                    Some(fits) if fits >= total as usize => whole,
                    _ => part_room(flow, symbol, total, room),
                }
            } else {
                part_room(flow, symbol, total, room)
            }
        }
        SendHalf::Units(units) => unit_room(units, flow, symbol, room),
    }
}

fn unit_room(units: &UnitsSend, flow: FlowId, symbol: &Symbol, room: usize) -> Option<usize> {
    let unit = symbol.unit;
    match units.frame_of(symbol)? {
        (size, None) => UnitData::data_room(flow, unit, size, symbol.offset, room),
        (size, Some(index)) => {
            let len = symbol.len as usize;
            let takes = UnitRepair::len_with(flow, unit, size, index, len);
            (takes <= room).then_some(len)
        }
    }
}

fn part_room(flow: FlowId, symbol: &Symbol, total: u32, room: usize) -> Option<usize> {
    PacketPart::data_room(flow, symbol.unit, symbol.offset, u64::from(total), room)
}

fn coded_room(flow: &Flow, number: u64, symbol: &Symbol, room: usize) -> Option<usize> {
    let longest = flow.coder.as_ref()?.longest_content();
    let room = SourceSymbol::content_room(flow.id, number, room)?.min(longest);
    let beside = |len| {
        let piece = Symbol { len, ..*symbol };
        room.checked_sub(content(&flow.send, &piece, false, &[]).encoded_len())
    };
    // Only a whole message has no place in one.
    let whole = beside(symbol.len).filter(|fits| *fits >= symbol.len as usize);
    whole.or_else(|| beside(symbol.len.saturating_sub(1)))
}

fn content<'a>(send: &SendHalf, symbol: &Symbol, fin: bool, data: &'a [u8]) -> Content<'a> {
    match send {
        SendHalf::Stream(_) => Content::Stream {
            offset: symbol.offset,
            fin,
            data,
        },
        SendHalf::Packets(packets) => {
            let total = packets.total(symbol);
            if symbol.len == total {
                Content::Packet {
                    sequence: symbol.unit,
                    data,
                }
            } else {
                Content::Part {
                    sequence: symbol.unit,
                    offset: symbol.offset,
                    total: total.into(),
                    data,
                }
            }
        }
        SendHalf::Units(_) => unreachable!("`start_coding` leaves units to their own code"),
    }
}

/// Writes the symbol's frame, and takes note of it in the flow's code; returns whether it ends its
/// stream.
pub(super) fn write(
    flow: &mut Flow,
    now: Instant,
    path: PathId,
    symbol: &Symbol,
    form: Form,
    buf: &mut Vec<u8>,
) -> bool {
    let is_last = match &flow.send {
        SendHalf::Stream(stream) => stream.is_last(symbol),
        SendHalf::Packets(_) | SendHalf::Units(_) => false,
    };
    let (number, fin) = match form {
        Form::Plain => {
            write_plain(&flow.send, flow.id, symbol, is_last, buf);
            return is_last;
        }
        Form::New(number) => (number, is_last),
        // A source symbol never changes, even if its stream turned out to end with it.
        Form::Again(number, fin) => (number, fin),
    };
    let data = flow.send.bytes(symbol);
    let content = content(&flow.send, symbol, fin, &data);
    let len = content.encoded_len();
    SourceSymbol::encode_content(flow.id, number, &content, buf);
    if let Some(coder) = &mut flow.coder {
        if form == Form::New(number) {
            let content = &buf[buf.len() - len..];
            let gone = coder.on_source(now, path, *symbol, fin, content);
            flow.lost.extend(gone);
        } else {
            coder.on_again(number);
        }
    }
    fin
}

fn write_plain(send: &SendHalf, flow: FlowId, symbol: &Symbol, fin: bool, buf: &mut Vec<u8>) {
    let data = send.bytes(symbol);
    match send {
        SendHalf::Stream(_) => Stream {
            flow,
            offset: symbol.offset,
            fin,
            data: &data,
        }
        .encode(buf),
        SendHalf::Packets(packets) => {
            let total = packets.total(symbol);
            if symbol.len == total {
                Packet {
                    flow,
                    sequence: symbol.unit,
                    data: &data,
                }
                .encode(buf);
            } else {
                PacketPart {
                    flow,
                    sequence: symbol.unit,
                    offset: symbol.offset,
                    total: u64::from(total),
                    data: &data,
                }
                .encode(buf);
            }
        }
        SendHalf::Units(units) => write_unit(units, flow, symbol, &data, buf),
    }
}

fn write_unit(units: &UnitsSend, flow: FlowId, symbol: &Symbol, data: &[u8], buf: &mut Vec<u8>) {
    let unit = symbol.unit;
    match units.frame_of(symbol) {
        Some((size, None)) => UnitData {
            flow,
            unit,
            size,
            offset: symbol.offset,
            data,
        }
        .encode(buf),
        Some((size, Some(index))) => UnitRepair {
            flow,
            unit,
            size,
            index,
            data,
        }
        .encode(buf),
        None => debug_assert!(false, "an unsettled symbol has a unit"),
    }
}

/// What became of an attempt to write a repair symbol.
pub(super) enum Written {
    /// It left with this many bytes of payload.
    Left(u32),
    /// There is nothing to repair any more, or it can never fit.
    Dropped,
    /// It needs the next datagram.
    Full,
}

/// Writes the repair symbol that `asked` stands for, if it fits `room`. `alone`: it will never find
/// more room.
pub(super) fn write_repair(
    flow: &mut Flow,
    now: Instant,
    path: PathId,
    (asked, due): (&Symbol, &Due),
    (room, alone): (usize, bool),
    buf: &mut Vec<u8>,
) -> Written {
    let Some(coder) = &mut flow.coder else {
        return Written::Dropped;
    };
    let (first, longest) = coder.next_repair();
    let fits = RepairSymbol::most_len(flow.id, first, longest) <= room;
    if !fits && !alone {
        return Written::Full;
    }
    let mut payload = Vec::new();
    let combined = fits.then(|| coder.repair(&mut payload, due)).flatten();
    let Some(combined) = combined else {
        coder.cancel(asked);
        return Written::Dropped;
    };
    RepairSymbol {
        flow: flow.id,
        first: combined.start,
        count: combined.count,
        key: combined.key,
        payload: &payload,
    }
    .encode(buf);
    let len = payload.len() as u32;
    coder.on_repair(now, path, asked, (&combined, len));
    Written::Left(len)
}
