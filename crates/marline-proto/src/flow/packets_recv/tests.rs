use alloc::vec;

use super::*;

fn bytes(n: u8) -> Bytes {
    Bytes::from(vec![n; 3])
}

fn read_all(recv: &mut PacketsRecv) -> Vec<u8> {
    core::iter::from_fn(|| recv.read()).map(|d| d[0]).collect()
}

#[test]
fn waits_for_a_gap_as_long_as_its_lifetime() {
    let lifetime = Duration::from_millis(20);
    let mut recv = PacketsRecv::new(DeliveryOrder::InOrder, Some(lifetime), 10_000);
    recv.receive(Instant::ZERO, 0, bytes(0));
    recv.receive(Instant::from_millis(1), 2, bytes(2));
    recv.receive(Instant::from_millis(9), 3, bytes(3));
    recv.receive(Instant::from_millis(9), 3, bytes(3));
    assert_eq!(read_all(&mut recv), [0]);
    assert_eq!(recv.deadline(), Some(Instant::from_millis(21)));
    recv.on_deadline(Instant::from_millis(20));
    assert_eq!(read_all(&mut recv), []);
    recv.on_deadline(Instant::from_millis(21));
    assert_eq!(read_all(&mut recv), [2, 3]);
    recv.receive(Instant::from_millis(22), 1, bytes(1));
    assert_eq!(read_all(&mut recv), [], "it came too late");
    recv.receive(Instant::from_millis(23), 1, bytes(1));
    let counts = Counts {
        delivered: 3,
        skipped: 1,
        late: 1,
        duplicates: 2,
        ..Counts::default()
    };
    assert_eq!(recv.counts(), counts, "3 came twice, 1 late and then again");
}

#[test]
fn what_became_of_messages_is_reported_once_a_second_at_most() {
    let mut recv = PacketsRecv::new(DeliveryOrder::InOrder, None, 10_000);
    let at = Instant::from_millis;
    recv.receive(at(5_000), 0, bytes(0));
    assert!(!recv.reports(at(5_000)), "nothing went wrong");
    recv.receive(at(5_001), 0, bytes(0));
    assert!(recv.reports(at(5_001)));
    recv.forward(3);
    assert!(!recv.reports(at(6_000)), "it was told of the first");
    assert!(recv.reports(at(6_001)));
    assert!(!recv.reports(at(8_000)), "no news");
    recv.receive(at(8_000), 2, bytes(2));
    let report = FlowReport {
        flow: FlowId(4),
        missed: 2,
        late: 1,
        duplicates: 1,
    };
    assert_eq!(recv.report(FlowId(4)), report);
}

#[test]
fn waits_for_several_gaps_run_side_by_side() {
    let lifetime = Duration::from_millis(20);
    let mut recv = PacketsRecv::new(DeliveryOrder::InOrder, Some(lifetime), 10_000);
    for (at, sequence) in [(0, 0), (1, 2), (3, 4), (15, 6)] {
        recv.receive(Instant::from_millis(at), sequence, bytes(sequence as u8));
    }
    recv.receive(Instant::from_millis(16), 1, bytes(1));
    assert_eq!(read_all(&mut recv), [0, 1, 2]);
    assert_eq!(recv.counts().reordered, 1);
    assert_eq!(recv.deadline(), Some(Instant::from_millis(23)));
    // Called late, it makes up for all that is over.
    recv.on_deadline(Instant::from_millis(34));
    assert_eq!(read_all(&mut recv), [4]);
    assert_eq!(recv.deadline(), Some(Instant::from_millis(35)));
    recv.on_deadline(Instant::from_millis(35));
    assert_eq!(read_all(&mut recv), [6]);
    assert_eq!(recv.counts().skipped, 2);
}

#[test]
fn without_order_only_the_sender_gives_up() {
    let mut recv = PacketsRecv::new(DeliveryOrder::AsTheyCome, None, 10_000);
    for s in [0, 2, 5] {
        recv.receive(Instant::ZERO, s, bytes(s as u8));
    }
    recv.forward(4);
    recv.receive(Instant::ZERO, 3, bytes(3));
    let counts = recv.counts();
    assert_eq!((counts.skipped, counts.late, counts.duplicates), (2, 1, 0));
    assert_eq!(read_all(&mut recv), [0, 2, 5]);
}

#[test]
fn forward_spares_the_wait_and_loses_nothing_that_came() {
    let mut recv = PacketsRecv::new(DeliveryOrder::InOrder, None, 10_000);
    for s in [1, 3, 5] {
        recv.receive(Instant::ZERO, s, bytes(s as u8));
    }
    assert_eq!(recv.deadline(), None);
    recv.forward(4);
    assert_eq!(read_all(&mut recv), [1, 3]);
    recv.receive(Instant::ZERO, 4, bytes(4));
    assert_eq!(read_all(&mut recv), [4, 5]);
}

