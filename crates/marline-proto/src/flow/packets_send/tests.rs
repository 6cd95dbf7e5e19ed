use super::*;
use alloc::vec::Vec;

use crate::wire::{FlowId, PacketPart};

fn bytes(n: usize) -> Bytes {
    Bytes::from(alloc::vec![7; n])
}

#[test]
fn what_waits_for_a_path_is_bounded_apart_from_what_is_on_its_way() {
    let mut send = PacketsSend::new(10_000, None, false, Some(250));
    let push = |send: &mut PacketsSend| send.push(Instant::ZERO, Bytes::from_static(&[0; 100]));
    assert_eq!((push(&mut send), push(&mut send)), (Ok(0), Ok(1)));
    assert_eq!(push(&mut send), Err(SendError::Full));
    assert!(!send.has_room(u64::MAX));
    send.cut(1_000).unwrap();
    assert_eq!(push(&mut send), Ok(2), "one of them found a path");
    send.cut(1_000).unwrap();
    assert!(send.has_room(u64::MAX));
    // A queue that is shorter than a message holds one.
    let mut short = PacketsSend::new(10_000, None, false, Some(10));
    assert_eq!(push(&mut short), Ok(0));
    assert_eq!(push(&mut short), Err(SendError::Full));
}

#[test]
fn cuts_messages_at_their_boundaries() {
    let mut send = PacketsSend::new(10_000, None, false, None);
    for n in [5, 0, 3] {
        send.push(Instant::ZERO, bytes(n)).unwrap();
    }
    let mut symbols = Vec::new();
    while let Some(symbol) = send.cut(4) {
        symbols.push((symbol.unit, symbol.offset, symbol.len));
    }
    assert_eq!(symbols, [(0, 0, 4), (0, 4, 1), (1, 0, 0), (2, 0, 3)]);
    for (unit, offset, len) in [(2, 0, 3), (0, 4, 1), (1, 0, 0), (0, 0, 4)] {
        send.on_acked(Instant::ZERO, &Symbol { unit, offset, len });
    }
    assert_eq!((send.base(), send.held, send.unsent()), (3, 0, 0));
}

#[test]
fn parts_of_a_long_message_make_datagrams_of_one_length() {
    for total in [1_260, 1_300, 5_000, 16_000, 40_000_usize] {
        let mut send = PacketsSend::new(100_000, None, false, None);
        send.push(Instant::ZERO, bytes(total)).unwrap();
        let mut lengths = Vec::new();
        while let Some(symbol) = send.cut(1_250) {
            let part = PacketPart {
                flow: FlowId(4),
                sequence: 7,
                offset: symbol.offset,
                total: total as u64,
                data: send.bytes(&symbol),
            };
            lengths.push(part.encoded_len());
        }
        let last = lengths.pop().unwrap();
        assert!(
            lengths.iter().all(|len| *len == lengths[0] && last <= *len),
            "{lengths:?}"
        );
    }
}

#[test]
fn what_is_given_up_is_blamed_on_the_path_that_had_it_or_on_none() {
    let mut send = PacketsSend::new(10_000, Some(Duration::from_millis(10)), false, None);
    for _ in 0..4 {
        send.push(Instant::ZERO, bytes(5)).unwrap();
    }
    // The first left whole over two paths, the second when half of its lifetime was over, the third
    // in part, the last not at all.
    for (path, at) in [(7, 4), (8, 5), (8, 6), (8, 6), (8, 6)] {
        let symbol = send.cut(3).unwrap();
        send.on_left(Instant::from_millis(at), &symbol, PathId(path));
    }
    send.cut(3).unwrap();
    send.expire(Instant::from_millis(10));
    let expected = GivenUp {
        waited: 3,
        on: alloc::vec![(PathId(7), 1)],
    };
    assert_eq!(*send.expired_where(), expected);
}

#[test]
fn the_newest_packet_of_an_interface_is_kept_until_there_is_a_newer_one() {
    let end = Instant::from_millis(90_000);
    for (ordered, queue, kept) in [
        (true, Some(1000), true),
        (false, Some(1000), false),
        (true, None, false),
    ] {
        let mut send = PacketsSend::new(10_000, Some(Duration::from_secs(1)), ordered, queue);
        send.push(Instant::ZERO, bytes(5)).unwrap();
        let symbol = send.cut(9).unwrap();
        assert_eq!(send.next_expiry().is_none(), kept);
        assert_eq!(send.expire(end), (!kept).then_some(1));
        assert_eq!(send.is_settled(&symbol), !kept);
        // The newer one takes its place, and what is acknowledged is no longer kept.
        send.push(end, bytes(5)).unwrap();
        assert!(send.next_expiry().is_some());
        assert_eq!(send.expire(end), kept.then_some(1));
        let newer = send.cut(9).unwrap();
        send.on_acked(end, &newer);
        assert_eq!((send.held(), send.next_expiry()), (0, None));
    }
}

