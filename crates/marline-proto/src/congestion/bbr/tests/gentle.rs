//! What `bbr-gentle` does otherwise, and `bbr` beside it.

use super::*;

#[test]
fn the_gentle_drain_lasts_until_the_queue_is_gone() {
    // Longer than a round trip if need be, and down to the pipe of 100 000 bytes and a packet.
    let mut bbr = probing_in(Manner::HalfPipe, 0.75);
    assert_eq!(gain_after(&mut bbr, ms(120), 130_000), 0.75);
    assert_eq!(gain_after(&mut bbr, ms(121), 100_000), 1.0);
    // But not for ever, if the queue is that of others: 40 + 6 · 40 ms.
    let mut bbr = probing_in(Manner::HalfPipe, 0.75);
    assert_eq!(gain_after(&mut bbr, ms(280), 130_000), 0.75);
    assert_eq!(gain_after(&mut bbr, ms(281), 130_000), 1.0);
}

#[test]
fn beside_live_streams_the_window_leaves_a_shorter_queue() {
    // 20 Mb/s and 40 ms hold 100 kB.
    let target = |manner, live| {
        let mut bbr = probing_in(manner, 1.0);
        bbr.on_live(live);
        bbr.target_window()
    };
    let usual = target(Manner::HalfPipe, Live::Absent);
    // A quarter of a pipe instead of another one, and what 10 ms bring.
    let shorter = 100_000 - (25_000 + 25_000);
    assert_eq!(target(Manner::HalfPipe, Live::Sent), usual - shorter);
    assert_eq!(
        target(Manner::FourPackets, Live::Sent),
        usual,
        "as its draft says"
    );
}

#[test]
fn a_filled_link_keeps_no_queue_and_needs_no_probe_in_the_gentle_manner() {
    for (name, gentle) in [(GENTLE, true), (NAME, false)] {
        let bench = run(name, Link::STANDARD, 30_000);
        let probes = bench.trace.iter().any(|p| p.view.phase == Phase::ProbeRtt);
        assert_eq!(probes, !gentle, "{name}");
        assert!(bench.utilisation(ms(5_000), ms(30_000)) >= 0.97, "{name}");
    }
}

#[test]
fn what_overruns_the_queue_ends_the_gentle_startup_of_a_limited_sender() {
    // 200 Mb/s and 40 ms hold 1 MB.
    let is_search = |manner, rounds: u64, lost: u64, flight: u64| {
        let mut bbr = started(manner);
        for round in 1..=rounds {
            let (now, sent) = (ms(40 * round), ms(40 * (round - 1)));
            if lost > 0 {
                bbr.on_loss(now, &loss(lost, sent));
            }
            let ack = Ack {
                delivered: 1_000_000 * round,
                delivered_when_sent: 1_000_000 * (round - 1),
                prior_in_flight: flight,
                in_flight: 2_000_000,
                delivery: Some(DeliverySample {
                    rate: Rate::from_mbps(200),
                    app_limited: true,
                }),
                ..ack(1_000_000, sent, Duration::from_millis(40))
            };
            bbr.on_ack(now, &ack);
        }
        bbr.view().phase.is_search()
    };
    let gentle = |rounds, lost, flight| is_search(Manner::HalfPipe, rounds, lost, flight);
    // One byte in eleven may be lost at random, and so may one in six when the pipe is not full.
    assert!(gentle(20, 100_000, 3_000_000));
    assert!(gentle(20, 200_000, 1_000_000));
    // One in three is too many even so: what comes in bursts overruns a short buffer.
    assert!(gentle(5, 500_000, 1_000_000));
    assert!(!gentle(6, 500_000, 1_000_000));
    // One byte in six counts, as a round without growth does: of six, the first one grew.
    assert!(gentle(5, 200_000, 3_000_000));
    assert!(!gentle(6, 200_000, 3_000_000));
    // One byte in three is enough, unless they are few.
    assert!(!gentle(2, 500_000, 3_000_000));
    assert!(gentle(20, 47 * MTU, 3_000_000));
    assert!(is_search(Manner::FourPackets, 20, 500_000, 3_000_000));
}

