use super::*;
use crate::law::Left;
use marline_base::Rng;

/// Sends a packet of 1250 bytes every `gap` over a link of `rate`, whose delay is `delay(now)`;
/// feedback takes 20 ms back. Returns the model and the mean absolute error of its forecasts of
/// the second half, in µs.
fn follow(
    gap: Duration,
    rate: Rate,
    mut delay: impl FnMut(Instant) -> Duration,
) -> (ArrivalModel, f64) {
    const PACKETS: u64 = 4_000;
    let mut model = ArrivalModel::default();
    let mut free = Instant::ZERO;
    let mut pending = alloc::collections::VecDeque::<(Instant, Instant, Beliefs)>::new();
    let (mut error, mut judged, mut number) = (0.0, 0, 0);
    for n in 0..PACKETS {
        let now = Instant::ZERO + gap * n as u32;
        while let Some(&(sent, arrival, beliefs)) = pending.front()
            && arrival + Duration::from_millis(20) <= now
        {
            pending.pop_front();
            // The peer's clock is 5 s behind ours… or ahead: only differences matter.
            let at_us = (arrival + Duration::from_secs(5)).as_micros();
            let arrival = Arrival {
                number,
                sent,
                size: 1_250,
                at_us,
                beyond: f64::MAX,
                left: Left::default(),
                own_way: true,
            };
            model.on_arrival(now, &arrival, beliefs);
            number += 1;
        }
        let forecast = model.forecast(rate, None);
        let beliefs = model.on_sent(now, 1_250, rate);
        let departs: Instant = free.max(now);
        free = departs + rate.time_for(1_250);
        let arrival = departs + delay(now);
        if let Some(forecast) = forecast.filter(|_| n > PACKETS / 2) {
            let expected =
                now.as_micros() as f64 + forecast.offset_us + micros(forecast.free.since(now));
            let truth = (arrival + Duration::from_secs(5)).as_micros() as f64;
            error += (truth - expected).abs();
            judged += 1;
        }
        pending.push_back((now, arrival, beliefs));
    }
    (model, error / f64::from(judged))
}

#[test]
fn a_constant_link_is_forecast_exactly() {
    let rate = Rate::from_mbps(10);
    let (model, error) = follow(Duration::from_millis(2), rate, |_| {
        Duration::from_millis(30)
    });
    assert!(error < 2.0, "{error} µs");
    let forecast = model.forecast(rate, None).unwrap();
    assert!(
        (forecast.offset_us - 5_030_000.0).abs() < 2.0,
        "{forecast:?}"
    );
    assert!(forecast.late_us < 5.0, "{forecast:?}");
}

#[test]
fn our_own_queue_is_part_of_the_forecast_and_not_of_the_spread() {
    // Bursts of ten every 20 ms into a link that takes 1 ms each.
    let rate = Rate::from_mbps(10);
    let mut model = ArrivalModel::default();
    for burst in 0..200_u64 {
        let now = Instant::from_millis(20 * burst);
        let sent: alloc::vec::Vec<_> = (0..10).map(|_| model.on_sent(now, 1_250, rate)).collect();
        let forecast = model.forecast(rate, None);
        for (n, beliefs) in sent.into_iter().enumerate() {
            let at = now + Duration::from_millis(15 + n as u64);
            let number = 10 * burst + n as u64;
            let at_us = at.as_micros();
            let arrival = Arrival {
                number,
                sent: now,
                size: 1_250,
                at_us,
                beyond: f64::MAX,
                left: Left::default(),
                own_way: true,
            };
            model.on_arrival(at, &arrival, beliefs);
        }
        if let Some(forecast) = forecast {
            assert!((micros(forecast.free.since(now)) - 10_000.0).abs() < 1.0);
        }
    }
    let forecast = model.forecast(rate, None).unwrap();
    assert!(forecast.late_us < 5.0, "{forecast:?}");
}

#[test]
fn independent_jitter_is_met_with_a_long_memory_and_an_honest_upper_end() {
    let mut rng = Rng::new(3);
    let mut draw = move |_| Duration::from_micros(60_000 + rng.below(40_001));
    let (model, error) = follow(Duration::from_millis(2), Rate::from_mbps(100), &mut draw);
    // Uniform over ±20 ms: the mean is the best forecast, and it errs by 10 ms on average.
    assert!((9_500.0..10_800.0).contains(&error), "{error} µs");
    assert_eq!(model.best, 0, "the longest memory");
    // The 95th percentile lies 18 ms above the mean.
    let upper = model.forecasters[0].errors.upper;
    assert!((14_000.0..22_000.0).contains(&upper), "{upper} µs");
}

