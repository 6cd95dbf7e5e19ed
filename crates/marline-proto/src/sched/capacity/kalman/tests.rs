use super::*;
use marline_base::Rng;

fn near(a: f64, b: f64, within: f64) {
    assert!(libm::fabs(a - b) <= within, "{a} is not {b}");
}

#[test]
fn one_step_by_hand() {
    // P = 3, Q = 1, R = 4, so that the prior is 4 and the gain 1/2; 12 is seen where 10 was
    // expected: the estimate is 11, its variance 2.
    let mut filter = Kalman::with(10.0, 3.0, 1.0, 4.0);
    filter.update(12.0);
    near(filter.estimate(), 11.0, 1e-12);
    near(filter.variance, 2.0, 1e-12);
    // b = 0.97: the first weight is 0.03/(1 − 0.97²); the square of the error, 4, less the prior
    // of 4 leaves no noise, and ¼·4 + 2 − 3 no walk.
    let weight = 0.03 / (1.0 - 0.97 * 0.97);
    near(filter.noise, 4.0 * (1.0 - weight), 1e-12);
    near(filter.walk, 1.0 - weight, 1e-12);
}

#[test]
fn sums_of_slots_have_the_variance_of_their_walk() {
    // The errata's examples: P = Q = 1, R = 64, ℓ = 1: 141 for two slots, 686 for seven.
    let filter = Kalman::with(40.0, 1.0, 1.0, 64.0);
    let sum = |k: u32| {
        let f64k = f64::from(k);
        let sd = filter.forecast(1, k).sd * f64k;
        sd * sd
    };
    near(sum(2), 141.0, 1e-9);
    near(sum(7), 686.0, 1e-9);
    // And by walking: 40 000 walks of seven slots; the variance's own deviation is 0.7 %.
    let mut rng = Rng::new(21);
    let (mut first, mut second) = (0.0, 0.0);
    const N: f64 = 40_000.0;
    for _ in 0..N as u32 {
        let mut state = 40.0 + rng.normal();
        let mut total = 0.0;
        for slot in 0..8 {
            state += rng.normal();
            if slot >= 1 {
                total += state + 8.0 * rng.normal();
            }
        }
        first += total / N;
        second += total * total / N;
    }
    near(second - first * first, 686.0, 686.0 * 0.043);
}

#[test]
fn starts_slowly_and_then_tracks() {
    let mut filter = Kalman::new(0.97);
    let mut steps = 0;
    while filter.mode() == Mode::SlowStart {
        filter.update(40e6);
        steps += 1;
    }
    // 0.4 Mb/s doubles seven times to reach 40 Mb/s.
    assert_eq!(steps, 7);
    let mut rng = Rng::new(22);
    let mut mean = 0.0;
    let mut sd = 0.0;
    for i in 0..3_000 {
        filter.update(40e6 + 8e6 * rng.normal());
        if i >= 500 {
            mean += filter.forecast(1, 1).mean / 2_500.0;
            sd += filter.forecast(1, 1).sd / 2_500.0;
        }
    }
    near(mean, 40e6, 0.8e6);
    assert!((7e6..11e6).contains(&sd), "{sd}");
}

fn settled() -> Kalman {
    let mut filter = Kalman::new(0.97);
    for i in 0..60 {
        filter.update(if i % 2 == 0 { 38e6 } else { 42e6 });
    }
    assert_eq!(filter.mode(), Mode::Normal);
    filter
}

#[test]
fn a_fall_is_kept_out_and_then_believed() {
    let mut filter = settled();
    let before = filter.estimate();
    let spread = filter.prior().1;
    filter.update(10e6);
    assert_eq!(filter.mode(), Mode::DownStep);
    assert_eq!(filter.estimate(), before);
    assert!(filter.prior().1 >= spread);
    assert!(filter.forecast(1, 1).falling && filter.forecast(1, 1).outage > 0.0);
    filter.update(11e6);
    filter.update(12e6);
    assert_eq!(filter.mode(), Mode::Normal);
    near(filter.estimate(), 11e6, 1.0);
}

