use alloc::vec::Vec;

use marline_base::Duration;

use super::startup::HIGH_GAIN;
use super::*;
use crate::congestion::new_reno;
use crate::congestion::tests::{Bench, Link, MTU, Point, ack, controller, loss};

mod gentle;

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

fn run(name: &str, link: Link, millis: u64) -> Bench {
    let mut bench = Bench::new(name, link);
    bench.run(ms(millis));
    bench
}

/// The phases in order, each with the time of its first acknowledgement.
fn phases(bench: &Bench) -> Vec<(Instant, Phase)> {
    let mut phases: Vec<(Instant, Phase)> = Vec::new();
    for point in &bench.trace {
        if phases
            .last()
            .is_none_or(|&(_, phase)| phase != point.view.phase)
        {
            phases.push((point.now, point.view.phase));
        }
    }
    phases
}

#[test]
fn full_pipe_ends_startup_and_the_queue_drains() {
    let bench = run(
        NAME,
        Link {
            queue: 1_000_000,
            ..Link::STANDARD
        },
        2_000,
    );
    let phases = phases(&bench);
    let names: Vec<Phase> = phases.iter().map(|&(_, phase)| phase).collect();
    assert_eq!(names, [Phase::Startup, Phase::Drain, Phase::ProbeBw]);
    // Three round trips of 40 ms double 10 packets to the 80 of the pipe, and the next one confirms
    // it. Three more show no growth, each stretched by the queue, to 2.89 times 40 ms at most.
    let (drain, _) = phases[1];
    assert!((ms(280)..ms(680)).contains(&drain), "{drain:?}");
    let queue_at = |time| bench.trace.iter().find(|p| p.now >= time).unwrap().rtt;
    assert!(queue_at(drain) > Duration::from_millis(80));
    let (cruise, _) = phases[2];
    let settled = queue_at(cruise + Duration::from_millis(200));
    assert!(settled < Duration::from_millis(52), "{settled:?}");
}

#[test]
fn startup_doubles_every_round_trip_and_is_paced() {
    let bench = run(
        NAME,
        Link {
            rate: Rate::from_mbps(1_000),
            ..Link::STANDARD
        },
        240,
    );
    let window_at = |millis| {
        let before = bench.trace.iter().take_while(|p| p.now < ms(millis));
        before.last().unwrap().window
    };
    // The initial window counts in full, however low the first samples of the rate are.
    assert_eq!(window_at(79), 20 * MTU);
    // A paced flight spreads over most of a round trip, so its last acknowledgements come somewhat
    // after the 40 ms.
    for round in 1..4 {
        let ratio = window_at(40 * round + 79) as f64 / window_at(40 * round + 39) as f64;
        assert!((1.7..2.1).contains(&ratio), "round {round}: {ratio}");
    }
    assert_eq!(bench.controller.view().window_gain, HIGH_GAIN);
    assert_eq!(bench.controller.view().pacing_gain, HIGH_GAIN);
    assert!((HIGH_GAIN - 2.885).abs() < 0.001);
}

#[test]
fn model_finds_the_link_and_the_window_is_two_products() {
    let bench = run(NAME, Link::STANDARD, 8_000);
    let view = bench.controller.view();
    let bandwidth = view.bandwidth.unwrap().as_mbps_f64();
    assert!((19.9..20.1).contains(&bandwidth), "{bandwidth}");
    // 40 ms and the 0.5 ms that a packet takes at 20 Mb/s.
    assert_eq!(view.min_rtt, Some(Duration::from_micros(40_500)));
    // 2 · 20 Mb/s · 40.5 ms = 202 500 bytes, and three quanta of two packets (up to 24 Mb/s; one
    // millisecond's worth, as much, above).
    let window = bench.controller.window();
    assert!((209_000..=211_000).contains(&window), "{window}");
}

#[test]
fn probe_bw_cycles_through_its_gains() {
    let bench = run(NAME, Link::STANDARD, 9_000);
    let mut gains: Vec<(Instant, f64)> = Vec::new();
    for point in bench.between(ms(2_000), ms(9_000)) {
        assert_eq!(point.view.phase, Phase::ProbeBw);
        assert_eq!(point.view.window_gain, 2.0);
        if gains
            .last()
            .is_none_or(|&(_, gain)| gain != point.view.pacing_gain)
        {
            gains.push((point.now, point.view.pacing_gain));
        }
    }
    // The first gain seen has begun earlier.
    gains.remove(0);
    let first = gains.iter().position(|&(_, gain)| gain == 1.25).unwrap();
    let cycles: Vec<_> = gains[first..].chunks_exact(3).collect();
    assert!(cycles.len() >= 15, "{}", cycles.len());
    for cycle in cycles.windows(2) {
        let [(up, a), (down, b), (cruise, c)] = cycle[0] else {
            panic!("chunks of three");
        };
        assert_eq!([*a, *b, *c], [1.25, 0.75, 1.0]);
        // Up for at least a round trip, down for at most one, six round trips of cruise.
        let next = cycle[1][0].0;
        let millis = |later: Instant, earlier| later.since(earlier).as_secs_f64() * 1e3;
        assert!((40.0..100.0).contains(&millis(*down, *up)), "{gains:?}");
        assert!((0.0..45.0).contains(&millis(*cruise, *down)));
        assert!((240.0..270.0).contains(&millis(next, *cruise)));
    }
}

