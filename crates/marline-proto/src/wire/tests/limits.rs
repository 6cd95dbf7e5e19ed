//! Both sides of every limit.

use alloc::vec;
use alloc::vec::Vec;

use super::{frames, varints};
use crate::wire::frame_type::*;
use crate::wire::*;

fn kind(payload: &[u8]) -> Option<DecodeErrorKind> {
    frames(payload).err().map(|error| error.kind)
}

/// A frame's bytes: integers, then data.
fn frame(integers: &[u64], data: &[u8]) -> Vec<u8> {
    let mut bytes = varints(integers);
    bytes.extend_from_slice(data);
    bytes
}

fn too_large(field: &'static str, value: u64, max: u64) -> Option<DecodeErrorKind> {
    Some(DecodeErrorKind::TooLarge { field, value, max })
}

#[test]
fn the_first_bytes() {
    let error = |datagram: &[u8]| decode(datagram).err().map(|error| error.kind);
    let field = "version";
    assert_eq!(error(&[]), Some(DecodeErrorKind::Truncated { field }));
    assert_eq!(error(&[0, 0]), Some(DecodeErrorKind::Version { got: 0 }));
    assert_eq!(error(&[2, 0]), Some(DecodeErrorKind::Version { got: 2 }));
    let field = "packet number";
    assert_eq!(error(&[1]), Some(DecodeErrorKind::Truncated { field }));
    assert_eq!(
        error(&[1, 0x40]),
        Some(DecodeErrorKind::Truncated { field })
    );
    let (header, mut frames) = decode(&[1, 0x40, 7]).unwrap();
    assert_eq!((header.packet, frames.next()), (7, None));
}

#[test]
fn frame_types() {
    for value in 0..=0xff {
        let unknown = kind(&varints(&[value])) == Some(DecodeErrorKind::UnknownFrame);
        assert_eq!(unknown, name(value).is_none(), "{value:#x}");
    }
    assert_eq!(kind(&[0x40, 0x01]), Some(DecodeErrorKind::LongFrameType));
    assert_eq!(kind(&[0x40, 0x3f]), Some(DecodeErrorKind::LongFrameType));
}

#[test]
fn elicit_acknowledgements() {
    let close = Close {
        code: 0,
        reason: "",
    };
    let ack = Ack {
        path: PathId(0),
        delay_us: 0,
        ranges: vec![0..=0],
        arrivals: vec![Arrival {
            packet: 0,
            at_us: 0,
        }],
    };
    assert!(!Frame::Padding { len: 1 }.is_ack_eliciting());
    assert!(!Frame::Ack(ack).is_ack_eliciting());
    assert!(!Frame::Close(close).is_ack_eliciting());
    assert!(Frame::Ping.is_ack_eliciting());
    assert!(Frame::MaxData(MaxData { max: 0 }).is_ack_eliciting());
}

/// An ACK of packet 100 000 with more ranges and arrivals, each a packet apart from its neighbour.
fn ack(more_ranges: u64, more_arrivals: u64) -> Vec<u8> {
    let mut integers = vec![ACK, 0, 100_000, 0, 5000, more_ranges, 0];
    integers.extend((0..more_ranges).flat_map(|_| [0, 0]));
    integers.push(more_arrivals);
    integers.extend((0..more_arrivals).flat_map(|_| [1, 2]));
    varints(&integers)
}

#[test]
fn lengths_of_an_ack() {
    assert_eq!(kind(&ack(255, 255)), None);
    assert_eq!(kind(&ack(256, 0)), too_large("range_count", 256, 255));
    let of_one_range = |more: u64| {
        let mut integers = vec![ACK, 0, 100_000, 0, 5000, 0, 99_999, more];
        integers.extend((0..more).flat_map(|_| [1, 2]));
        varints(&integers)
    };
    assert_eq!(kind(&of_one_range(511)), None);
    let arrivals = kind(&of_one_range(512));
    assert_eq!(arrivals, too_large("arrival_count", 512, 511));
}

