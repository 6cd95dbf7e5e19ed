//! The bytes and tables of `docs/PROTOCOL.md` are what the code does.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use marline_fec::stream;

use crate::wire::*;

const DOCUMENT: &str = include_str!("../../../../../docs/PROTOCOL.md");

/// The lines of every block that starts with "```hex KIND", with what follows KIND.
fn blocks(kind: &str) -> Vec<(&'static str, Vec<&'static str>)> {
    let opening = format!("```hex {kind}");
    let mut lines = DOCUMENT.lines();
    let mut blocks = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix(opening.as_str()) {
            let block = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push((name.trim(), block));
        }
    }
    assert!(!blocks.is_empty(), "no block of {kind}");
    blocks
}

/// Bytes of a line in hex, up to its comment.
fn hex(line: &str) -> Vec<u8> {
    let bytes = line.split('#').next().unwrap_or_default();
    bytes
        .split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}

fn bytes(block: &[&str]) -> Vec<u8> {
    block.iter().flat_map(|line| hex(line)).collect()
}

/// The cells of the table that follows a heading, without its two first rows.
fn table(heading: &str) -> Vec<Vec<&'static str>> {
    let (_, section) = DOCUMENT.split_once(heading).unwrap();
    let rows = section
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'));
    rows.skip(2)
        .map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

fn number(cell: &str) -> u64 {
    u64::from_str_radix(cell.trim_matches('`').trim_start_matches("0x"), 16).unwrap()
}

const HELLO: Stream<'_> = Stream {
    flow: FlowId(4),
    offset: 65_536,
    fin: false,
    data: b"hello",
};

fn expected(name: &str) -> Frame<'static> {
    let arrival = |packet, at_us| Arrival { packet, at_us };
    let flow = FlowId(4);
    let path = PathId(1);
    match name {
        "ack" => Frame::Ack(Ack {
            path,
            delay_us: 200,
            ranges: vec![20..=25, 17..=17],
            arrivals: vec![
                arrival(25, 100_000),
                arrival(24, 99_800),
                arrival(23, 99_810),
                arrival(17, 97_462),
            ],
        }),
        "open-flow" => Frame::OpenFlow(OpenFlow {
            flow: FlowId(0),
            kind: FlowKind::Packets,
            order: DeliveryOrder::AsTheyCome,
            priority: 2,
            lifetime_us: 200_000,
            target: b"voice",
        }),
        "reset-flow" => Frame::ResetFlow(ResetFlow {
            flow,
            code: 9,
            final_size: 65_541,
        }),
        "stop-sending" => Frame::StopSending(StopSending { flow, code: 9 }),
        "stream" => Frame::Stream(HELLO),
        "stream-fin" => Frame::Stream(Stream {
            offset: 65_541,
            fin: true,
            data: b"",
            ..HELLO
        }),
        "packet" => Frame::Packet(Packet {
            flow: FlowId(0),
            sequence: 7,
            data: b"ok",
        }),
        "packet-part" => Frame::PacketPart(PacketPart {
            flow: FlowId(0),
            sequence: 8,
            offset: 1200,
            total: 3000,
            data: b"abc",
        }),
        "forward" => Frame::Forward(Forward {
            flow: FlowId(0),
            sequence: 9,
        }),
        "finish" => Frame::Finish(Finish {
            flow: FlowId(0),
            sequence: 100,
        }),
        "flow-report" => Frame::FlowReport(FlowReport {
            flow: FlowId(0),
            missed: 5,
            late: 2,
            duplicates: 300,
        }),
        "unit" => Frame::Unit(UnitData {
            flow,
            unit: 3,
            size: 2_500,
            offset: 834,
            data: b"abc",
        }),
        "unit-repair" => Frame::UnitRepair(UnitRepair {
            flow,
            unit: 0,
            size: 11,
            index: 1,
            data: &[0x43, 0xb7, 0x4f, 0x71],
        }),
        "unit-fate" => Frame::UnitFate(UnitFate {
            flow,
            unit: 3,
            verdict: Verdict::Late(100_000),
        }),
        "unit-cancel" => Frame::UnitCancel(UnitCancel {
            flow,
            unit: 4,
            size: 2_500,
            code: None,
        }),
        "max-data" => Frame::MaxData(MaxData { max: 20 << 20 }),
        "max-flow-data" => Frame::MaxFlowData(MaxFlowData { flow, max: 5 << 20 }),
        "max-flows" => Frame::MaxFlows(MaxFlows { max: 1025 }),
        "path-status" => Frame::PathStatus(PathStatus {
            path,
            sequence: 3,
            status: Availability::Standby,
        }),
        "path-abandon" => Frame::PathAbandon(PathAbandon { path, code: 0 }),
        "path-cost" => Frame::PathCost(PathCost {
            path,
            sequence: 1,
            cost: 2,
        }),
        "path-quiet" => Frame::PathQuiet(PathQuiet {
            path,
            sequence: 2,
            quiet_ms: 37_500,
        }),
        "close" => Frame::Close(Close {
            code: close_code::PROTOCOL,
            reason: "unknown packet",
        }),
        "symbol" => Frame::Symbol(SourceSymbol {
            flow,
            symbol: 8,
            content: b"\x09\x01bcd",
        }),
        "repair" => Frame::Repair(RepairSymbol {
            flow,
            first: 7,
            count: 2,
            key: 1,
            payload: &[0x00, 0x2d, 0x8f, 0xe1, 0x08, 0xad, 0x30],
        }),
        "code-status" => Frame::CodeStatus(CodeStatus {
            flow,
            next: 9,
            equations: 0,
            repairs: 3,
            recovered: 1,
        }),
        _ => panic!("the document shows a frame {name} that this test does not know"),
    }
}

