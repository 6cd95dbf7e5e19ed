use smallvec::SmallVec;

use super::*;
use crate::congestion::{Params, registry};
use crate::law::Arrival;

/// A path of 10 ms each way that is in slow start.
fn new_path() -> Path {
    let congestion = Params {
        mtu: 1_200,
        rate: None,
        paced: true,
        seed: 1,
    };
    let entry = registry::find("new-reno").expect("it is there");
    let params = PathParams {
        rtt: Some(Duration::from_millis(20)),
        ..PathParams::default()
    };
    let controller = (entry.new)(Instant::ZERO, &congestion);
    Path::new(Instant::ZERO, PathId(0), &params, controller)
}

/// Such a one on which a packet left every 2 ms from the beginning on, 40 in all, and 30 have been
/// acknowledged.
fn path() -> Path {
    let mut path = new_path();
    for n in 0..40 {
        let now = Instant::from_millis(2 * n);
        let delivery = path.sampler.on_sent(now, path.ledger.in_flight());
        let packet = SentPacket::new(now, 100, true, delivery, SmallVec::new());
        path.on_sent(now, packet, true);
    }
    let now = Instant::from_millis(79);
    for packet in path.ledger.on_ack(now, &[0..=29]).expect("they were sent") {
        let arrival = Arrival {
            number: packet.number,
            sent: packet.sent,
            size: packet.size,
            at_us: packet.sent.as_micros() + 10_000,
            beyond: 0.0,
            left: packet.left,
            own_way: true,
        };
        path.on_arrival(now, &arrival);
    }
    path
}

#[test]
fn what_should_have_arrived_is_missing_and_a_burst_goes_on() {
    let mut path = path();
    // The next left at 60 ms, and 2 ms later each.
    let margin = MISSING + path.rate().time_for(u64::from(path.symbol())) / 2;
    let due_us = |number: u64| (2 * number + 10) * 1_000 + margin.as_micros() as u64;
    assert_eq!(path.missing(30, due_us(30) - 100), 0);
    assert_eq!(path.missing(30, due_us(30) + 100), 1);
    // Two in a row are a burst, which takes two more that cannot be missed yet.
    assert_eq!(path.missing(30, due_us(31) + 100), 4);
    assert_eq!(path.missing(30, due_us(33) + 100), 6);
    // No more than have left, and none twice.
    assert_eq!(path.missing(30, due_us(39) + 100), 10);
    path.ledger.rescue(30, 4, |_| true);
    assert_eq!(path.missing(30, due_us(31) + 100), 0);
    assert_eq!(path.missing(30, due_us(32) + 100), 1);
}

#[test]
fn a_window_that_nobody_filled_promises_no_more_than_is_asked() {
    let mut path = path();
    let now = Instant::from_millis(80);
    let promised = path.rate();
    assert!(promised > Rate::from_mbps(4), "{promised:?}");
    path.ask(now, Rate::from_mbps(3));
    assert_eq!(path.rate(), Rate::from_mbps(3));
    path.ask(now, Rate::from_mbps(1_000));
    assert_eq!(path.rate(), promised);
    // 100 bytes in 2 ms are 0.4 Mb/s.
    path.measured_rate = 4e5;
    path.ask(now, Rate::ZERO);
    assert_eq!(path.rate(), Rate::from_kbps(500));
    path.ask_no_more();
    assert_eq!(path.rate(), promised);
    path.was_filled = true;
    path.ask(now, Rate::from_mbps(3));
    assert_eq!(path.rate(), Rate::from_kbps(400), "its capacity is known");
}

/// Ten packets leave at once, as many as may, and are acknowledged after 20 ms.
fn fill_window(path: &mut Path, at: Instant) {
    let first = path.ledger.next_number();
    for _ in 0..10 {
        let delivery = path.sampler.on_sent(at, path.ledger.in_flight());
        let packet = SentPacket::new(at, 1_200, true, delivery, SmallVec::new());
        path.on_sent(at, packet, false);
    }
    let prior_in_flight = path.ledger.in_flight();
    let trip = Duration::from_millis(20);
    let now = at + trip;
    let acked = path.ledger.on_ack(now, &[first..=first + 9]);
    let timing = Timing {
        rtt: Some(trip),
        heard: now,
    };
    let acked = acked.expect("they were sent");
    path.on_settled(now, &acked, &[], timing, prior_in_flight, Duration::ZERO);
}

#[test]
fn a_window_that_is_sought_for_a_stream_tells_no_capacity() {
    let [zero, later] = [0, 20].map(Instant::from_millis);
    let mut path = new_path();
    path.ask(zero, Rate::from_mbps(20));
    fill_window(&mut path, zero);
    assert!(!path.was_filled());
    path.ask_no_more();
    fill_window(&mut path, later);
    assert!(path.was_filled());

    // It is found when something was lost.
    let mut path = new_path();
    path.ask(zero, Rate::from_mbps(20));
    let loss = congestion::Loss {
        bytes: 1_200,
        sent: zero,
        in_flight: 0,
        persistent: false,
    };
    path.controller.on_loss(zero, &loss);
    path.ask(zero, Rate::from_mbps(20));
    fill_window(&mut path, later);
    assert!(path.was_filled());
}
