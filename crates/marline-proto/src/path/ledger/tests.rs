use super::*;
use crate::path::delivery::DeliverySnapshot;

fn send(ledger: &mut Ledger, ms: u64) {
    let delivery = DeliverySnapshot {
        delivered: 0,
        delivered_at: Instant::ZERO,
        first_sent_at: Instant::ZERO,
        app_limited: false,
    };
    let now = Instant::from_millis(ms);
    ledger.on_sent(SentPacket::new(now, 1_200, true, delivery, SmallVec::new()));
}

#[test]
fn a_packet_that_came_very_late_teaches_to_wait_as_long() {
    let mut ledger = Ledger::default();
    let rtt = Rtt::new(Some(Duration::from_millis(100)));
    (0..=5).for_each(|ms| send(&mut ledger, ms));
    let at = Instant::from_millis;
    ledger.on_ack(at(105), &[1..=5]).unwrap();
    assert_eq!(ledger.detect_lost(at(105), &rtt).len(), 1, "by count");
    let late = ledger.on_ack(at(290), &[0..=0]).unwrap();
    assert!(late[0].spurious);
    // One eighth more, which is all that RFC 8985 would add for it, were 125 ms.
    send(&mut ledger, 400);
    send(&mut ledger, 401);
    ledger.on_ack(at(500), &[7..=7]).unwrap();
    assert_eq!(ledger.detect_lost(at(689), &rtt).len(), 0);
    assert_eq!(ledger.detect_lost(at(690), &rtt).len(), 1);
}

/// Sends packets until this number is known to have arrived in order.
fn orderly(ledger: &mut Ledger, count: u64) {
    let first = ledger.next_number();
    (first..first + count).for_each(|ms| send(ledger, ms));
    let all = first..=first + count - 1;
    let settled = ledger.on_ack(Instant::from_millis(first + count), &[all]);
    assert_eq!(settled.unwrap().len() as u64, count);
}

#[test]
fn a_path_that_kept_order_is_believed_at_once() {
    let rtt = Rtt::new(Some(Duration::from_secs(1)));
    for (before, lost) in [(ORDERLY - 2, 0), (ORDERLY - 1, 1)] {
        let mut ledger = Ledger::default();
        orderly(&mut ledger, before);
        send(&mut ledger, 1_000);
        send(&mut ledger, 1_001);
        let at = Instant::from_millis(1_100);
        ledger.on_ack(at, &[before + 1..=before + 1]).unwrap();
        assert_eq!(ledger.detect_lost(at, &rtt).len(), lost, "after {before}");
    }
}

#[test]
fn one_that_does_so_no_longer_gets_three_packets_time_again() {
    let mut ledger = Ledger::default();
    let rtt = Rtt::new(Some(Duration::from_secs(1)));
    orderly(&mut ledger, ORDERLY);
    let n = ORDERLY;
    let at = Instant::from_millis;
    (1_000..1_008).for_each(|ms| send(&mut ledger, ms));
    ledger.on_ack(at(1_100), &[n + 2..=n + 2]).unwrap();
    assert_eq!(ledger.detect_lost(at(1_100), &rtt).len(), 2);
    // Both come after all, in two acknowledgements; neither widens the time threshold.
    for late in [n, n + 1] {
        let settled = ledger.on_ack(at(1_110), &[late..=late]).unwrap();
        assert!(settled[0].spurious);
        assert!(ledger.reordering.is_none());
    }
    ledger.on_ack(at(1_120), &[n + 5..=n + 5]).unwrap();
    assert_eq!(
        ledger.detect_lost(at(1_120), &rtt).len(),
        0,
        "two are missing"
    );
    ledger.on_ack(at(1_130), &[n + 6..=n + 6]).unwrap();
    assert_eq!(ledger.detect_lost(at(1_130), &rtt).len(), 1, "by three");
    // What is too late now was sent after the suspicion only if it left since.
    assert!(ledger.on_ack(at(1_140), &[n + 3..=n + 3]).unwrap()[0].spurious);
    assert!(ledger.reordering.is_none());
    send(&mut ledger, 1_200);
    (1_201..1_206).for_each(|ms| send(&mut ledger, ms));
    ledger.on_ack(at(1_300), &[n + 12..=n + 12]).unwrap();
    assert!(!ledger.detect_lost(at(1_300), &rtt).is_empty());
    assert!(ledger.on_ack(at(1_310), &[n + 8..=n + 8]).unwrap()[0].spurious);
    assert!(ledger.reordering.is_some());
}

/// Every second packet takes 30 ms and the others 140, so that round trips, which are those of the
/// packets that come first, say 30 ms: that all of them arrive is learnt all the same.
#[test]
fn packets_that_are_always_overtaken_are_not_lost_for_ever() {
    let mut ledger = Ledger::default();
    let rtt = Rtt::new(Some(Duration::from_millis(30)));
    let mut arrivals = alloc::collections::BTreeSet::new();
    let (mut lost, mut spurious) = ([0; 2], 0);
    for ms in 0..4_000 {
        let now = Instant::from_millis(ms);
        if ms % 5 == 0 {
            let number = ledger.next_number();
            send(&mut ledger, ms);
            let takes = if number % 2 == 0 { 30 } else { 140 };
            arrivals.insert((ms + takes, number));
        }
        while let Some(&(at, number)) = arrivals.first()
            && at == ms
        {
            arrivals.pop_first();
            // To acknowledge what was forgotten changes nothing.
            let settled = ledger.on_ack(now, &[number..=number]).unwrap();
            spurious += settled.iter().filter(|p| p.spurious).count();
        }
        lost[usize::from(ms >= 1_000)] += ledger.detect_lost(now, &rtt).len();
    }
    assert!((1..40).contains(&lost[0]), "{lost:?}");
    assert_eq!(lost[1], 0);
    assert_eq!(spurious, lost[0], "every loss was a mistake");
}

#[test]
fn a_range_leaves_no_gap_that_begins_with_the_oldest_open_packet_and_ends_with_one_that_was_sent() {
    let mut ledger = Ledger::default();
    (0..10).for_each(|ms| send(&mut ledger, ms));
    ledger.on_ack(Instant::from_millis(20), &[0..=3]).unwrap();
    for (range, gapless) in [
        (4..=9, true),
        (0..=6, true),
        (5..=9, false),
        (4..=10, false),
        (0..=u64::MAX, false),
    ] {
        assert_eq!(ledger.leaves_no_gap(&range), gapless, "{range:?}");
    }
}
