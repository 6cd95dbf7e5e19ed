//! Frames that are cut to the room left: as much as fits, and no byte less.

use alloc::vec::Vec;

use proptest::prelude::*;

use super::{frames, strategy};
use crate::wire::*;

/// The newest `ranges` and `arrivals` of an ACK.
fn newest(ack: &Ack, ranges: usize, arrivals: usize) -> Ack {
    Ack {
        ranges: ack.ranges[..ranges].to_vec(),
        arrivals: ack.arrivals[..arrivals].to_vec(),
        ..ack.clone()
    }
}

proptest! {
    #[test]
    fn an_ack_fills_its_room_from_the_newest(ack in strategy::ack(120), room in prop_oneof![0..900_usize, 0..4000_usize]) {
        let mut out = Vec::new();
        let Some(fitted) = ack.encode_within(room, &mut out) else {
            prop_assert!(out.is_empty());
            prop_assert!(newest(&ack, 1, 1).encoded_len() > room);
            return Ok(());
        };
        prop_assert_eq!(out.len(), fitted.len);
        prop_assert!(out.len() <= room);
        let sent = newest(&ack, fitted.ranges, fitted.arrivals);
        prop_assert_eq!(frames(&out).unwrap(), [Frame::Ack(sent)]);

        prop_assert!(fitted.ranges <= MAX_RANGES_ENCODED);
        if fitted.ranges < ack.ranges.len().min(MAX_RANGES_ENCODED) {
            let longer = newest(&ack, fitted.ranges + 1, 1).encoded_len();
            prop_assert!(longer > room, "arrivals go before ranges");
        }
        prop_assert!(fitted.arrivals <= MAX_ARRIVALS_ENCODED);
        if fitted.arrivals < ack.arrivals.len().min(MAX_ARRIVALS_ENCODED) {
            let floor = *ack.ranges[fitted.ranges - 1].start();
            let longer = newest(&ack, fitted.ranges, fitted.arrivals + 1);
            prop_assert!(
                ack.arrivals[fitted.arrivals].packet < floor || longer.encoded_len() > room
            );
        }
    }

    #[test]
    fn data_fills_its_room(
        flow in strategy::any_varint(),
        number in strategy::any_varint(),
        room in prop_oneof![0..200_usize, 0..20_000_usize, 16_380..16_430_usize],
        total in 0..=MAX_MESSAGE as u64,
    ) {
        let flow = FlowId(flow);
        fills(room, Stream::data_room(flow, number, room), usize::MAX, |len| {
            Stream::overhead(flow, number, len)
        })?;
        fills(room, Packet::data_room(flow, number, room), MAX_MESSAGE, |len| {
            Packet::overhead(flow, number, len)
        })?;
        let most = MAX_CODE_SYMBOL as usize;
        fills(room, SourceSymbol::content_room(flow, number, room), most, |len| {
            Stream::overhead(flow, number, len)
        })?;
        let offset = number % (total + 1);
        let left = (total - offset) as usize;
        let part = PacketPart::data_room(flow, number, offset, total, room);
        prop_assert_ne!(part, Some(0));
        fills(room, part.or(Some(0)), left, |len| match len {
            0 => 0,
            _ => PacketPart::overhead(flow, number, offset, total, len),
        })?;
    }
}

/// `len` bytes of data fit into `room`, and one more would not or is not allowed.
fn fills(
    room: usize,
    len: Option<usize>,
    max: usize,
    overhead: impl Fn(usize) -> usize,
) -> Result<(), TestCaseError> {
    if let Some(len) = len {
        prop_assert!(len <= max);
        prop_assert!(overhead(len) + len <= room);
    }
    let more = len.map_or(0, |len| len + 1);
    prop_assert!(
        more > max || overhead(more) + more > room,
        "{more} bytes would fit"
    );
    Ok(())
}

/// 100 ranges of six packets, with this many arrivals each.
fn long_ack(arrivals: u64) -> Ack {
    let newest = |i: u64| 10_000 - 10 * i;
    Ack {
        path: PathId(1),
        delay_us: 0,
        ranges: (0..100_u64).map(|i| newest(i) - 5..=newest(i)).collect(),
        arrivals: (0..100_u64)
            .flat_map(|i| (0..arrivals).map(move |j| newest(i) - j))
            .map(|packet| Arrival {
                packet,
                at_us: packet * 100,
            })
            .collect(),
    }
}

#[test]
fn an_ack_keeps_to_the_limits_of_the_sender() {
    let mut out = Vec::new();
    let fitted = long_ack(6).encode_within(usize::MAX, &mut out).unwrap();
    assert_eq!(
        (fitted.ranges, fitted.arrivals),
        (MAX_RANGES_ENCODED, MAX_ARRIVALS_ENCODED)
    );
}

#[test]
fn an_ack_lists_no_arrival_below_its_ranges() {
    let mut out = Vec::new();
    let fitted = long_ack(1).encode_within(usize::MAX, &mut out).unwrap();
    assert_eq!((fitted.ranges, fitted.arrivals), (MAX_RANGES_ENCODED, 64));
    assert!(frames(&out).is_ok());
}

#[test]
fn an_ack_without_ranges_or_arrivals_is_no_frame() {
    let ack = Ack {
        path: PathId(0),
        delay_us: 0,
        ranges: Vec::new(),
        arrivals: Vec::new(),
    };
    let mut out = Vec::new();
    assert_eq!(ack.encode_within(1000, &mut out), None);
    ack.encode(&mut out);
    assert_eq!((out.len(), ack.encoded_len(), ack.largest()), (0, 0, None));
}

#[test]
fn a_reason_is_cut_between_characters() {
    // 85 characters of three bytes are 255; the next would end at 258.
    let reason: alloc::string::String = "遅".repeat(100);
    let close = Close {
        code: close_code::NONE,
        reason: &reason,
    };
    let mut out = Vec::new();
    close.encode(&mut out);
    assert_eq!(out.len(), close.encoded_len());
    let expected = Close {
        reason: &reason[..255],
        ..close
    };
    assert_eq!(frames(&out).unwrap(), [Frame::Close(expected)]);
}