#[test]
fn probes_the_round_trip_time_every_ten_seconds() {
    // The route grows longer after one second, so the first minimum cannot be confirmed.
    let mut bench = Bench::new(NAME, Link::STANDARD);
    bench.run(ms(1_000));
    bench.set_link(Link {
        rtt: Duration::from_millis(60),
        ..Link::STANDARD
    });
    bench.run(ms(34_000));
    let probes: Vec<Instant> = phases(&bench)
        .into_iter()
        .filter(|&(_, phase)| phase == Phase::ProbeRtt)
        .map(|(at, _)| at)
        .collect();
    assert!(probes.len() >= 3, "{probes:?}");
    for pair in probes.windows(2) {
        let apart = pair[1].since(pair[0]).as_secs_f64();
        assert!((10.0..11.0).contains(&apart), "{apart}");
    }
    let probe: Vec<&Point> = bench
        .trace
        .iter()
        .filter(|p| p.view.phase == Phase::ProbeRtt && p.now < probes[1])
        .collect();
    assert!(probe.iter().all(|p| p.window <= 4 * MTU));
    assert!(probe.iter().all(|p| p.view.pacing_gain == 1.0));
    // Once the flight has shrunk to the window, that lasts for 200 ms and up to a round trip.
    let shrunk = probe.iter().find(|p| p.in_flight <= 4 * MTU).unwrap();
    let after = bench.between(
        probe.last().unwrap().now + Duration::from_nanos(1),
        probes[1],
    );
    let after = after.min_by_key(|p| p.now).unwrap();
    let lasted = after.now.since(shrunk.now);
    assert!((200..270).contains(&lasted.as_millis()), "{lasted:?}");
    // The window comes back at once: two products of 101 000 bytes.
    assert!(after.window > 195_000, "{}", after.window);
    // It measured the new minimum, and the bandwidth of four packets a round trip is forgotten.
    let view = bench.controller.view();
    assert_eq!(view.min_rtt, Some(Duration::from_micros(60_500)));
    assert!(view.bandwidth.unwrap() > Rate::from_mbps(19));
    let share = bench.utilisation(ms(12_000), ms(34_000));
    assert!(share >= 0.95, "{share}");
}

#[test]
fn rates_of_the_empty_window_do_not_enter_the_model() {
    // At 5 ms, a probe of 200 ms lasts for more rounds than the bandwidth filter remembers, and
    // shows no more than four packets a round trip, 7 Mb/s.
    let short = Link {
        rtt: Duration::from_millis(5),
        queue: 50_000,
        ..Link::STANDARD
    };
    let mut bench = Bench::new(NAME, short);
    bench.run(ms(1_000));
    bench.set_link(Link {
        rtt: Duration::from_millis(8),
        ..short
    });
    bench.run(ms(13_000));
    let probed = bench
        .trace
        .iter()
        .filter(|p| p.view.phase == Phase::ProbeRtt);
    assert!(probed.count() > 50);
    for point in bench.between(ms(2_000), ms(13_000)) {
        assert!(
            point.view.bandwidth.unwrap() > Rate::from_mbps(19),
            "{point:?}"
        );
    }
}

#[test]
fn a_pause_replaces_the_probe_and_ends_at_the_modelled_rate() {
    let mut bench = Bench::new(NAME, Link::STANDARD);
    bench.run(ms(3_000));
    // 3 s of 20 Mb/s are 15 s of 4 Mb/s: nothing is sent until then, and the minimum expires.
    bench.set_link(Link {
        offered: Some(Rate::from_mbps(4)),
        ..Link::STANDARD
    });
    bench.run(ms(16_000));
    assert_eq!(bench.between(ms(3_100), ms(14_000)).count(), 0);
    assert!(bench.between(ms(14_000), ms(16_000)).count() > 300);
    assert!(bench.trace.iter().all(|p| p.view.phase != Phase::ProbeRtt));
}