#[test]
fn frames_are_as_shown() {
    let mut shown = BTreeSet::new();
    for (name, block) in blocks("frame") {
        let bytes = bytes(&block);
        let expected = expected(name);
        let frames = super::frames(&bytes).unwrap();
        assert_eq!(frames, core::slice::from_ref(&expected), "{name}");
        assert_eq!(super::encoded(&expected), bytes, "{name}");
        shown.insert(expected.frame_type());
    }
    let all: BTreeSet<u64> = (0..0x40)
        .filter(|value| frame_type::name(*value).is_some())
        // The datagram shows these two.
        .filter(|value| ![frame_type::PADDING, frame_type::PING].contains(value))
        .collect();
    assert_eq!(shown, all);
}

/// The symbol that the document says is missing comes out of the repair symbol that it shows.
#[test]
fn the_repair_symbol_repairs() {
    let (Frame::Symbol(source), Frame::Repair(repair)) = (expected("symbol"), expected("repair"))
    else {
        panic!("frames of other types");
    };
    let mut decoder = stream::Decoder::new(7, stream::Limits::default());
    decoder.source(source.symbol, source.content).unwrap();
    let combined = stream::Repair {
        start: repair.first,
        count: repair.count,
        key: repair.key,
    };
    decoder.repair(combined, repair.payload).unwrap();
    assert_eq!(decoder.poll_recovered(), Some(7));
    let content = Content::decode(decoder.symbol(7).unwrap());
    let expected = Content::Stream {
        offset: 0,
        fin: false,
        data: b"a",
    };
    assert_eq!(content, Ok(expected));
}

/// The repair symbol shown is what the code makes of the unit shown, and brings it back.
#[test]
fn the_repair_symbol_is_as_shown() {
    use marline_fec::block::{Decoder, Encoder, Shape};
    let unit = bytes(&blocks("unit")[0].1);
    let Frame::UnitRepair(repair) = expected("unit-repair") else {
        panic!("a repair symbol")
    };
    let shape = Shape::new(unit.len(), repair.data.len()).unwrap();
    let encoder = Encoder::new(shape, &unit).unwrap();
    let mut symbol = Vec::new();
    encoder.repair(repair.index, &mut symbol);
    assert_eq!((repair.size, repair.data), (unit.len() as u64, &symbol[..]));
    let mut decoder = Decoder::new(shape);
    decoder.source(0, &unit[..4]).unwrap();
    decoder.source(2, &unit[8..]).unwrap();
    decoder.repair(repair.index, repair.data).unwrap();
    assert_eq!(decoder.block(), Some(&unit[..]));
    let (heading, len) = ObjectHeading::decode(&unit).unwrap();
    let shown = ObjectHeading {
        object: 2,
        offset: 0,
        total: Some(7),
        piece: Piece::Last,
    };
    assert_eq!((heading, &unit[len..]), (shown, &b"marline"[..]));
}