#[test]
fn parts_make_a_message_once() {
    let mut recv = PacketsRecv::new(DeliveryOrder::AsTheyCome, None, 100_000);
    let now = Instant::ZERO;
    recv.receive_part(now, 7, 2, 5, b"cde").unwrap();
    recv.receive_part(now, 7, 2, 5, b"cde").unwrap();
    assert_eq!(recv.read(), None);
    assert_eq!(recv.receive_part(now, 7, 0, 6, b"ab"), Err(Contradiction));
    recv.receive_part(now, 7, 0, 5, b"ab").unwrap();
    assert_eq!(recv.read().unwrap(), "abcde");
    recv.receive_part(now, 7, 0, 5, b"ab").unwrap();
    assert_eq!(recv.read(), None);
    assert_eq!(recv.bytes, 0);
    recv.finish(8).unwrap();
    assert!(!recv.is_complete(), "messages 0 to 6 are still due");
    recv.forward(8);
    assert!(recv.is_finished());
}

#[test]
fn hostile_sequences_keep_within_the_limit() {
    let mut recv = PacketsRecv::new(DeliveryOrder::InOrder, None, 50_000);
    for i in 0..20_000_u64 {
        recv.receive(Instant::ZERO, 1 + i * 2, Bytes::from(vec![0; 500]));
        recv.receive_part(Instant::ZERO, 5 + i * 3, 0, 60_000, b"x")
            .ok();
        assert!(recv.bytes <= 50_000 + 60_064, "{} at {i}", recv.bytes);
        assert!(recv.seen.len() <= MAX_SEEN_RANGES + 1);
    }
}

/// A receiver without order, or in order, that has room for one part of a message at a time.
fn narrow(order: DeliveryOrder) -> PacketsRecv {
    PacketsRecv::new(order, None, 100 + PARTIAL_COST)
}

fn part(recv: &mut PacketsRecv, sequence: u64) {
    let part = recv.receive_part(Instant::ZERO, sequence, 0, 100, &[0; 50]);
    part.expect("it agrees with what came before");
}

#[test]
fn what_was_dropped_without_order_makes_nothing_that_came_a_gap() {
    let mut recv = narrow(DeliveryOrder::AsTheyCome);
    for sequence in 0..3 {
        recv.receive(Instant::ZERO, sequence, bytes(0));
        recv.read();
    }
    recv.forward(3);
    part(&mut recv, 3);
    part(&mut recv, 4);
    recv.receive(Instant::ZERO, 1, bytes(0));
    let counts = Counts {
        delivered: 3,
        dropped: 1,
        duplicates: 1,
        ..Counts::default()
    };
    assert_eq!(recv.counts(), counts);
}

#[test]
fn what_was_dropped_is_not_skipped_as_well() {
    let mut recv = narrow(DeliveryOrder::InOrder);
    part(&mut recv, 1);
    part(&mut recv, 2);
    recv.forward(4);
    let counts = recv.counts();
    assert_eq!((counts.dropped, counts.skipped), (1, 3), "0, 2 and 3");
}

#[test]
fn what_comes_late_amid_what_was_given_up_is_remembered_within_bounds() {
    let mut recv = PacketsRecv::new(DeliveryOrder::InOrder, None, 10_000);
    recv.forward(1 << 40);
    for n in 0..1_000 {
        recv.receive(Instant::ZERO, 2 * n + 1, Bytes::new());
    }
    assert!(recv.given_up.len() <= MAX_GIVEN_UP);
}

#[test]
fn a_message_in_one_byte_pieces_is_refused() {
    let mut recv = PacketsRecv::new(DeliveryOrder::InOrder, None, 8 << 20);
    let mut piece = |n: u64| recv.receive_part(Instant::ZERO, 0, 2 * n, 65_535, b"x");
    let refused = (0..32_767).find(|n| piece(*n).is_err());
    assert_eq!(refused, Some(65_535 / 256 + 64));
}

#[test]
fn when_nothing_more_will_come_nothing_waits() {
    let mut recv = PacketsRecv::new(DeliveryOrder::InOrder, None, 10_000);
    for sequence in [1, 3, 4] {
        recv.receive(Instant::ZERO, sequence, bytes(sequence as u8));
    }
    assert_eq!(read_all(&mut recv), []);
    recv.let_go();
    assert_eq!(read_all(&mut recv), [1, 3, 4]);
}