/// In PROBE_BW since 40 ms with the given gain, on a path of 20 Mb/s and 40 ms: 100 000 bytes.
fn probing(gain: f64) -> Bbr {
    probing_in(Manner::FourPackets, gain)
}

/// At its beginning.
fn started(manner: Manner) -> Bbr {
    let params = Params {
        mtu: MTU,
        rate: None,
        paced: true,
        seed: 0,
    };
    Bbr::new(Instant::ZERO, &params, manner)
}

fn probing_in(manner: Manner, gain: f64) -> Bbr {
    let mut bbr = started(manner);
    let mut ack = ack(MTU, Instant::ZERO, Duration::from_millis(40));
    ack.delivery = Some(DeliverySample {
        rate: Rate::from_mbps(20),
        app_limited: false,
    });
    bbr.on_ack(ms(40), &ack);
    bbr.enter_probe_bw(ms(40));
    while bbr.cycle.gain() != gain {
        bbr.cycle.advance(ms(40));
    }
    bbr
}

/// The gain after an acknowledgement at `now` that found this number of bytes in flight.
fn gain_after(bbr: &mut Bbr, now: Instant, prior_in_flight: u64) -> f64 {
    let mut ack = ack(
        MTU,
        now - Duration::from_millis(40),
        Duration::from_millis(40),
    );
    ack.prior_in_flight = prior_in_flight;
    ack.in_flight = prior_in_flight - MTU;
    bbr.on_ack(now, &ack);
    bbr.view().pacing_gain
}

#[test]
fn sending_after_a_pause_does_not_probe() {
    let mut bbr = probing(1.25);
    bbr.on_sent(ms(41), MTU, 5 * MTU, false);
    assert_ne!(bbr.pacing_rate(), Some(Rate::from_mbps(20)));
    bbr.on_sent(ms(1_000), MTU, MTU, false);
    assert_eq!(bbr.pacing_rate(), Some(Rate::from_mbps(20)));
}

#[test]
fn probe_lasts_until_it_had_its_effect() {
    // 1.25 · 100 000 bytes and three quanta of 7 211 bytes, a millisecond of 57.7 Mb/s.
    let mut bbr = probing(1.25);
    assert_eq!(gain_after(&mut bbr, ms(79), 150_000), 1.25);
    assert_eq!(gain_after(&mut bbr, ms(90), 120_000), 1.25);
    assert_eq!(gain_after(&mut bbr, ms(91), 150_000), 0.75);
    // Or until the buffer overflows.
    let mut bbr = probing(1.25);
    bbr.on_loss(ms(90), &loss(MTU, ms(60)));
    assert_eq!(gain_after(&mut bbr, ms(90), 110_000), 0.75);
}

#[test]
fn drain_ends_when_the_queue_is_gone() {
    let mut bbr = probing(0.75);
    assert_eq!(gain_after(&mut bbr, ms(50), 130_000), 0.75);
    assert_eq!(gain_after(&mut bbr, ms(51), 100_000), 1.0);
    let mut bbr = probing(0.75);
    assert_eq!(gain_after(&mut bbr, ms(80), 130_000), 0.75);
    assert_eq!(gain_after(&mut bbr, ms(81), 130_000), 1.0);
}

#[test]
fn fills_a_link_with_a_queue_of_one_product() {
    let bench = run(NAME, Link::STANDARD, 60_000);
    let share = bench.utilisation(ms(5_000), ms(60_000));
    assert!(share >= 0.95, "{share}");
}

#[test]
fn random_loss_costs_what_was_lost_and_not_more() {
    for loss in [0.01, 0.02, 0.05] {
        let link = Link {
            loss,
            ..Link::STANDARD
        };
        let bbr = run(NAME, link, 30_000).utilisation(ms(5_000), ms(30_000));
        let reno = run(new_reno::NAME, link, 30_000).utilisation(ms(5_000), ms(30_000));
        assert!(bbr >= 0.9 * (1.0 - loss), "{loss}: {bbr}");
        // Mathis: 1.22 / sqrt(0.01) = 12 packets a round trip of 40 ms, of the link's 80.
        assert!(reno <= 0.3, "{loss}: {reno}");
    }
}

#[test]
fn unfilled_path_stays_in_startup() {
    let link = Link {
        offered: Some(Rate::from_mbps(4)),
        ..Link::STANDARD
    };
    let bench = run(NAME, link, 9_000);
    assert_eq!(phases(&bench).len(), 1);
    let view = bench.controller.view();
    assert_eq!(view.phase, Phase::Startup);
    // 2.885 · 4 Mb/s · 40.5 ms = 58 400 bytes and three quanta of two packets at most.
    let product = view.bandwidth.unwrap().bytes_in(view.min_rtt.unwrap());
    assert!((20_000..27_000).contains(&product), "{product}");
    let window = bench.controller.window();
    assert!((50_000..90_000).contains(&window), "{window}");
}