#[test]
fn a_count_reserves_no_more_than_the_datagram_holds() {
    let mut integers = vec![ACK, 0, 1000, 0, 0, 255, 0];
    assert!(kind(&varints(&integers)).is_some());
    integers[5] = 0;
    integers.push(0);
    let bytes = varints(&integers);
    let Frame::Ack(ack) = frames(&bytes).unwrap().remove(0) else {
        panic!("an ACK")
    };
    assert_eq!((ack.ranges.capacity(), ack.arrivals.capacity()), (1, 1));
}

#[test]
fn an_ack_stays_above_packet_zero() {
    use DecodeErrorKind::*;
    let ranges = |list: &[u64]| kind(&varints(&[&[ACK, 0, 10, 0, 0], list, &[0]].concat()));
    assert_eq!(ranges(&[0, 10]), None);
    assert_eq!(ranges(&[0, 11]), Some(RangeBelowZero { index: 0 }));
    assert_eq!(ranges(&[2, 0, 3, 0, 0, 3]), None);
    assert_eq!(
        ranges(&[2, 0, 3, 0, 0, 4]),
        Some(RangeBelowZero { index: 2 })
    );
    assert_eq!(
        ranges(&[2, 0, 3, 0, 4, 0]),
        Some(RangeBelowZero { index: 2 })
    );
    assert_eq!(
        ranges(&[1, 0, varint::MAX, varint::MAX]),
        Some(RangeBelowZero { index: 1 })
    );
}

#[test]
fn arrivals_are_of_acknowledged_packets() {
    use DecodeErrorKind::*;
    // Packets 10, 5 to 7 and 0 are acknowledged.
    let fixed = [ACK, 0, 10, 0, 500, 2, 0, 1, 2, 3, 0];
    let arrivals = |list: &[u64]| kind(&varints(&[&fixed, list].concat()));
    assert_eq!(arrivals(&[4, 2, 0, 0, 0, 0, 0, 4, 0]), None);
    let not_covered = |index, packet| Some(ArrivalNotAcknowledged { index, packet });
    assert_eq!(arrivals(&[1, 0, 0]), not_covered(1, 9));
    assert_eq!(arrivals(&[1, 1, 0]), not_covered(1, 8));
    assert_eq!(arrivals(&[2, 4, 0, 0, 0]), not_covered(2, 4));
    assert_eq!(arrivals(&[1, 10, 0]), Some(ArrivalBelowZero { index: 1 }));
    let far = [1, varint::MAX, 0];
    assert_eq!(arrivals(&far), Some(ArrivalBelowZero { index: 1 }));
}

#[test]
fn arrivals_are_on_the_clock() {
    use DecodeErrorKind::ArrivalTime;
    let arrival = |first: u64, dt: u64| kind(&varints(&[ACK, 0, 9, 0, first, 0, 9, 1, 0, dt]));
    assert_eq!(arrival(500, varint::zigzag(500)), None);
    let early = arrival(500, varint::zigzag(501));
    assert_eq!(early, Some(ArrivalTime { index: 1 }));
    assert_eq!(arrival(varint::MAX - 1, varint::zigzag(-1)), None);
    let late = arrival(varint::MAX, varint::zigzag(-1));
    assert_eq!(late, Some(ArrivalTime { index: 1 }));
    // The largest differences that fit, both ways.
    assert_eq!(arrival(varint::MAX, varint::MAX - 1), None);
    let late = arrival(varint::MAX, varint::MAX);
    assert_eq!(late, Some(ArrivalTime { index: 1 }));
    assert_eq!(arrival(0, varint::MAX), None);
}

#[test]
fn what_a_flow_may_be() {
    use DecodeErrorKind::*;
    let open = |kind_, order, priority, len: usize| {
        let integers = [OPEN_FLOW, 4, kind_, order, priority, 0, len as u64];
        kind(&frame(&integers, &vec![b'x'; len]))
    };
    assert_eq!(open(0, 0, 7, MAX_TARGET), None);
    assert_eq!(open(1, 1, 0, 0), None);
    assert_eq!(open(0, 1, 0, 0), Some(StreamOutOfOrder));
    for units in [2, 3] {
        assert_eq!(open(units, 1, 0, 0), None);
        assert_eq!(open(units, 0, 0, 0), Some(UnitsInOrder));
    }
    let unknown = |field, value| Some(UnknownValue { field, value });
    assert_eq!(open(4, 0, 0, 0), unknown("kind", 4));
    assert_eq!(open(1, 2, 0, 0), unknown("order", 2));
    assert_eq!(open(0, 2, 0, 0), unknown("order", 2));
    assert_eq!(open(0, 0, 8, 0), too_large("priority", 8, 7));
    assert_eq!(open(0, 0, 0, 513), too_large("target length", 513, 512));
}