#[test]
fn held_steps_are_followed_by_a_short_memory() {
    // A delay that is drawn again every second and holds: ±20 ms.
    let delay = |now: Instant| {
        let mut rng = Rng::new(9).stream("steps");
        let mut value = 0;
        for _ in 0..=now.as_micros() / 1_000_000 {
            value = rng.below(40_001);
        }
        Duration::from_micros(60_000 + value)
    };
    let (model, error) = follow(Duration::from_millis(2), Rate::from_mbps(100), delay);
    // Feedback is some 100 ms old, so a tenth of the time is lost; a long memory errs by 10 ms.
    assert!(error < 4_000.0, "{error} µs");
    assert_ne!(model.best, 0);
}

#[test]
fn nothing_is_forecast_before_the_first_arrival() {
    assert_eq!(
        ArrivalModel::default().forecast(Rate::from_mbps(1), None),
        None
    );
}

/// Packets of 1250 bytes over a link that serves one in 1.25 ms (8 Mb/s) while its rate is said to
/// be 10 Mb/s; they come in runs of 20, 0.9 ms apart, every 30 ms. Delay is the
/// queue's and 20 ms; feedback is immediate.
fn overrated(runs: u64, mut extra: impl FnMut() -> i64) -> (ArrivalModel, i64) {
    let said = Rate::from_mbps(10);
    let mut model = ArrivalModel::default();
    let mut free = 0_i64;
    for n in 0..20 * runs {
        let sent = Instant::from_micros(30_000 * (n / 20) + 900 * (n % 20));
        let beliefs = model.on_sent(sent, 1_250, said);
        free = free.max(sent.as_micros() as i64) + 1_250;
        let at = free + 20_000 + extra();
        let beyond = (at - sent.as_micros() as i64 - 21_250) as f64;
        let heard = Instant::from_micros(at as u64);
        let arrival = Arrival {
            number: n,
            sent,
            size: 1_250,
            at_us: at as u64,
            beyond: beyond.max(0.0),
            left: Left::default(),
            own_way: true,
        };
        model.on_arrival(heard, &arrival, beliefs);
    }
    (model, free)
}

#[test]
fn service_times_are_learnt_where_the_rate_is_only_a_maximum() {
    let (model, free) = overrated(100, || 0);
    let service = 1_250.0 * model.succession.service(0.8);
    assert!((service - 1_250.0).abs() < 15.0, "{service} µs");
    let known = model.free.as_micros() as i64;
    assert!((known - free).abs() < 1_000, "{known} and {free}");
}

/// A path begins as one of 1 Mb/s and turns out to have ten: what was counted as served in sequence
/// at the first rate is gone long ago, and later packets, one every 2 ms, stand behind nothing.
#[test]
fn a_rate_that_was_too_low_leaves_no_queue_behind() {
    let mut model = ArrivalModel::default();
    for n in 0..2_000_u64 {
        let said = Rate::from_mbps(if n < 300 { 1 } else { 10 });
        let sent = Instant::from_millis(2 * n);
        let beliefs = model.on_sent(sent, 1_250, said);
        let at = sent + Duration::from_millis(21);
        let arrival = Arrival {
            number: n,
            sent,
            size: 1_250,
            at_us: at.as_micros(),
            beyond: 0.0,
            left: Left::default(),
            own_way: true,
        };
        model.on_arrival(at, &arrival, beliefs);
    }
    // Taken for queued they would show a service time of 2 ms.
    let service = 1_250.0 * model.succession.service(0.8);
    assert!((service - 1_000.0).abs() < 10.0, "{service} µs");
}

#[test]
fn jitter_does_not_build_a_queue_that_is_not_there() {
    let mut rng = Rng::new(4);
    let (model, free) = overrated(400, move || rng.below(10_000) as i64);
    let known = model.free.as_micros() as i64;
    // Runs end before the next begins, and what jitter hides is at most its width.
    assert!((known - free).abs() < 10_000, "{known} and {free}");
}

#[test]
fn feedback_is_due_after_the_path_the_wait_and_the_way_back() {
    let rate = Rate::from_mbps(10);
    let mut model = ArrivalModel::default();
    for n in 0..1_000 {
        let sent = Instant::from_millis(10 * n);
        let beliefs = model.on_sent(sent, 1_250, rate);
        // 30 ms there, on a clock that is an hour ahead, and 20 ms back.
        let at_us = sent.as_micros() + 30_000 + 3_600_000_000;
        let heard = sent + Duration::from_millis(50);
        let arrival = Arrival {
            number: n,
            sent,
            size: 1_250,
            at_us,
            beyond: 0.0,
            left: Left::default(),
            own_way: true,
        };
        model.on_arrival(heard, &arrival, beliefs);
    }
    let sent = Instant::from_millis(20_000);
    model.on_sent(sent, 1_250, rate);
    // A second one at once waits for 1 ms.
    let beliefs = model.on_sent(sent, 1_250, rate);
    let unheard = Some(Unheard { sent, beliefs });
    let due = model.forecast(rate, unheard).unwrap().due.unwrap();
    let after = due.since(sent).as_micros();
    assert!((50_900..51_200).contains(&after), "{after} µs");
}

