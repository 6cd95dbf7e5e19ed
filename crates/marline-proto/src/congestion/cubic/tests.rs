use super::*;
use crate::congestion::tests::{Bench, Link, MTU, ack, loss};

const RTT: Duration = Duration::from_millis(100);

fn at_start() -> Cubic {
    Cubic::new(MTU, Guard::PlusPlus(HyStart::default()))
}

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// In congestion avoidance after a loss at `cwnd` datagrams.
fn after_loss_at(cwnd: f64) -> Cubic {
    let mut cubic = at_start();
    cubic.curve.cwnd = cwnd;
    cubic.on_loss(ms(1), &loss(MTU, ms(0)));
    cubic
}

/// A window is sent at `sent` and acknowledged a round trip later, in one piece.
fn full_round(cubic: &mut Cubic, sent: Instant) {
    let window = cubic.window();
    cubic.on_sent(sent, MTU, window, false);
    cubic.on_ack(sent + RTT, &ack(window, sent, RTT));
}

fn assert_near(value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value - expected).abs() <= tolerance,
        "{value} is not within {tolerance} of {expected}"
    );
}

#[test]
fn loss_leaves_seven_tenths() {
    let cubic = after_loss_at(100.0);
    assert_eq!(cubic.window(), 70 * MTU);
    assert_eq!(cubic.view().ssthresh, Some(70 * MTU));
    assert_eq!(cubic.view().phase, Phase::Recovery);
    assert_eq!(cubic.curve.w_max, Some(100.0));
}

#[test]
fn curve_has_the_values_of_the_formula() {
    // W_max 100, cwnd_epoch 70: K = cbrt(30 / 0.4) = cbrt(75) = 4.2172 s.
    let epoch = Epoch::start(ms(0), 70.0, Some(100.0));
    assert_near(epoch.k, 4.2172, 1e-4);
    assert_near(epoch.w_cubic(Duration::ZERO), 70.0, 1e-9);
    // 0.4 · (-2.2172)³ + 100 = 95.640; 0.4 · 0.7828³ + 100 = 100.192; 0.4 · 3.7828³ + 100.
    assert_near(epoch.w_cubic(Duration::from_secs(2)), 95.640, 1e-3);
    assert_near(epoch.w_cubic(Duration::from_secs(5)), 100.192, 1e-3);
    assert_near(epoch.w_cubic(Duration::from_secs(8)), 121.653, 1e-2);
}

#[test]
fn window_follows_the_curve() {
    let mut cubic = after_loss_at(100.0);
    // At 200 ms, Reno's estimate stays below the curve. The epoch begins with the first
    // acknowledgement after recovery.
    let rtt = RTT * 2;
    let mut sent = ms(10);
    // RFC 9438 aims one round trip ahead, so the window lies between W(t) and W(t + RTT):
    // 0.4 · (-2.0172)³ + 100 = 96.717, 0.4 · 0.9828³ + 100 = 100.380, 0.4 · 3.9828³ + 100.
    let expected = [
        (10, 95.640, 96.717),
        (25, 100.192, 100.380),
        (40, 121.653, 125.271),
    ];
    for round in 0..=40_u32 {
        let window = cubic.window();
        cubic.on_sent(sent, MTU, window, false);
        sent += rtt;
        cubic.on_ack(sent, &ack(window, sent - rtt, rtt));
        if let Some((_, low, high)) = expected.iter().find(|(n, _, _)| *n == round) {
            let cwnd = cubic.curve.cwnd;
            assert!((low - 0.05..high + 0.05).contains(&cwnd), "{round}: {cwnd}");
        }
    }
}

#[test]
fn short_round_trips_grow_as_reno_does() {
    // At 10 ms, the curve from 70 to 100 datagrams takes 4.2 s, Reno with α = 0.5294 only
    // 30 / 0.5294 = 57 round trips.
    let mut cubic = after_loss_at(100.0);
    let rtt = Duration::from_millis(10);
    let mut sent = ms(10);
    let round = |cubic: &mut Cubic, sent| {
        let window = cubic.window();
        cubic.on_sent(sent, MTU, window, false);
        cubic.on_ack(sent + rtt, &ack(window, sent, rtt));
    };
    for _ in 0..56 {
        round(&mut cubic, sent);
        sent += rtt;
    }
    // Each window acknowledged adds α; the first acknowledgements follow the curve, which rises
    // faster (1.5 datagrams in the first 70 ms), until Reno's estimate overtakes it.
    assert_near(cubic.curve.cwnd, 70.0 + 56.0 * 0.5294, 1.0);
    // From cwnd_prior on, α is 1: ten round trips add ten datagrams.
    for _ in 0..4 {
        round(&mut cubic, sent);
        sent += rtt;
    }
    let before = cubic.curve.epoch.unwrap().w_est;
    assert!(before > 100.0, "{before}");
    for _ in 0..10 {
        round(&mut cubic, sent);
        sent += rtt;
    }
    assert_near(cubic.curve.epoch.unwrap().w_est - before, 10.0, 0.05);
}