#[test]
fn a_stream_ends_at_the_largest_offset() {
    let stream = |offset| kind(&frame(&[STREAM, 4, offset, 3], b"abc"));
    assert_eq!(stream(varint::MAX - 3), None);
    let beyond = stream(varint::MAX - 2);
    assert_eq!(
        beyond,
        too_large("offset plus length", varint::MAX + 1, varint::MAX)
    );
}

#[test]
fn a_message_has_its_length() {
    use DecodeErrorKind::*;
    let longest = vec![7; MAX_MESSAGE];
    assert_eq!(kind(&frame(&[PACKET, 4, 0, 65_535], &longest)), None);
    let whole = kind(&frame(&[PACKET, 4, 0, 65_536], &longest));
    assert_eq!(whole, too_large("length", 65_536, 65_535));

    let part = |offset, total| kind(&frame(&[PACKET_PART, 4, 0, offset, total, 3], b"abc"));
    assert_eq!(part(0, 3), None);
    assert_eq!(part(65_532, 65_535), None);
    assert_eq!(part(1, 3), Some(PartBeyondMessage { end: 4, total: 3 }));
    let end = varint::MAX + 3;
    let total = 65_535;
    assert_eq!(
        part(varint::MAX, total),
        Some(PartBeyondMessage { end, total })
    );
    assert_eq!(part(0, 65_536), too_large("total", 65_536, 65_535));
    let empty = kind(&varints(&[PACKET_PART, 4, 0, 0, 5, 0]));
    assert_eq!(empty, Some(EmptyPart));
}

#[test]
fn a_source_symbol_has_a_content() {
    use DecodeErrorKind::*;
    let symbol = |content: &[u8]| kind(&frame(&[SYMBOL, 4, 0, content.len() as u64], content));
    assert_eq!(
        symbol(&[8, 0]),
        None,
        "an empty end of a stream may be coded"
    );
    let (field, value) = ("content type", 12);
    assert_eq!(symbol(&[12, 0]), Some(UnknownValue { field, value }));
    let field = "content type";
    assert_eq!(symbol(&[]), Some(Truncated { field }));
    let field = "offset";
    assert_eq!(symbol(&[9]), Some(Truncated { field }));
    assert_eq!(symbol(&[11, 0, 1, 3, 7, 7]), None);
    assert_eq!(symbol(&[11, 0, 1, 3]), Some(EmptyPart));
    let (end, total) = (4, 3);
    let beyond = symbol(&[11, 0, 1, 3, 7, 7, 7]);
    assert_eq!(beyond, Some(PartBeyondMessage { end, total }));
    let far = frame(&[STREAM, varint::MAX - 3], b"abc");
    assert_eq!(symbol(&far), None);
    let field = "offset plus length";
    let farther = symbol(&frame(&[STREAM, varint::MAX - 2], b"abc"));
    assert_eq!(farther, too_large(field, varint::MAX + 1, varint::MAX));
    let longest = frame(&[SYMBOL, 4, 0, 65_536], &vec![8; 65_536]);
    assert_eq!(kind(&longest), too_large("length", 65_536, 65_535));
}

#[test]
fn a_repair_symbol_combines_some() {
    use DecodeErrorKind::*;
    let repair = |first, count, key| kind(&frame(&[REPAIR, 4, first, count, key, 2], &[0, 0]));
    assert_eq!(repair(0, 1, 0), None);
    assert_eq!(repair(varint::MAX - 1024, 1024, 65_535), None);
    assert_eq!(repair(0, 0, 0), Some(EmptyRepair));
    assert_eq!(repair(0, 1025, 0), too_large("count", 1025, 1024));
    assert_eq!(repair(0, 1, 65_536), too_large("key", 65_536, 65_535));
    let field = "first plus count";
    let beyond = repair(varint::MAX, 1, 0);
    assert_eq!(beyond, too_large(field, varint::MAX + 1, varint::MAX));
    let short = kind(&frame(&[REPAIR, 4, 0, 1, 0, 1], &[0]));
    assert_eq!(short, Some(EmptyRepair));
    let status = |equations| kind(&varints(&[CODE_STATUS, 4, 9, equations, 3, 1]));
    assert_eq!(status(1024), None);
    assert_eq!(status(1025), too_large("equations", 1025, 1024));
}

