use super::*;
use alloc::vec::Vec;
use marline_base::Rng;
use proptest::prelude::*;

fn any() -> impl Strategy<Value = Law> {
    let steps = proptest::collection::vec(0.0..20e3_f64, KNOTS);
    (steps, -1e9..1e12_f64, 0.0..0.9_f64).prop_map(|(steps, at, loss)| {
        let mut sum = -100e3;
        let knots = core::array::from_fn(|n| {
            sum += steps[n];
            sum
        });
        Law::new(at, knots, loss)
    })
}

/// A draw; `None` is lost.
fn draw(law: &Law, rng: &mut Rng) -> Option<f64> {
    law.quantile(rng.uniform())
}

/// The share of draws that are there at `t`.
fn there(draws: &[Option<f64>], t: f64) -> f64 {
    let count = draws.iter().flatten().filter(|at| **at <= t).count();
    count as f64 / draws.len() as f64
}

/// The law against what 20 000 draws of two laws came to, at each of its deciles.
fn agrees(law: &Law, draws: &[Option<f64>]) {
    let lost = draws.iter().filter(|at| at.is_none()).count() as f64 / draws.len() as f64;
    assert!((lost - law.loss()).abs() < 0.02, "{lost} {}", law.loss());
    for decile in 1..10 {
        let t = law.place(f64::from(decile) / 10.0);
        // Straight lines between nineteen quantiles, and 20 000 draws.
        let (seen, said) = (there(draws, t), law.by(t));
        assert!((seen - said).abs() < 0.025, "{decile}: {seen} {said}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn by_never_falls_and_quantile_is_its_inverse(law in any(), a in 0.0..1.0_f64, b in 0.0..1.0_f64) {
        let (a, b) = (a.min(b), a.max(b));
        match (law.quantile(a), law.quantile(b)) {
            (Some(from), Some(to)) => {
                prop_assert!(from <= to && law.by(from) <= law.by(to) + 1e-12);
                // Clocks of 10¹² µs leave a thousandth of a microsecond.
                prop_assert!((law.by(from) - a).abs() < 1e-4, "{} {a}", law.by(from));
            }
            (None, Some(_)) => prop_assert!(false, "{a} never arrives but {b} does"),
            _ => prop_assert!(b >= 1.0 - law.loss()),
        }
        prop_assert!(law.by(f64::NEG_INFINITY) == 0.0 && law.by(f64::MAX) <= 1.0 - law.loss());
    }

    #[test]
    fn the_greatest_and_the_least_are_those_of_draws(
        a in any(), b in any(), lag in -100e3..100e3_f64, seed in 0_u64..1_000
    ) {
        // Laws that have nothing to do with each other say nothing of both.
        let b = b.shifted(a.median() - b.median() + lag);
        let mut rng = Rng::new(seed);
        let draws: Vec<_> = (0..20_000).map(|_| (draw(&a, &mut rng), draw(&b, &mut rng))).collect();
        let both: Vec<_> = draws.iter().map(|(a, b)| Some(a.as_ref()?.max(*b.as_ref()?))).collect();
        agrees(&a.max(&b), &both);
        let first = |(a, b): &(Option<f64>, Option<f64>)| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(*b)),
            (a, b) => a.or(*b),
        };
        let either: Vec<_> = draws.iter().map(first).collect();
        agrees(&a.min(&b), &either);
        let chosen: Vec<_> = draws
            .iter()
            .map(|(a, b)| if rng.uniform() < 0.3 { *b } else { *a })
            .collect();
        agrees(&a.or(&b, 0.3), &chosen);
    }
}

#[test]
fn a_normal_law_has_its_quantiles_and_its_mean() {
    let law = Law::normal(50e3, 4e3, 0.25);
    assert_eq!((law.median(), law.loss()), (50e3, 0.25));
    assert!((law.mean() - 50e3).abs() < 20.0, "{}", law.mean());
    // One deviation: 84.13 %, by a straight line between 80 and 90 %.
    assert!((law.share(54e3) - 0.8413).abs() < 0.006);
    assert_eq!(law.by(50e3), 0.375);
    assert_eq!(law.quantile(0.375), Some(50e3));
    assert_eq!(law.quantile(0.75), None);
    assert_eq!(law.quantile(f64::NAN), None);
    assert_eq!(law.shifted(1e3).with_loss(0.0).quantile(0.5), Some(51e3));
}

#[test]
fn what_is_rarer_than_one_in_a_thousand_falls_with_the_square() {
    let law = Law::normal(0.0, 1e3, 0.0);
    let last = 3_090.232;
    // The scale is from the median to the last quantile: there it is 1/4 of a thousandth.
    assert!((law.share(2.0 * last) - (1.0 - 0.001 / 4.0)).abs() < 1e-9);
    assert!((law.quantile(1.0 - 0.001 / 4.0).unwrap() - 2.0 * last).abs() < 1e-3);
}

#[test]
fn the_latest_of_packets_that_overtake_each_other_is_that_of_draws() {
    let law = Law::normal(0.0, 20e3, 0.0);
    let mut rng = Rng::new(5);
    let latest: Vec<_> = (0..4_000)
        .map(|_| {
            let earlier = (0..=60).filter_map(|n| Some(draw(&law, &mut rng)? - 2e3 * f64::from(n)));
            Some(earlier.fold(f64::MIN, f64::max))
        })
        .collect();
    let joined = law.and_those_before(2e3, 60);
    for decile in 1..10 {
        let t = joined.place(f64::from(decile) / 10.0);
        let (seen, said) = (there(&latest, t), joined.share(t));
        assert!((seen - said).abs() < 0.04, "{decile}: {seen} {said}");
    }
}

#[test]
fn quantiles_that_fall_together_are_a_microsecond_apart() {
    let law = Law::new(0.0, [7.0; KNOTS], 0.0);
    assert_eq!(law.median(), 7.0);
    assert!(law.share(-3.0) < 0.001 && law.share(17.0) > 0.999);
    assert!((law.max(&law).median() - law.median()).abs() < 5.0);
}