#[test]
fn fast_convergence_gives_up_more() {
    let mut cubic = after_loss_at(100.0);
    cubic.curve.cwnd = 80.0;
    cubic.on_loss(ms(200), &loss(MTU, ms(150)));
    // Below the old maximum: W_max = 80 · (1 + 0.7) / 2 = 68.
    assert_near(cubic.curve.w_max.unwrap(), 68.0, 1e-9);
    assert_near(cubic.curve.cwnd, 56.0, 1e-9);
    cubic.curve.cwnd = 90.0;
    cubic.on_loss(ms(400), &loss(MTU, ms(350)));
    assert_eq!(cubic.curve.w_max, Some(90.0));
}

#[test]
fn spurious_loss_is_undone_when_all_of_it_arrived() {
    let mut cubic = after_loss_at(100.0);
    cubic.on_loss(ms(2), &loss(2 * MTU, ms(1)));
    cubic.on_spurious_loss(ms(20), MTU, ms(0));
    cubic.on_spurious_loss(ms(21), MTU, ms(1));
    assert_eq!(cubic.window(), 70 * MTU);
    // Not of this episode.
    cubic.on_spurious_loss(ms(22), MTU, ms(5));
    assert_eq!(cubic.window(), 70 * MTU);
    cubic.on_spurious_loss(ms(23), MTU, ms(1));
    assert_eq!(cubic.window(), 100 * MTU);
    assert_eq!(cubic.view().ssthresh, None);
    assert_eq!(cubic.curve.w_max, None);
}

#[test]
fn pauses_do_not_move_along_the_curve() {
    let mut cubic = after_loss_at(100.0);
    full_round(&mut cubic, ms(10));
    full_round(&mut cubic, ms(110));
    let before = cubic.curve.cwnd;
    // Ten idle seconds, then a round trip; the curve would have reached 176 datagrams.
    cubic.on_sent(ms(10_210), MTU, MTU, false);
    full_round(&mut cubic, ms(10_210));
    // Two round trips along: W(0.3 s) = 0.4 · (-3.9172)³ + 100 = 75.96 is the target.
    assert!(cubic.curve.cwnd > before);
    assert!(cubic.curve.cwnd < 76.0, "{}", cubic.curve.cwnd);
    // An application that does not fill the window.
    let before = cubic.curve.cwnd;
    cubic.on_sent(ms(10_400), MTU, MTU * 10, true);
    cubic.on_ack(ms(20_500), &ack(MTU, ms(10_400), RTT));
    assert_eq!(cubic.curve.cwnd, before);
    assert_eq!(
        cubic.curve.epoch.unwrap().elapsed,
        Duration::from_millis(200)
    );
}

#[test]
fn persistent_congestion_leaves_two_datagrams() {
    let mut cubic = at_start();
    cubic.curve.cwnd = 100.0;
    let lost = Loss {
        persistent: true,
        ..loss(100 * MTU, ms(60))
    };
    cubic.on_loss(ms(500), &lost);
    assert_eq!(cubic.window(), 2 * MTU);
    assert_eq!(cubic.view().phase, Phase::SlowStart);
    assert_eq!(cubic.view().ssthresh, Some(70 * MTU));
    // RFC 9406 §4.2: HyStart++ serves the first slow start only.
    assert!(cubic.hystart.is_none());
}

#[test]
fn mtu_keeps_the_window_in_bytes() {
    let mut cubic = after_loss_at(100.0);
    cubic.on_mtu(1_000);
    assert_eq!(cubic.window(), 70 * MTU);
    let mut fresh = at_start();
    fresh.on_mtu(1_000);
    assert_eq!(fresh.window(), 10_000);
}

#[test]
fn fills_a_link_with_a_queue_of_one_product() {
    let mut bench = Bench::new(NAME, Link::STANDARD);
    bench.run(ms(60_000));
    let share = bench.utilisation(ms(5_000), ms(60_000));
    assert!(share >= 0.95, "{share}");
}

#[test]
fn first_slow_start_ends_without_loss() {
    let link = Link {
        queue: 2_000_000,
        ..Link::STANDARD
    };
    let mut bench = Bench::new(NAME, link);
    bench.run(ms(5_000));
    let end = bench
        .trace
        .iter()
        .find(|point| point.view.phase != Phase::SlowStart)
        .unwrap();
    assert_eq!(end.view.phase, Phase::Avoidance);
    // The round that doubles from one product to two builds the queue, and its end shows it, when
    // the window has doubled again at most; then five rounds grow by a quarter each:
    // 400 000 · 1.25⁵ = 1 220 000 of the 2 100 000 bytes that link and queue hold. Without
    // HyStart++, slow start would go on until they are full.
    assert!((100_000..=1_220_000).contains(&end.window), "{end:?}");
}

#[test]
fn linux_leaves_the_first_slow_start_sooner() {
    let link = Link {
        queue: 2_000_000,
        ..Link::STANDARD
    };
    let [plus, linux] = [NAME, ACK_TRAIN].map(|name| {
        let mut bench = Bench::new(name, link);
        bench.run(ms(5_000));
        let point = bench
            .trace
            .iter()
            .find(|p| p.view.phase != Phase::SlowStart);
        *point.unwrap()
    });
    assert_eq!(linux.view.phase, Phase::Avoidance);
    // What is sent while the window grows from one product of 100 000 bytes to two builds the
    // queue. Its acknowledgements let the window grow on by 2500 bytes a ms, for the 41 ms that a
    // train may last, and not for five rounds more.
    assert!((100_000..=302_500).contains(&linux.window), "{linux:?}");
    assert!(linux.window < plus.window, "{linux:?} {plus:?}");
}