#[test]
fn a_unit_has_its_size() {
    use DecodeErrorKind::*;
    let unit = |size, offset| kind(&frame(&[UNIT, 4, 0, size, offset, 3], b"abc"));
    assert_eq!(unit(3, 0), None);
    assert_eq!(unit(MAX_UNIT, MAX_UNIT - 3), None);
    assert_eq!(unit(3, 1), Some(PartBeyondUnit { end: 4, size: 3 }));
    let (end, size) = (varint::MAX + 3, MAX_UNIT);
    assert_eq!(unit(size, varint::MAX), Some(PartBeyondUnit { end, size }));
    let long = too_large("size", MAX_UNIT + 1, MAX_UNIT);
    assert_eq!(unit(MAX_UNIT + 1, 0), long);
    assert_eq!(kind(&varints(&[UNIT, 4, 0, 5, 0, 0])), Some(EmptyPart));

    let repair = |size, index, len: usize| {
        let integers = [UNIT_REPAIR, 4, 0, size, index, len as u64];
        kind(&frame(&integers, &vec![0; len]))
    };
    assert_eq!(repair(1, 65_535, 1), None);
    assert_eq!(repair(1, 65_536, 1), too_large("index", 65_536, 65_535));
    assert_eq!(repair(256, 0, 1), None);
    let short = |len| Some(ShortSymbol { len, least: 512 });
    assert_eq!(repair(257, 0, 1), short(1));
    assert_eq!(repair(512 * 257, 0, 511), short(511));
    assert_eq!(repair(512 * 257, 0, 512), None);
    assert_eq!(repair(512 * 65_535, 0, 512), None);
    let many = repair(512 * 65_535 + 1, 0, 512);
    assert_eq!(many, too_large("number of symbols", 65_536, 65_535));
    assert_eq!(repair(0, 0, 1), Some(EmptyPart));
    assert_eq!(repair(1, 0, 0), Some(EmptyPart));

    let fate = |fate, value| kind(&varints(&[UNIT_FATE, 4, 0, fate, value]));
    let unknown = |field, value| Some(UnknownValue { field, value });
    for known in [(0, 9), (1, 9), (2, 0), (3, 9), (4, 0)] {
        assert_eq!(fate(known.0, known.1), None);
    }
    assert_eq!(fate(2, 1), unknown("value", 1));
    assert_eq!(fate(5, 0), unknown("fate", 5));
    let cancel = kind(&varints(&[UNIT_CANCEL, 4, 0, MAX_UNIT + 1, 0]));
    assert_eq!(cancel, too_large("size", MAX_UNIT + 1, MAX_UNIT));
}

#[test]
fn headings_come_back_and_end_where_they_end() {
    let block = BlockHeading {
        deadline_us: 77_000,
    };
    let mut bytes = Vec::new();
    block.encode(&mut bytes);
    bytes.extend_from_slice(b"data");
    assert_eq!(BlockHeading::decode(&bytes), Ok((block, 4)));
    for piece in [Piece::More, Piece::Last, Piece::Cancelled(9)] {
        for total in [None, Some(0), Some(varint::MAX - 1)] {
            let heading = ObjectHeading {
                object: 3,
                offset: 1 << 20,
                total,
                piece,
            };
            let mut bytes = Vec::new();
            heading.encode(&mut bytes);
            let len = bytes.len();
            assert!(len <= ObjectHeading::LONGEST);
            assert!((0..len).all(|cut| ObjectHeading::decode(&bytes[..cut]).is_err()));
            bytes.extend_from_slice(b"data");
            assert_eq!(ObjectHeading::decode(&bytes), Ok((heading, len)));
        }
    }
    let (field, value) = ("piece", 3);
    let error = Err(DecodeErrorKind::UnknownValue { field, value });
    assert_eq!(ObjectHeading::decode(&[0, 0, 0, 3]), error);
}