#[test]
fn a_queue_that_stands_ends_the_gentle_startup_of_a_limited_sender() {
    // 200 Mb/s and 40 ms hold 1 MB. The first round is without a queue; in the others 20 packets
    // take this long.
    let is_search = |manner, rounds: u64, trips: [u64; 2], flight: u64, live| {
        let mut bbr = started(manner);
        bbr.on_live(live);
        for round in 1..=rounds {
            for packet in 1..=20 {
                let part = 1_000_000 / 20 * packet;
                let trip = if round == 1 {
                    40
                } else {
                    trips[packet as usize % 2]
                };
                let (now, sent) = (ms(200 * round + packet), ms(200 * round + packet - trip));
                let ack = Ack {
                    delivered: 1_000_000 * round + part,
                    delivered_when_sent: 1_000_000 * (round - 1) + part,
                    prior_in_flight: flight,
                    in_flight: 2_000_000,
                    delivery: Some(DeliverySample {
                        rate: Rate::from_mbps(200),
                        app_limited: true,
                    }),
                    ..ack(50_000, sent, Duration::from_millis(trip))
                };
                bbr.on_ack(now, &ack);
            }
        }
        bbr.view().phase.is_search()
    };
    let is_in = |live| move |n, trips, flight| is_search(Manner::HalfPipe, n, trips, flight, live);
    let gentle = is_in(Live::Absent);
    assert!(!gentle(10, [65, 70], 1_500_000));
    // Too soon; too short a queue; some packets met none; a queue of others.
    assert!(gentle(4, [65, 70], 1_500_000));
    assert!(gentle(40, [58, 59], 1_500_000));
    assert!(gentle(40, [40, 90], 1_500_000));
    assert!(gentle(40, [65, 70], 900_000));
    // Not too soon for live streams; the rest holds for them, too.
    let beside = is_in(Live::Received);
    assert!(!beside(4, [65, 70], 1_500_000));
    assert!(beside(40, [40, 90], 1_500_000) && beside(40, [65, 70], 900_000));
    // The draft's does not mind.
    let draft = Manner::FourPackets;
    assert!(is_search(draft, 40, [65, 70], 1_500_000, Live::Sent));
}

#[test]
fn the_gentle_probe_keeps_half_of_the_pipe_and_finds_the_same_minimum() {
    let mut bench = Bench::new(GENTLE, Link::STANDARD);
    bench.run(ms(1_000));
    bench.set_link(Link {
        rtt: Duration::from_millis(60),
        ..Link::STANDARD
    });
    bench.run(ms(34_000));
    let probe: Vec<&Point> = bench
        .trace
        .iter()
        .filter(|p| p.view.phase == Phase::ProbeRtt)
        .collect();
    // 20 Mb/s over 60.5 ms are 151 kB; before the new minimum is known, over 40.5 ms 101 kB.
    let kept = probe.iter().map(|p| p.window).min().unwrap();
    assert!((45_000..80_000).contains(&kept), "{kept}");
    let view = bench.controller.view();
    assert_eq!(view.min_rtt, Some(Duration::from_micros(60_500)));
    assert!(bench.utilisation(ms(12_000), ms(34_000)) >= 0.97);
}

#[test]
fn the_gentle_manner_does_not_probe_a_path_that_is_never_filled() {
    for (name, probes) in [(GENTLE, false), (NAME, true)] {
        let half = Link {
            offered: Some(Rate::from_mbps(8)),
            ..Link::STANDARD
        };
        let mut bench = Bench::new(name, half);
        bench.run(ms(1_000));
        bench.set_link(Link {
            rtt: Duration::from_millis(60),
            ..half
        });
        bench.run(ms(25_000));
        let probed = bench.trace.iter().any(|p| p.view.phase == Phase::ProbeRtt);
        assert_eq!(probed, probes, "{name}");
        let learnt = bench.controller.view().min_rtt;
        assert_eq!(learnt, Some(Duration::from_micros(60_500)), "{name}");
    }
}

