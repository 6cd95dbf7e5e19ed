use alloc::vec::Vec;

use marline_base::Rng;
use smallvec::SmallVec;

use super::*;

/// The least bound of all splits, by trying every one.
fn best(lanes: &[Lane], n: u32) -> f64 {
    fn rest(lanes: &[Lane], n: u32, worst: f64) -> f64 {
        let [lane, others @ ..] = lanes else {
            return if n == 0 { worst } else { f64::INFINITY };
        };
        let with = |packets: u32| match packets {
            0 => worst,
            _ => worst.max(lane.bound(packets)),
        };
        let all = (0..=n).map(|packets| rest(others, n - packets, with(packets)));
        all.fold(f64::INFINITY, f64::min)
    }
    rest(lanes, n, f64::NEG_INFINITY)
}

/// A lane like any that may come up, degenerate ones included.
fn lane(rng: &mut Rng) -> Lane {
    let mut some = |most: f64, none: f64| match rng.chance(none) {
        true => 0.0,
        false => most * rng.uniform(),
    };
    let mean = some(10.0, 0.2);
    let spread = some(60.0, 0.3);
    let delay = some(40.0, 0.3) - some(20.0, 0.7);
    Lane::new(mean, spread, delay, libm::floor(some(30.0, 0.5)))
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()))
}

#[test]
fn splits_are_as_good_as_the_best_of_all() {
    let mut rng = Rng::new(6);
    for (paths, most, cases) in [(1, 60, 200), (2, 60, 3_000), (3, 24, 1_000), (4, 12, 600)] {
        for _ in 0..cases {
            let lanes: Vec<Lane> = (0..paths).map(|_| lane(&mut rng)).collect();
            let n = 1 + rng.below(most) as u32;
            let found = split(&lanes, n);
            assert_eq!(found.packets.iter().sum::<u32>(), n);
            let best = best(&lanes, n);
            assert!(close(found.bound, best), "{n} {lanes:?} {found:?} {best}");
        }
    }
}

