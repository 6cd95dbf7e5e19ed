use marline_base::Duration;

use super::*;
use crate::congestion::tests::{Bench, Link, MTU, ack, controller, loss};

const RTT: Duration = Duration::from_millis(40);

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// One packet is sent with the window full, and `bytes` sent then are acknowledged.
fn full_round(reno: &mut dyn Controller, sent: Instant, bytes: u64) {
    reno.on_sent(sent, MTU, reno.window(), false);
    reno.on_ack(sent + RTT, &ack(bytes, sent, RTT));
}

#[test]
fn slow_start_grows_by_what_is_acknowledged() {
    let mut reno = controller(NAME);
    assert_eq!(reno.window(), 10 * MTU);
    full_round(&mut *reno, ms(0), 10 * MTU);
    assert_eq!(reno.window(), 20 * MTU);
    assert_eq!(reno.view().phase, Phase::SlowStart);
    assert_eq!(reno.view().ssthresh, None);
}

#[test]
fn loss_halves_once_a_round_trip() {
    let mut reno = controller(NAME);
    full_round(&mut *reno, ms(0), 10 * MTU);
    reno.on_loss(ms(100), &loss(MTU, ms(60)));
    assert_eq!(reno.window(), 10 * MTU);
    assert_eq!(reno.view().ssthresh, Some(10 * MTU));
    assert_eq!(reno.view().phase, Phase::Recovery);
    // The rest of the same flight: neither further losses nor acknowledgements count.
    reno.on_loss(ms(120), &loss(MTU, ms(100)));
    reno.on_ack(ms(125), &ack(10 * MTU, ms(99), RTT));
    assert_eq!(reno.window(), 10 * MTU);
    // A packet of the next flight ends recovery; its loss halves again.
    full_round(&mut *reno, ms(101), MTU);
    assert_eq!(reno.view().phase, Phase::Avoidance);
    reno.on_loss(ms(150), &loss(MTU, ms(102)));
    assert_eq!(reno.window(), 5 * MTU);
}

#[test]
fn a_spurious_loss_is_undone_when_all_of_it_arrived() {
    let mut reno = controller(NAME);
    full_round(&mut *reno, ms(0), 10 * MTU);
    reno.on_loss(ms(100), &loss(2 * MTU, ms(60)));
    reno.on_loss(ms(110), &loss(MTU, ms(90)));
    reno.on_spurious_loss(ms(120), 2 * MTU, ms(60));
    assert_eq!(reno.window(), 10 * MTU, "one is still missing");
    // Not of this episode.
    reno.on_spurious_loss(ms(121), MTU, ms(101));
    assert_eq!(reno.window(), 10 * MTU);
    reno.on_spurious_loss(ms(122), MTU, ms(90));
    assert_eq!(reno.window(), 20 * MTU);
    assert_eq!(reno.view().ssthresh, None);
    assert_eq!(reno.view().phase, Phase::SlowStart);
    // After persistent congestion there is nothing to return to.
    let persistent = Loss {
        persistent: true,
        ..loss(MTU, ms(130))
    };
    reno.on_loss(ms(140), &persistent);
    reno.on_spurious_loss(ms(150), MTU, ms(130));
    assert_eq!(reno.window(), 2 * MTU);
}

#[test]
fn avoidance_grows_by_one_datagram_a_window() {
    let mut reno = controller(NAME);
    reno.on_loss(ms(10), &loss(MTU, ms(0)));
    assert_eq!(reno.window(), 5 * MTU);
    for (i, expected) in [5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 7].into_iter().enumerate() {
        full_round(&mut *reno, ms(20 + i as u64), MTU);
        assert_eq!(reno.window(), expected * MTU, "acknowledgement {i}");
    }
}

#[test]
fn avoidance_keeps_the_remainder() {
    let mut reno = controller(NAME);
    reno.on_loss(ms(10), &loss(MTU, ms(0)));
    // Credit in datagrams: 3, 6 - 5, 4, 7 - 6, 4, 7 - 7.
    for (i, expected) in [5, 6, 6, 7, 7, 8].into_iter().enumerate() {
        full_round(&mut *reno, ms(20 + i as u64), 3 * MTU);
        assert_eq!(reno.window(), expected * MTU, "acknowledgement {i}");
    }
}

#[test]
fn unused_window_does_not_grow() {
    let mut reno = controller(NAME);
    reno.on_sent(ms(0), MTU, MTU, true);
    reno.on_ack(ms(40), &ack(10 * MTU, ms(0), RTT));
    assert_eq!(reno.window(), 10 * MTU);
    // Held back once, at 50 ms: packets sent up to then count, later ones do not.
    reno.on_sent(ms(50), MTU, 10 * MTU, false);
    reno.on_sent(ms(51), MTU, 10 * MTU, true);
    reno.on_ack(ms(90), &ack(MTU, ms(50), RTT));
    assert_eq!(reno.window(), 11 * MTU);
    reno.on_ack(ms(91), &ack(MTU, ms(51), RTT));
    assert_eq!(reno.window(), 11 * MTU);
    // Held back by the pacer with less than half of the window in flight.
    reno.on_sent(ms(100), MTU, 5 * MTU, false);
    let mut little = ack(MTU, ms(100), RTT);
    little.prior_in_flight = 5 * MTU;
    reno.on_ack(ms(140), &little);
    assert_eq!(reno.window(), 11 * MTU);
}

#[test]
fn persistent_congestion_leaves_two_datagrams() {
    let mut reno = controller(NAME);
    full_round(&mut *reno, ms(0), 10 * MTU);
    let lost = Loss {
        persistent: true,
        ..loss(20 * MTU, ms(60))
    };
    reno.on_loss(ms(500), &lost);
    assert_eq!(reno.window(), 2 * MTU);
    assert_eq!(reno.view().ssthresh, Some(10 * MTU));
    // Slow start again, up to the threshold.
    assert_eq!(reno.view().phase, Phase::SlowStart);
    full_round(&mut *reno, ms(510), 2 * MTU);
    assert_eq!(reno.window(), 4 * MTU);
}

#[test]
fn mtu_changes_the_initial_window_only_while_it_is_untouched() {
    let mut reno = controller(NAME);
    reno.on_mtu(1_000);
    assert_eq!(reno.window(), 10_000);
    reno.on_loss(ms(10), &loss(1_000, ms(0)));
    assert_eq!(reno.window(), 5_000);
    reno.on_mtu(1_400);
    assert_eq!(reno.window(), 5_000);
    reno.on_mtu(9_000);
    assert_eq!(reno.window(), 18_000);
}

#[test]
fn fills_a_link_with_a_queue_of_one_product() {
    let mut bench = Bench::new(NAME, Link::STANDARD);
    bench.run(ms(60_000));
    let share = bench.utilisation(ms(5_000), ms(60_000));
    assert!(share >= 0.95, "{share}");
}

#[test]
fn an_application_below_the_link_rate_leaves_the_window_alone() {
    let mut bench = Bench::new(
        NAME,
        Link {
            offered: Some(Rate::from_mbps(1)),
            ..Link::STANDARD
        },
    );
    bench.run(ms(20_000));
    // 1 Mb/s · 40 ms are four packets; the initial window holds ten.
    assert_eq!(bench.controller.window(), 10 * MTU);
}