#[test]
fn a_path_that_grows_longer_is_believed_within_a_second() {
    let mut bench = Bench::new(GENTLE, Link::STANDARD);
    bench.run(ms(5_000));
    bench.set_link(Link {
        rtt: Duration::from_millis(120),
        ..Link::STANDARD
    });
    bench.run(ms(12_000));
    let learnt = |p: &&Point| p.view.min_rtt >= Some(Duration::from_millis(120));
    let at = bench.trace.iter().find(learnt).expect("learnt").now;
    // The ten seconds of the filter would end at 15 s.
    assert!(at < ms(6_500), "{at:?}");
    let share = bench.utilisation(ms(7_500), ms(12_000));
    assert!(share >= 0.95, "{share}");
}

#[test]
fn the_drafts_manner_waits_for_the_ten_seconds_of_its_filter() {
    let mut bench = Bench::new(NAME, Link::STANDARD);
    bench.run(ms(5_000));
    bench.set_link(Link {
        rtt: Duration::from_millis(120),
        ..Link::STANDARD
    });
    bench.run(ms(20_000));
    let phases = phases(&bench);
    let probe = phases.iter().find(|(_, phase)| *phase == Phase::ProbeRtt);
    let (at, _) = probe.expect("a probe");
    // The last samples of 40 ms come within five seconds.
    assert!(*at >= ms(10_000), "{at:?}");
}

#[test]
fn a_burst_of_losses_leaves_the_gentle_window_two_pipes_where_no_queue_stands() {
    // 20 Mb/s and 40 ms hold 100 kB. Round trips of lately that are 10 ms longer are a queue.
    for (manner, trip, left) in [
        (Manner::HalfPipe, 41, 200_000),
        (Manner::HalfPipe, 60, 100_000),
        (Manner::FourPackets, 41, 20_000 + MTU),
    ] {
        let mut bbr = probing_in(manner, 1.0);
        let usual = Duration::from_millis(40);
        for n in 1..=20 {
            let round = Ack {
                delivered: n * MTU,
                delivered_when_sent: n * MTU,
                ..ack(MTU, Instant::ZERO, usual)
            };
            bbr.on_ack(ms(40), &round);
        }
        for n in 41..53 {
            let trip = Duration::from_millis(trip);
            bbr.on_ack(ms(n), &ack(MTU, ms(n) - trip, trip));
        }
        let burst = Loss {
            in_flight: 20_000,
            ..loss(10 * MTU, ms(50))
        };
        bbr.on_loss(ms(53), &burst);
        assert_eq!(bbr.window(), left, "{manner:?}, {trip} ms");
    }
}

#[test]
fn the_gentle_window_begins_with_what_two_megabits_bring_in_two_long_round_trips() {
    // At the pace of ten packets a round trip, or of those two megabits.
    let gain = |rate: Rate| rate.scaled(HIGH_GAIN);
    let two = gain(Rate::from_mbps(2));
    let ten = |ms| gain(Rate::from_bytes_over(10 * MTU, Duration::from_millis(ms)));
    for (manner, trip, bytes, pace) in [
        (Manner::HalfPipe, 24, 10 * MTU, ten(24)),
        (Manner::HalfPipe, 60, 30_000, two),
        (Manner::HalfPipe, 600, 32 * MTU, two),
        (Manner::FourPackets, 600, 10 * MTU, ten(600)),
    ] {
        let mut bbr = started(manner);
        assert_eq!(bbr.window(), 10 * MTU, "nobody knows the round trip");
        let trip = Duration::from_millis(trip);
        bbr.on_ack(Instant::ZERO + trip, &ack(MTU, Instant::ZERO, trip));
        assert_eq!(bbr.window(), bytes + MTU, "{manner:?} {trip:?}");
        assert_eq!(bbr.pacing_rate(), Some(pace), "{manner:?} {trip:?}");
    }
}