#[test]
fn a_lifetime_ends_whether_sent_or_not() {
    let mut send = PacketsSend::new(10_000, Some(Duration::from_millis(10)), false, None);
    send.push(Instant::ZERO, bytes(5)).unwrap();
    send.push(Instant::from_millis(5), bytes(5)).unwrap();
    let symbol = send.cut(3).unwrap();
    let unit = send.next_unit().unwrap();
    let deadline = Some(Instant::from_millis(10));
    assert_eq!((unit.id, unit.len, unit.deadline), (0, 2, deadline));
    assert_eq!(send.next_expiry(), Some(Instant::from_millis(10)));
    assert_eq!(send.expire(Instant::from_millis(10)), Some(1));
    assert!(send.is_settled(&symbol));
    assert_eq!(send.expired(), 1);
    assert_eq!(send.unsent(), 5);
    assert_eq!(send.cut(9).unwrap().unit, 1);
    assert_eq!(send.expire(Instant::from_millis(14)), None);
}

#[test]
fn where_many_lifetimes_end_several_are_given_up_at_once() {
    for (lifetime, gap) in [(160, 4), (32, 2)] {
        let lifetime = Duration::from_millis(lifetime);
        let mut send = PacketsSend::new(10_000, Some(lifetime), false, None);
        for ms in 0..40 {
            send.push(Instant::from_millis(ms), bytes(5)).unwrap();
        }
        let mut told = Vec::new();
        while let Some(at) = send.next_expiry() {
            assert!(at.since(Instant::ZERO) < lifetime + Duration::from_millis(45));
            told.extend(send.expire(at));
        }
        // The first at once, then those of each gap.
        let rest = (1 + gap..40).step_by(gap as usize);
        let all: Vec<u64> = core::iter::once(1).chain(rest).chain([40]).collect();
        assert_eq!(told, all);
    }
}

#[test]
fn what_was_lost_and_came_all_the_same_was_repaired() {
    let mut send = PacketsSend::new(10_000, Some(Duration::from_millis(10)), false, None);
    for _ in 0..4 {
        send.push(Instant::ZERO, bytes(5)).unwrap();
    }
    let symbols: Vec<Symbol> = core::iter::from_fn(|| send.cut(9)).collect();
    let now = Instant::from_millis(5);
    // Lost, then acknowledged as a retransmission.
    send.on_source_lost(&symbols[0]);
    assert_eq!(send.repaired(), 0);
    send.on_acked(now, &symbols[0]);
    assert_eq!(send.repaired(), 1);
    // Copies were acknowledged before the losses were known; the second waits behind a gap.
    for (symbol, repaired) in [(&symbols[1], 2), (&symbols[3], 3)] {
        send.on_acked(now, symbol);
        send.on_source_lost(symbol);
        assert_eq!(send.repaired(), repaired);
    }
    // Given up before its loss was known.
    send.expire(Instant::from_millis(10));
    send.on_source_lost(&symbols[2]);
    assert_eq!(send.repaired(), 3);
}

#[test]
fn what_was_given_up_had_left_or_not_and_may_come_all_the_same() {
    let mut send = PacketsSend::new(10_000, Some(Duration::from_millis(10)), false, None);
    for _ in 0..3 {
        send.push(Instant::ZERO, bytes(5)).unwrap();
    }
    let symbols: Vec<Symbol> = [9, 3, 9].map(|max| send.cut(max).unwrap()).into();
    send.on_acked(Instant::from_millis(5), &symbols[0]);
    send.expire(Instant::from_millis(10));
    assert_eq!(send.never_left(), 5, "the third was not cut");
    // The end of the second waited for its path; its beginning arrived.
    send.on_skipped(&symbols[2]);
    send.on_acked_late(&symbols[1]);
    // The first was delivered: a symbol of it that did not leave was not needed.
    send.on_skipped(&symbols[0]);
    send.on_acked_late(&symbols[0]);
    assert_eq!((send.never_left(), send.acked_late()), (7, 3));
}

#[test]
fn is_full_by_bytes_and_by_count() {
    let mut send = PacketsSend::new(1_000, None, false, None);
    assert_eq!(send.push(Instant::ZERO, bytes(2_000)), Err(SendError::Full));
    let taken = (0..100)
        .take_while(|_| send.push(Instant::ZERO, bytes(0)).is_ok())
        .count();
    assert_eq!(taken, 15);
}