#[test]
fn the_rest() {
    use DecodeErrorKind::*;
    assert_eq!(kind(&varints(&[MAX_FLOWS, MAX_FLOW_COUNT])), None);
    let flows = kind(&varints(&[MAX_FLOWS, MAX_FLOW_COUNT + 1]));
    assert_eq!(flows, too_large("max", MAX_FLOW_COUNT + 1, MAX_FLOW_COUNT));

    assert_eq!(kind(&varints(&[PATH_STATUS, 1, 2, 1])), None);
    let (field, value) = ("status", 2);
    let status = kind(&varints(&[PATH_STATUS, 1, 2, 2]));
    assert_eq!(status, Some(UnknownValue { field, value }));

    let close = |reason: &[u8]| kind(&frame(&[CLOSE, 0, reason.len() as u64], reason));
    assert_eq!(close(&[b'x'; 256]), None);
    assert_eq!(close(&[b'x'; 257]), too_large("reason length", 257, 256));
    assert_eq!(close(b"sp\xc3"), Some(ReasonNotUtf8));
}

#[test]
fn parameters() {
    use DecodeErrorKind::*;
    let error = |integers: &[u64]| Params::decode(&varints(integers)).err();
    let at = |offset, kind| {
        Some(DecodeError {
            offset,
            frame: None,
            kind,
        })
    };
    assert_eq!(Params::decode(&[]), Ok(Params::default()));
    let expected = Params {
        max_flows: 0,
        ..Params::default()
    };
    assert_eq!(Params::decode(&[4, 1, 0]), Ok(expected));
    assert_eq!(
        error(&[4, 1, 0, 4, 1, 0]),
        at(3, DuplicateParameter { id: 4 })
    );
    assert_eq!(error(&[63, 0, 63, 0]), at(2, DuplicateParameter { id: 63 }));
    assert_eq!(error(&[4, 0]), at(0, MalformedParameter { id: 4 }));
    assert_eq!(
        error(&[63, 0, 4, 2, 5, 5]),
        at(2, MalformedParameter { id: 4 })
    );
    assert_eq!(error(&[4, 1, 64]), at(0, MalformedParameter { id: 4 }));
    let field = "parameter value";
    assert_eq!(error(&[63, 2, 0]), at(0, Truncated { field }));

    for (id, len, max, field) in [
        (4, 8, MAX_FLOW_COUNT, "max_flows"),
        (5, 4, MAX_ACK_DELAY_US, "max_ack_delay"),
        (6, 4, MAX_MESSAGE as u64, "max_message"),
        (7, 2, MAX_CODE_WINDOW, "code_window"),
        (8, 4, MAX_CODE_SYMBOL, "code_symbol"),
        (9, 8, MAX_FLOW_COUNT, "code_flows"),
        (10, 4, MAX_UNITS, "max_units"),
        (11, 4, MAX_REPAIRS, "max_repairs"),
        (13, 2, MAX_COST, "max_path_cost"),
        (14, 4, MAX_QUIET_MS, "max_path_quiet"),
    ] {
        assert_eq!(error(&[id, len, max]), None);
        let value = max + 1;
        let refused = error(&[id, len, value]);
        assert_eq!(refused, at(0, TooLarge { field, value, max }));
    }

    let many = |count: u64| {
        let entries: Vec<u64> = (100..100 + count).flat_map(|id| [id, 0]).collect();
        error(&entries)
    };
    assert_eq!(many(64), None);
    let (field, value, max) = ("number of parameters", 65, 64);
    assert_eq!(many(65), at(64 * 3, TooLarge { field, value, max }));
}

#[test]
fn flows_are_numbered_by_side() {
    let (client, server) = (FlowId::new(true, 3), FlowId::new(false, 3));
    assert_eq!((client, server), (FlowId(6), FlowId(7)));
    assert!(client.is_client_initiated() && !server.is_client_initiated());
    assert_eq!((client.index(), server.index()), (3, 3));
}