#[test]
fn questions_that_were_lost_leave_the_gentle_window_as_it_was() {
    for (manner, left) in [(Manner::HalfPipe, 10 * MTU), (Manner::FourPackets, 2 * MTU)] {
        let mut bbr = started(manner);
        let lost = Loss {
            in_flight: 20,
            ..loss(60, ms(0))
        };
        bbr.on_loss(ms(200), &lost);
        assert_eq!(bbr.window(), left, "{manner:?}");
    }
}

#[test]
fn a_lucky_first_round_trip_does_not_starve_the_gentle_startup() {
    for (manner, shortest) in [(Manner::HalfPipe, 82_500), (Manner::FourPackets, 15_000)] {
        let mut bbr = started(manner);
        for (n, trip) in [15, 105, 105, 105].into_iter().enumerate() {
            let now = ms(200 + n as u64);
            let trip = Duration::from_millis(trip);
            bbr.on_ack(now, &ack(MTU, now - trip, trip));
        }
        let min_rtt = bbr.view().min_rtt.map(|rtt| rtt.as_micros());
        assert_eq!(min_rtt, Some(shortest), "{manner:?}");
    }
}

#[test]
fn a_path_begins_with_what_is_needed_of_it() {
    let trip = Duration::from_millis(160);
    let first = |manner, before: Option<u64>, after: Option<u64>| {
        let mut bbr = started(manner);
        let ask = |bbr: &mut Bbr, mbps: Option<u64>| {
            if let Some(mbps) = mbps {
                bbr.on_demand(Rate::from_mbps(mbps), trip);
            }
        };
        ask(&mut bbr, before);
        bbr.on_ack(ms(160), &ack(0, Instant::ZERO, trip));
        ask(&mut bbr, after);
        let rate = bbr.pacing_rate().expect("it has one").as_mbps_f64();
        (bbr.window(), (10.0 * rate).round() / 10.0)
    };
    let gentle = |before, after| first(Manner::HalfPipe, before, after);
    // Twice 2 Mb/s or 32 packets, at 2.885 times that rate.
    let guess = gentle(None, None);
    assert_eq!(guess, (32 * MTU, 5.8));
    // 6 Mb/s · 160 ms, whether it was known before the round trip was or after.
    assert_eq!(gentle(Some(6), None), (120_000, 6.0));
    assert_eq!(gentle(None, Some(6)), (120_000, 6.0));
    assert_eq!(gentle(Some(9), Some(6)), (120_000, 6.0));
    // Less than the guess, but not than the usual ten packets, which would leave at 2.885 times
    // 0.625 Mb/s.
    assert_eq!(gentle(None, Some(1)), (20_000, 1.8));
    assert_eq!(gentle(None, Some(0)), (10 * MTU, 1.8));
    // An application that needs much may be wrong about the path.
    assert_eq!(gentle(Some(1_000), None).0, 512 * MTU);
    let plain = |after| first(Manner::FourPackets, None, after);
    assert_eq!(plain(Some(6)), plain(None));
}

#[test]
fn the_first_window_that_losses_leave_holds_two_datagrams_of_any_size() {
    let mut bbr = started(Manner::HalfPipe);
    bbr.on_ack(ms(1), &ack(0, Instant::ZERO, Duration::from_millis(1)));
    let mtu = 10 * MTU;
    bbr.on_mtu(mtu);
    bbr.on_loss(ms(2), &loss(mtu, ms(1)));
    assert!(bbr.window() >= 2 * mtu, "{}", bbr.window());
}

#[test]
fn what_was_delivered_tells_more_than_what_is_needed() {
    let trip = Duration::from_millis(160);
    let after = |delivered: u64| {
        let mut bbr = started(Manner::HalfPipe);
        bbr.on_ack(ms(160), &ack(0, Instant::ZERO, trip));
        bbr.on_ack(ms(320), &ack(delivered, ms(160), trip));
        let before = bbr.window();
        bbr.on_demand(Rate::from_mbps(6), trip);
        bbr.window() - before
    };
    // 120 kB instead of 40; what came back on top.
    assert_eq!(after(10 * MTU), 80_000);
    assert_eq!(after(32 * MTU), 0);
}