/// The two paths' bounds cross once: halving finds where (§3.2.1).
fn halved(lanes: &[Lane], n: u32) -> f64 {
    let (mut low, mut high) = (0, n);
    let at = |first: u32| Split::of(lanes, SmallVec::from_slice(&[first, n - first])).bound;
    while high > low {
        let middle = low.midpoint(high);
        // Is the first path the later one even with one more?
        let first = lanes[0].bound(middle + 1);
        let second = lanes[1].bound((n - middle).max(1));
        match first < second && middle < n {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    at(low)
        .min(at(low.saturating_sub(1)))
        .min(at((low + 1).min(n)))
}

#[test]
fn large_objects_over_two_paths_are_split_as_halving_does() {
    let mut rng = Rng::new(7);
    for _ in 0..2_000 {
        let lanes = [lane(&mut rng), lane(&mut rng)];
        let n = 1 + rng.below(30_000) as u32;
        let (found, halved) = (split(&lanes, n), halved(&lanes, n));
        assert!(
            found.bound <= halved || close(found.bound, halved),
            "{lanes:?} {n} {found:?}"
        );
    }
}

#[test]
fn rounding_each_number_would_not_be_enough() {
    let lane = |mean| Lane::new(mean, 0.0, 0.0, 0.0);
    let found = split(&[lane(0.1), lane(10.0), lane(10.0)], 300);
    assert_eq!(found.packets.as_slice(), [296, 2, 2]);
    assert!(close(found.bound, 29.6));
}

#[test]
fn an_idle_path_makes_nothing_late() {
    let far = Lane::new(1.0, 0.0, 1_000.0, 50.0);
    let near = Lane::new(1.0, 3.0, 0.0, 0.0);
    let found = split(&[far, near], 4);
    assert_eq!(found.packets.as_slice(), [0, 4]);
    assert!(close(found.bound, 4.0 + 2.0 * 3.0));
}

#[test]
fn paths_without_delay_or_number_are_planned_with() {
    let flat = Lane::new(0.0, 0.0, 5.0, 7.0);
    let slow = Lane::new(2.0, 0.0, 0.0, 0.0);
    let found = split(&[slow, flat, flat], 100);
    assert_eq!(found.packets.iter().sum::<u32>(), 100);
    assert!(
        close(found.bound, 5.0) && found.packets[0] <= 2,
        "{found:?}"
    );
    let odd = Lane::new(f64::NAN, -1.0, f64::INFINITY, f64::NEG_INFINITY);
    assert_eq!(split(&[odd], 3).packets.as_slice(), [3]);
    assert_eq!(split(&[], 3).packets.len(), 0);
    assert_eq!(
        split(&[slow], 0),
        Split::of(&[slow], SmallVec::from_slice(&[0]))
    );
    assert_eq!(
        split(&[slow, slow], u32::MAX)
            .packets
            .iter()
            .map(|n| u64::from(*n))
            .sum::<u64>(),
        u64::from(u32::MAX)
    );
}

#[test]
fn redundancy_is_what_luck_would_add() {
    let mut rng = Rng::new(8);
    let mut some = 0;
    for _ in 0..2_000 {
        let lanes: Vec<Lane> = (0..2 + rng.below(3)).map(|_| lane(&mut rng)).collect();
        let n = 1 + rng.below(200) as u32;
        let plain = split(&lanes, n);
        let sent = |gamma| redundant(&lanes, n, gamma).packets;
        assert_eq!(sent(1.0), plain.packets);
        let (half, all) = (sent(0.5), sent(0.0));
        assert!(half.iter().zip(&plain.packets).all(|(a, b)| a >= b));
        assert!(all.iter().all(|packets| *packets <= n));
        some += u32::from(all.iter().sum::<u32>() > n);
    }
    assert!(some > 500, "redundancy in {some} cases");
}

#[test]
fn widths_are_those_of_the_equations() {
    let moments = Moments {
        mean: 10.0,
        deviation: 3.0,
        skewness: 0.6,
        min: 4.0,
        p95: 16.0,
    };
    let clt = Width::Normal.scale(0.05, 2).spread(&moments);
    assert!((clt - 3.0 * 1.959_964).abs() < 1e-5, "{clt}");
    let hoeffding = Width::Hoeffding.scale(0.05, 2).spread(&moments);
    let by_hand = 12.0 * libm::sqrt(-libm::log(0.025) / 2.0);
    assert!(close(hoeffding, by_hand));
    // Hoeffding's inequality holds with equality there: exp(−2w²/(b − a)²) = ε/m.
    assert!(close(
        libm::exp(-2.0 * hoeffding * hoeffding / 144.0),
        0.025
    ));
}

#[test]
fn the_deviation_of_groups_is_that_of_a_sum() {
    let deviation = |samples: &mut dyn FnMut() -> f64| {
        let mut spacing = Spacing::of(4_800).in_groups(16);
        for _ in 0..4_800 {
            spacing.record(samples());
        }
        spacing.moments().unwrap().deviation
    };
    // Independent: its own, 2 · 2.5.
    let mut rng = Rng::new(3);
    let own = deviation(&mut || 2.5 * rng.gamma(4.0));
    assert!((own / 5.0 - 1.0).abs() < 0.12, "{own}");
    // Delays that vary by 2 about packets 10 apart: a late one is followed by an early one. Of 16
    // only the first and the last delay count: 2 · √2/4, and not 2 · √2.
    let (mut rng, mut delay) = (Rng::new(4), 0.0);
    let jitter = deviation(&mut || {
        let before = core::mem::replace(&mut delay, 2.0 * rng.normal());
        10.0 + delay - before
    });
    assert!(
        (jitter / (0.5 * libm::sqrt(2.0)) - 1.0).abs() < 0.15,
        "{jitter}"
    );
    // A rate that changes every 16: all of them together.
    let (mut rng, mut count, mut rate) = (Rng::new(5), 0, 0.0);
    let slots = deviation(&mut || {
        if count % 16 == 0 {
            rate = rng.normal();
        }
        count += 1;
        10.0 + rate
    });
    assert!((slots / 4.0 - 1.0).abs() < 0.12, "{slots}");
}

#[test]
fn the_95th_percentile_is_the_nearest_rank() {
    // Of 1, 2, … n the ⌈0.95 n⌉-th, which is 0.95 n itself where that is whole.
    for (n, expected) in [
        (1, 1),
        (2, 2),
        (19, 19),
        (20, 19),
        (21, 20),
        (40, 38),
        (100, 95),
    ] {
        let mut spacing = Spacing::default();
        (1..=n).for_each(|time| spacing.record(f64::from(time)));
        let moments = spacing.moments().unwrap();
        assert_eq!(moments.p95, f64::from(expected), "{n}");
    }
}

#[test]
fn spacing_learns_distributions_it_is_shown() {
    let mut rng = Rng::new(9);
    // A gamma of shape 4: its 95th percentile is 7.7537 times its scale.
    let mut spacing = Spacing::default();
    assert_eq!(spacing.moments(), None);
    for _ in 0..5_000 {
        spacing.record(2.5 * rng.gamma(4.0));
    }
    let moments = spacing.moments().unwrap();
    let within = |value: f64, truth: f64, part: f64| (value - truth).abs() < part * truth;
    assert!(within(moments.mean, 10.0, 0.03), "{moments:?}");
    assert!(within(moments.deviation, 5.0, 0.05), "{moments:?}");
    assert!(within(moments.p95, 2.5 * 7.753_7, 0.05), "{moments:?}");
    assert!(moments.min > 0.0 && moments.min < 1.5, "{moments:?}");
    // That of a gamma of shape 4 is 1.
    assert!((moments.skewness - 1.0).abs() < 0.2, "{moments:?}");
    // Five thousand later nothing of it is left.
    for _ in 0..5_000 {
        spacing.record(3.0);
    }
    let flat = Moments {
        mean: 3.0,
        deviation: 0.0,
        skewness: 0.0,
        min: 3.0,
        p95: 3.0,
    };
    assert_eq!((spacing.len(), spacing.moments()), (5_000, Some(flat)));
    spacing.record(f64::NAN);
    spacing.record(-4.0);
    assert_eq!(spacing.len(), 5_000);
}

#[test]
fn reach_covers_what_is_delivered_until_feedback() {
    let moments = |deviation| Moments {
        mean: 10.0,
        deviation,
        ..Moments::default()
    };
    let packets = |deviation, feedback, unsent| {
        Reach::default().packets(&moments(deviation), feedback, unsent)
    };
    assert_eq!(packets(0.0, 40.0, true), 5);
    // In 40 ms 4 ± 10.
    assert_eq!(packets(50.0, 40.0, true), 25);
    assert_eq!(packets(50.0, 40.0, false), 10);
    assert_eq!(packets(50.0, 0.0, true), 1);
    let flat = Reach::default().packets(&Moments::default(), 1.0, true);
    assert_eq!(flat, u32::MAX);
}