#[test]
fn bandwidth_does_not_age_while_the_application_is_the_limit() {
    let mut bench = Bench::new(NAME, Link::STANDARD);
    bench.run(ms(3_000));
    // A trickle for five seconds: far more than ten round trips.
    bench.set_link(Link {
        offered: Some(Rate::from_kbps(8_000)),
        ..Link::STANDARD
    });
    bench.run(ms(9_000));
    assert!(bench.controller.view().bandwidth.unwrap() > Rate::from_mbps(19));
    let rate = bench.utilisation(ms(8_000), ms(9_000));
    assert!((0.38..0.42).contains(&rate), "{rate}");
}

#[test]
fn follows_a_link_that_slows_down() {
    let mut bench = Bench::new(NAME, Link::STANDARD);
    bench.run(ms(5_000));
    let slow = Link {
        rate: Rate::from_mbps(5),
        ..Link::STANDARD
    };
    bench.set_link(slow);
    bench.run(ms(9_000));
    let bandwidth = bench.controller.view().bandwidth.unwrap().as_mbps_f64();
    assert!((4.8..5.3).contains(&bandwidth), "{bandwidth}");
}

#[test]
fn recovery_conserves_packets_for_a_round_trip() {
    let mut bench = Bench::new(NAME, Link::STANDARD);
    bench.run(ms(4_000));
    let bbr = &mut bench.controller;
    let before = bbr.window();
    let lost = Loss {
        in_flight: 50 * MTU,
        ..loss(2 * MTU, ms(3_980))
    };
    bbr.on_loss(ms(4_001), &lost);
    assert_eq!(bbr.window(), 51 * MTU);
    let last = bench.trace.last().unwrap().delivered;
    let mut ack = Ack {
        bytes: MTU,
        prior_in_flight: 50 * MTU,
        in_flight: 49 * MTU,
        sent: ms(3_990),
        rtt: Some(Duration::from_millis(41)),
        back_queueing: Duration::ZERO,
        srtt: Duration::from_millis(41),
        delivery: None,
        delivered: last + MTU,
        delivered_when_sent: last - 60 * MTU,
    };
    // What is delivered may be sent, no more: 49 in flight, and one.
    bbr.on_ack(ms(4_001), &ack);
    assert_eq!(bbr.window(), 50 * MTU);
    ack.in_flight = 48 * MTU;
    bbr.on_ack(ms(4_002), &ack);
    assert_eq!(bbr.window(), 50 * MTU);
    // A round trip without loss restores the window.
    ack.sent = ms(4_003);
    bbr.on_ack(ms(4_044), &ack);
    assert_eq!(bbr.window(), before);
}

#[test]
fn persistent_congestion_leaves_two_datagrams_and_comes_back() {
    let mut bench = Bench::new(NAME, Link::STANDARD);
    bench.run(ms(4_000));
    let before = bench.controller.window();
    let lost = Loss {
        persistent: true,
        ..loss(60 * MTU, ms(3_990))
    };
    bench.controller.on_loss(ms(4_000), &lost);
    assert_eq!(bench.controller.window(), 2 * MTU);
    bench.run(ms(4_500));
    assert!(bench.controller.window() >= before * 9 / 10);
}

#[test]
fn pacing_starts_from_the_guess_or_a_nominal_millisecond() {
    // 12 500 bytes a millisecond are 100 Mb/s, times 2.885.
    let rate = controller(NAME).pacing_rate().unwrap().as_mbps_f64();
    assert!((288.0..289.0).contains(&rate), "{rate}");
    let guess = Bbr::new(
        Instant::ZERO,
        &Params {
            mtu: MTU,
            rate: Some(Rate::from_mbps(10)),
            paced: true,
            seed: 0,
        },
        Manner::FourPackets,
    );
    let rate = guess.pacing_rate().unwrap().as_mbps_f64();
    assert!((28.8..28.9).contains(&rate), "{rate}");
}

#[test]
fn flows_start_their_cycles_in_different_phases_but_never_draining() {
    let mut starts = [0_u32; 8];
    for seed in 0..700 {
        let params = Params {
            mtu: MTU,
            rate: None,
            paced: true,
            seed,
        };
        let mut bbr = Bbr::new(Instant::ZERO, &params, Manner::FourPackets);
        bbr.enter_probe_bw(Instant::ZERO);
        starts[bbr.cycle.index()] += 1;
    }
    assert_eq!(starts[1], 0);
    for (index, &count) in starts.iter().enumerate().filter(|&(i, _)| i != 1) {
        assert!((60..140).contains(&count), "{index}: {count}");
    }
}
