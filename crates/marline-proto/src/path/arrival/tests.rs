use super::*;
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
    let (mut error, mut judged) = (0.0, 0);
    for n in 0..PACKETS {
        let now = Instant::ZERO + gap * n as u32;
        while let Some(&(sent, arrival, beliefs)) = pending.front()
            && arrival + Duration::from_millis(20) <= now
        {
            pending.pop_front();
            // The peer's clock is 5 s behind ours… or ahead: only differences matter.
            let at_us = (arrival + Duration::from_secs(5)).as_micros();
            model.on_arrival(sent, at_us, beliefs);
        }
        let forecast = model.forecast();
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
    let forecast = model.forecast().unwrap();
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
        let forecast = model.forecast();
        for (n, beliefs) in sent.into_iter().enumerate() {
            let at = now + Duration::from_millis(15 + n as u64);
            model.on_arrival(now, at.as_micros(), beliefs);
        }
        if let Some(forecast) = forecast {
            assert!((micros(forecast.free.since(now)) - 10_000.0).abs() < 1.0);
        }
    }
    let forecast = model.forecast().unwrap();
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
    let upper = model.forecasters[0].upper;
    assert!((14_000.0..22_000.0).contains(&upper), "{upper} µs");
}

#[test]
fn held_steps_are_followed_by_a_short_memory() {
    // A delay that is drawn anew every second and holds: ±20 ms.
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
    assert_eq!(ArrivalModel::default().forecast(), None);
}