#[test]
fn a_short_fall_leaves_the_estimate() {
    let mut filter = settled();
    let before = filter.estimate();
    filter.update(10e6);
    filter.update(40e6);
    assert_eq!(filter.mode(), Mode::Normal);
    near(filter.estimate(), before, 2e6);
}

#[test]
fn a_rise_is_followed_and_then_believed() {
    let mut filter = settled();
    let before = filter.estimate();
    filter.update(80e6);
    assert_eq!(filter.mode(), Mode::UpStep);
    assert!(filter.estimate() > before);
    for _ in 0..4 {
        filter.update(80e6);
    }
    near(filter.estimate(), 80e6, 8e6);
}

#[test]
fn three_silent_samples_are_an_outage() {
    let mut filter = settled();
    filter.update(0.0);
    filter.update(0.0);
    assert_eq!(filter.mode(), Mode::DownStep);
    filter.update(0.0);
    assert_eq!(filter.mode(), Mode::Outage);
    assert_eq!(filter.estimate(), FLOOR);
    for _ in 0..12 {
        filter.update(40e6);
    }
    assert_eq!(filter.mode(), Mode::Normal);
    near(filter.estimate(), 40e6, 4e6);
}

#[test]
fn three_samples_end_an_outage() {
    // (21) as after any other rise, however far the mean of the filter was from what came before.
    for capacity in [2e6, 5e6, 20e6, 40e6, 80e6] {
        let mut filter = settled();
        for _ in 0..5 {
            filter.update(0.0);
        }
        assert_eq!(filter.mode(), Mode::Outage);
        for part in [0.9, 1.0, 1.1] {
            assert_ne!(filter.mode(), Mode::Normal);
            filter.update(part * capacity);
        }
        assert_eq!(filter.mode(), Mode::Normal, "{capacity}");
        near(filter.estimate(), capacity, 1.0);
    }
    // Silence in between begins it again.
    let mut filter = settled();
    for capacity in [0.0, 0.0, 0.0, 40e6, 0.0, 0.0, 0.0] {
        filter.update(capacity);
    }
    assert_eq!(filter.mode(), Mode::Outage);
    assert_eq!(filter.estimate(), FLOOR);
}

#[test]
fn a_rise_is_believed_after_three_samples_although_the_noise_seems_to_grow() {
    let mut rng = Rng::new(24);
    for samples in [10, 30, 100, 400] {
        for spread in [0.0, 0.05, 0.1, 0.15] {
            let mut filter = Kalman::new(0.97);
            for _ in 0..samples {
                filter.update(12e6 * (1.0 + spread * rng.normal()));
            }
            for capacity in [38e6, 40e6, 42e6] {
                filter.update(capacity);
            }
            near(filter.estimate(), 40e6, 1.0);
            assert_eq!(filter.mode(), Mode::Normal);
        }
    }
}

#[test]
fn a_single_high_sample_is_no_rise() {
    let mut filter = settled();
    let before = filter.estimate();
    filter.update(80e6);
    assert_eq!(filter.mode(), Mode::UpStep);
    filter.update(before);
    assert_eq!(filter.mode(), Mode::Normal);
    for _ in 0..20 {
        filter.update(before);
    }
    near(filter.estimate(), before, 4e6);
}

#[test]
fn any_samples_leave_finite_numbers() {
    let mut rng = Rng::new(23);
    let mut filter = Kalman::new(1.5);
    for _ in 0..20_000 {
        let sample = match rng.below(8) {
            0 => 0.0,
            1 => f64::NAN,
            2 => f64::INFINITY,
            3 => -5.0,
            4 => 1e15,
            _ => 1e8 * rng.uniform(),
        };
        filter.update(sample);
        let forecast = filter.forecast(3, 2);
        assert!(forecast.mean >= 0.0 && forecast.mean.is_finite());
        assert!(forecast.sd >= 0.0 && forecast.sd.is_finite());
        assert!((0.0..=1.0).contains(&forecast.outage));
    }
}