#[test]
fn packets_that_nobody_acknowledges_stand_in_the_queue_like_others() {
    let rate = Rate::from_mbps(10);
    let queue = |acks: u32| {
        // Packets come a little faster than the link takes them, which shows how long it takes for
        // one.
        let (mut model, _) = follow(Duration::from_micros(950), rate, |_| {
            Duration::from_millis(30)
        });
        let now = Instant::from_millis(60_000);
        model.on_sent(now, 1_250, rate);
        (0..acks).for_each(|_| model.on_sent_beside(now, 30, rate));
        let forecast = model.forecast(rate, None).unwrap();
        micros(forecast.free.since(now)) / (1_250.0 * forecast.service_us)
    };
    // Each takes its time with the 58 bytes around it, as the whole ones do.
    let each = (queue(20) - queue(0)) / 20.0;
    assert!((each - 88.0 / 1_308.0).abs() < 1e-3, "{each}");
}

#[test]
fn acknowledgements_alone_keep_no_path_busy() {
    let mut model = ArrivalModel::default();
    // The rate of a path that carries nothing else is not known.
    let guess = Rate::from_kbps(10);
    for n in 0..1_000 {
        model.on_sent_beside(Instant::from_millis(n), 30, guess);
    }
    assert_eq!(model.free, Instant::ZERO);
}

#[test]
fn a_spread_is_forgotten_on_a_path_that_is_steady_since() {
    let mut upper = Upper::default();
    for n in 0..400 {
        upper.sample(if n % 4 == 0 { 8_000.0 } else { -2_000.0 });
    }
    let before = upper.upper;
    assert!(before > 4_000.0, "{before}");
    (0..4_000).for_each(|_| upper.sample(0.0));
    assert!(upper.upper < before / 50.0, "{} of {before}", upper.upper);
}

#[test]
fn a_peer_may_name_any_times() {
    const LAST: u64 = (1 << 62) - 1;
    let rate = Rate::from_mbps(10);
    for (first, then) in [(5_000, LAST), (LAST, 0), (LAST, LAST)] {
        let mut model = ArrivalModel::default();
        let sent = Instant::from_millis(1);
        let beliefs = model.on_sent(sent, 1_250, rate);
        for number in 0..400 {
            let arrival = Arrival {
                number,
                sent,
                size: 1_250,
                at_us: if number == 0 { first } else { then },
                beyond: 0.0,
                left: Left::default(),
                own_way: false,
            };
            model.on_arrival(sent, &arrival, beliefs);
            assert!(model.arrives_by(sent, &beliefs).is_some());
        }
    }
}

#[test]
fn after_a_clock_stood_still_it_restarts() {
    let rate = Rate::from_mbps(10);
    let mut model = ArrivalModel::default();
    let send = |model: &mut ArrivalModel, number: u64, hours: u64| {
        let sent = Instant::from_millis(2 * number);
        let beliefs = model.on_sent(sent, 1_250, rate);
        let arrived = sent + Duration::from_millis(30);
        let arrival = Arrival {
            number,
            sent,
            size: 1_250,
            at_us: arrived.as_micros() + hours * 3_600_000_000,
            beyond: 0.0,
            left: Left::default(),
            own_way: true,
        };
        (arrival, beliefs)
    };
    for number in 0..100 {
        let (arrival, beliefs) = send(&mut model, number, 1);
        let heard = arrival.sent + Duration::from_millis(60);
        model.on_arrival(heard, &arrival, beliefs);
    }
    let (in_flight, beliefs) = send(&mut model, 100, 2);
    model.restart();
    assert_eq!(model.arrives_by(in_flight.sent, &beliefs), None);
    let heard = in_flight.sent + Duration::from_millis(60);
    model.on_arrival(heard, &in_flight, beliefs);
    assert_eq!(
        model.forecast(rate, None),
        None,
        "it was judged by what was believed before"
    );
    for number in 101..110 {
        let (arrival, beliefs) = send(&mut model, number, 2);
        let heard = arrival.sent + Duration::from_millis(60);
        model.on_arrival(heard, &arrival, beliefs);
    }
    let forecast = model.forecast(rate, None).unwrap();
    let hours = 2.0 * 3.6e9 + 30e3;
    assert!((forecast.offset_us - hours).abs() < 1.0, "{forecast:?}");
    assert!(
        forecast.late_us < 1.0 && forecast.swing_us < 1.0,
        "{forecast:?}"
    );
}