#[test]
fn the_datagram_is_as_shown() {
    let shown = bytes(&blocks("datagram")[0].1);
    let (header, frames) = decode(&shown).unwrap();
    let frames: Vec<_> = frames.map(Result::unwrap).collect();
    assert_eq!(header, Header { packet: 42 });
    let padding = Frame::Padding { len: 2 };
    assert_eq!(frames, [Frame::Stream(HELLO), Frame::Ping, padding]);
}

#[test]
fn integers_are_as_shown() {
    let (_, lines) = &blocks("varints")[0];
    for line in lines {
        let comment = line.split_once('#').unwrap().1;
        let value: String = comment
            .chars()
            .take_while(|c| c.is_ascii_digit() || *c == ' ')
            .filter(char::is_ascii_digit)
            .collect();
        let bytes = hex(line);
        let value = value.parse().unwrap();
        assert_eq!(varint::decode(&bytes), Some((value, bytes.len())), "{line}");
    }
}

#[test]
fn parameters_are_as_shown() {
    let shown = bytes(&blocks("parameters")[0].1);
    let mut defaults = Vec::new();
    Params::default().encode(&mut defaults);
    assert_eq!(shown, defaults);
    for row in table("## Parameters") {
        // A value of no bytes is refused by name.
        let error = Params::decode(&super::varints(&[number(row[0]), 0])).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains(&format!("parameter {} ", row[1])),
            "{message}"
        );
    }
}

#[test]
fn refused_datagrams_are_refused_in_the_words_shown() {
    for (_, block) in blocks("refused") {
        let datagram = bytes(&block[1..]);
        let error = match decode(&datagram) {
            Err(error) => error,
            Ok((_, mut frames)) => frames.find_map(Result::err).unwrap(),
        };
        assert_eq!(block[0], format!("# {error}"));
    }
}

#[test]
fn the_table_of_frames_is_complete() {
    let shown: Vec<_> = table("## Frames")
        .into_iter()
        .map(|row| (number(row[0]), row[1], row[2] != "no"))
        .collect();
    // Padding and ping have no block of their own to be decoded from.
    let mut elicit: Vec<_> = blocks("frame")
        .into_iter()
        .map(|(name, _)| expected(name))
        .chain([Frame::Padding { len: 1 }, Frame::Ping])
        .map(|frame| {
            let frame_type = frame.frame_type();
            let name = frame_type::name(frame_type).unwrap();
            (frame_type, name, frame.is_ack_eliciting())
        })
        .collect();
    elicit.sort_unstable();
    assert_eq!(shown, elicit);
}

#[test]
fn codes_and_limits_are_as_shown() {
    use close_code::*;
    let codes = [
        ("NONE", NONE),
        ("INTERNAL", INTERNAL),
        ("MALFORMED", MALFORMED),
        ("PROTOCOL", PROTOCOL),
        ("FLOW_CONTROL", FLOW_CONTROL),
        ("FLOW_LIMIT", FLOW_LIMIT),
        ("FINAL_SIZE", FINAL_SIZE),
        ("PARAMETERS", PARAMETERS),
        ("YIELDED", YIELDED),
    ];
    let shown: Vec<_> = table("### CLOSE")
        .into_iter()
        .map(|row| (row[1], number(row[0])))
        .collect();
    assert_eq!(shown, codes);
    assert!(DOCUMENT.contains(&format!("Codes from {APPLICATION:#x} on")));

    let limits = [
        ("ranges of a received ACK", MAX_RANGES_DECODED),
        ("arrivals of a received ACK", MAX_ARRIVALS_DECODED),
        ("ranges of a sent ACK", MAX_RANGES_ENCODED),
        ("arrivals of a sent ACK", MAX_ARRIVALS_ENCODED),
        ("bytes of a target", MAX_TARGET),
        ("bytes of a message", MAX_MESSAGE),
        ("bytes of a unit", MAX_UNIT as usize),
        (
            "source symbols of a unit with repair symbols",
            MAX_SOURCES as usize,
        ),
        ("bytes of a reason", MAX_REASON),
        ("priority", usize::from(LEAST_PRIORITY)),
        ("parameters", MAX_PARAMETERS),
        ("symbols in a repair symbol", MAX_CODE_WINDOW as usize),
        ("bytes of a source symbol", MAX_CODE_SYMBOL as usize),
    ];
    let shown: Vec<_> = table("## Limits")
        .into_iter()
        .map(|row| (row[0], row[1].parse().unwrap()))
        .collect();
    assert_eq!(shown, limits);
}
