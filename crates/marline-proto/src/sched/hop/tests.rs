//! Searches against brute force.

use alloc::vec;
use alloc::vec::Vec;

use marline_base::Rng;

use super::*;
use crate::sched::normal::below;

mod planning;

fn near(a: f64, b: f64, within: f64) {
    assert!(libm::fabs(a - b) <= within, "{a} is not {b}");
}

/// A lane with a random non-decreasing table of up to `most` packets.
fn random_lane(rng: &mut Rng, most: u64) -> Lane {
    let packets = 1 + rng.below(most) as usize;
    let mut late: Vec<f64> = (0..packets)
        .map(|_| rng.uniform() * rng.uniform())
        .collect();
    late.sort_by(f64::total_cmp);
    late.insert(0, 0.0);
    let price = 2.0 * rng.uniform();
    let left = (0..=packets).map(|n| price * late[n] * n as f64);
    let loss = if rng.chance(0.5) {
        0.4 * rng.uniform()
    } else {
        0.0
    };
    Lane::from_values(late.clone(), left.collect(), 0).with_loss(loss)
}

/// `mean` ± `sd` packets, up to `most`.
fn normal_lane(mean: f64, sd: f64, most: usize, least: usize) -> Lane {
    let late = (0..=most).map(|j| match j {
        0 => 0.0,
        j => below((j as f64 - mean) / sd),
    });
    Lane::from_values(late.collect(), Vec::new(), least)
}

/// Every schedule within the lanes' limits.
fn schedules(lanes: &[Lane], visit: &mut impl FnMut(&[usize])) {
    let mut packets: Vec<usize> = lanes.iter().map(Lane::least).collect();
    loop {
        visit(&packets);
        let Some(next) = (0..lanes.len()).find(|i| packets[*i] < lanes[*i].most()) else {
            return;
        };
        packets[next] += 1;
        for i in 0..next {
            packets[i] = lanes[i].least();
        }
    }
}

/// Probability that `left` of `sent` packets are left if each is lost with probability `loss`.
fn binomial(sent: usize, left: usize, loss: f64) -> f64 {
    let choose = (0..left).fold(1.0, |c, i| c * (sent - i) as f64 / (i + 1) as f64);
    choose * libm::pow(1.0 - loss, left as f64) * libm::pow(loss, (sent - left) as f64)
}

/// P_e by going through all numbers of on-time packets (4), with (5) as it should be, and of those
/// that are not lost.
fn brute_failure(lanes: &[Lane], packets: &[usize], k: usize) -> f64 {
    fn go(lanes: &[Lane], packets: &[usize], missing: usize) -> f64 {
        let Some((lane, rest)) = lanes.split_first() else {
            return f64::from(u8::from(missing > 0));
        };
        let sent = packets[0];
        let chance = |d: usize| match d < sent {
            true => lane.late()[d + 1] - lane.late()[d],
            false => 1.0 - lane.late()[d],
        };
        let fails = |d: usize| go(rest, &packets[1..], missing.saturating_sub(d));
        let came = |d: usize| {
            let left = |r: usize| binomial(d, r, lane.loss()) * fails(r);
            (0..=d).map(left).sum::<f64>()
        };
        (0..=sent).map(|d| chance(d) * came(d)).sum()
    }
    go(lanes, packets, k)
}

#[test]
fn failure_is_what_enumeration_gives() {
    let mut rng = Rng::new(1);
    for _ in 0..400 {
        let lanes: Vec<Lane> = (0..=rng.below(4))
            .map(|_| random_lane(&mut rng, 7))
            .collect();
        let packets: Vec<usize> = lanes
            .iter()
            .map(|lane| rng.below(lane.most() as u64 + 1) as usize)
            .collect();
        let k = rng.below(20) as usize;
        let brute = brute_failure(&lanes, &packets, k);
        near(failure(&lanes, &packets, k), brute, 1e-9);
        // And with one packet more on a lane that has room (6).
        for i in 0..lanes.len() {
            if packets[i] == lanes[i].most() {
                continue;
            }
            let mut more = packets.clone();
            more[i] += 1;
            let others = (0..lanes.len()).filter(|j| *j != i);
            let others: Vec<Count> = others.map(|j| Count::of(&lanes[j], packets[j])).collect();
            let others = count::sum_of(others.iter(), 100);
            let (before, loss) = (packets[i], lanes[i].loss());
            let left = |left: usize| match k.checked_sub(left + 1) {
                Some(missing) => binomial(before, left, loss) * others.exactly(missing),
                None => 0.0,
            };
            let exactly: f64 = (0..=before).map(left).sum();
            let gain = (1.0 - lanes[i].late()[more[i]]) * (1.0 - loss) * exactly;
            near(brute - brute_failure(&lanes, &more, k), gain, 1e-9);
        }
    }
}

#[test]
fn failure_is_what_draws_give() {
    // One capacity a path decides which of its packets are on time: the nested events of (5).
    let mut rng = Rng::new(2);
    let lanes = [normal_lane(20.0, 5.0, 30, 0), normal_lane(10.0, 4.0, 20, 0)];
    let packets = [22, 12];
    let mut late = 0.0;
    const N: f64 = 100_000.0;
    for _ in 0..N as u32 {
        let first = (20.0 + 5.0 * rng.normal()).clamp(0.0, 22.0) as usize;
        let second = (10.0 + 4.0 * rng.normal()).clamp(0.0, 12.0) as usize;
        late += f64::from(u8::from(first + second < 24)) / N;
    }
    // Six standard errors of at most 0.5/√100000.
    near(failure(&lanes, &packets, 24), late, 0.0095);
}

#[test]
fn counts_are_distributions() {
    let mut rng = Rng::new(3);
    for _ in 0..200 {
        let lane = random_lane(&mut rng, 12);
        let count = Count::of(&lane, lane.most());
        near(count.below(usize::MAX), 1.0, 1e-9);
        let both = count.plus(&count, 5);
        near(both.below(6), 1.0, 1e-9);
        let wide = count.plus(&count, 100);
        for n in 0..5 {
            near(both.exactly(n), wide.exactly(n), 1e-12);
        }
        let reached = wide.reached(0.9);
        assert!(1.0 - wide.below(reached) >= 0.9 - 1e-12);
        assert!(1.0 - wide.below(reached + 1) < 0.9 + 1e-12);
    }
    let empty = Lane::from_values(Vec::new(), Vec::new(), 3);
    assert_eq!(Count::of(&empty, 9), Count::none());
}

#[test]
fn the_order_takes_the_surest_packet_and_holds_every_size() {
    let lanes = [
        Lane::from_values(vec![0.0, 0.1, 0.3, 0.5], Vec::new(), 0),
        Lane::from_values(vec![0.0, 0.2, 0.25, 0.28, 0.9], Vec::new(), 1),
    ];
    let order = Order::new(&lanes, 0.0);
    let sizes: Vec<Vec<usize>> = (0..=8).map(|n| order.packets(n)).collect();
    // One on the second lane comes first, because it must; then 0.1, 0.25, 0.28, 0.3, 0.5, 0.9.
    let expected = [
        vec![0, 1],
        vec![0, 1],
        vec![1, 1],
        vec![1, 2],
        vec![1, 3],
        vec![2, 3],
        vec![3, 3],
        vec![3, 4],
        vec![3, 4],
    ];
    assert_eq!(sizes, expected);
    assert_eq!((order.fewest(), order.most()), (1, 7));
    // 0.25 and 0.3 differ by less than 0.1: the lane with fewer packets.
    assert_eq!(Order::new(&lanes, 0.1).packets(4), [2, 2]);
}

#[test]
fn jump_is_the_smallest_of_its_order_within_ten_evaluations() {
    let mut rng = Rng::new(4);
    let (mut most, mut exact, mut feasible) = (0, 0, 0);
    for _ in 0..150 {
        let paths = 1 + rng.below(4);
        let share = (30 + rng.below(970)) as f64 / paths as f64;
        let lane = |rng: &mut Rng| {
            let mean = share * (0.6 + rng.uniform());
            normal_lane(
                mean,
                mean * (0.05 + 0.3 * rng.uniform()),
                (1.3 * mean) as usize,
                3,
            )
        };
        let lanes: Vec<Lane> = (0..paths).map(|_| lane(&mut rng)).collect();
        let order = Order::new(&lanes, 0.0);
        let k = (share * paths as f64 * (0.5 + 0.5 * rng.uniform())) as usize;
        let found = jump(&lanes, &order, k, 0.02);
        most = most.max(found.evaluations);
        assert!(found.evaluations <= 10, "{found:?}");
        near(found.failure, failure(&lanes, &found.packets, k), 1e-12);
        let total: usize = found.packets.iter().sum();
        if found.feasible {
            assert!(found.failure <= 0.02);
            feasible += 1;
            let smaller = (k.max(order.fewest())..total)
                .rev()
                .take_while(|n| failure(&lanes, &order.packets(*n), k) <= 0.02)
                .count();
            exact += usize::from(smaller == 0);
            assert!(smaller <= 1, "{smaller} of {total} too many for {k}");
        } else {
            assert_eq!(total, order.most());
        }
    }
    assert!(most > 4, "the search was never tried");
    assert!(exact * 50 >= feasible * 49, "{exact} of {feasible}");
}

/// Packets of the smallest schedule with P_e ≤ `target`.
fn smallest(lanes: &[Lane], k: usize, target: f64) -> Option<usize> {
    let mut best: Option<usize> = None;
    schedules(lanes, &mut |packets| {
        let total = packets.iter().sum();
        if total >= k
            && best.is_none_or(|best| total < best)
            && brute_failure(lanes, packets, k) <= target
        {
            best = Some(total);
        }
    });
    best
}

#[test]
fn greed_is_nearly_always_optimal() {
    // Random tables: the greedy order misses the optimum in a sixth of the cases, by few packets.
    let mut rng = Rng::new(5);
    let (mut cases, mut missed, mut worst) = (0, 0, 0);
    for _ in 0..400 {
        let lanes = [random_lane(&mut rng, 9), random_lane(&mut rng, 9)];
        let k = 1 + rng.below(7) as usize;
        let Some(best) = smallest(&lanes, k, 0.1) else {
            continue;
        };
        let found = jump(&lanes, &Order::new(&lanes, 0.0), k, 0.1);
        // All packets are as good as can be, so it finds some schedule.
        assert!(found.feasible);
        let more = found.packets.iter().sum::<usize>() - best;
        cases += 1;
        missed += usize::from(more > 0);
        worst = worst.max(more);
    }
    assert!(cases > 100, "{cases}");
    assert!(missed > 0, "the paper would be right");
    assert!(
        missed * 5 < cases && worst <= 5,
        "{missed} of {cases}, worst {worst}"
    );
    // Equal spread, as in all set-ups of the paper: optimal except for a packet where one path is
    // much stronger.
    for (means, k) in [([15.0, 15.0], 20), ([12.0, 18.0], 20), ([24.0, 8.0], 22)] {
        let lanes = means.map(|mean| normal_lane(mean, 3.0, 26, 0));
        let found = jump(&lanes, &Order::new(&lanes, 0.0), k, 0.02);
        let best = smallest(&lanes, k, 0.02);
        let more = found.packets.iter().sum::<usize>() - best.expect("there is one");
        assert!(more <= usize::from(means[0] == 24.0), "{means:?}: {more}");
    }
}

#[test]
fn leap_finds_the_largest_block() {
    let mut rng = Rng::new(6);
    for _ in 0..100 {
        let lanes: Vec<Lane> = (0..=rng.below(3))
            .map(|_| random_lane(&mut rng, 7))
            .collect();
        let all: Vec<usize> = lanes.iter().map(Lane::most).collect();
        let possible = |k: usize| brute_failure(&lanes, &all, k) <= 0.2;
        match leap(&lanes, 0.0, 0.2) {
            Some((k, found)) => {
                let useful = |(n, lane): (&usize, &Lane)| lane.loss() > 0.0 || *n <= k;
                assert!(
                    found.packets.iter().zip(&lanes).all(useful),
                    "{k}: {found:?}"
                );
                assert!(possible(k) && !possible(k + 1), "{k}");
                assert!(found.feasible && found.failure <= 0.2 + 1e-9);
            }
            None => assert!(!possible(1)),
        }
    }
}

#[test]
fn flip_finds_the_shortest_deadline() {
    // Packets per second instead of a table: the mean grows with the deadline.
    let lanes = |deadline: f64| {
        let lane = |rate: f64| normal_lane(rate * deadline, 0.2 * rate * deadline, 40, 1);
        vec![lane(1_000.0), lane(600.0)]
    };
    let possible = |deadline: f64| failure(&lanes(deadline), &[40, 40], 30) <= 0.02;
    let (deadline, found) = flip(lanes, 30, 0.02, 0.0, (0.1, 1e-4)).expect("there is one");
    assert!(
        possible(deadline) && !possible(deadline - 1e-4),
        "{deadline}"
    );
    assert!(found.feasible);
    assert_eq!(flip(lanes, 30, 0.02, 0.0, (0.01, 1e-4)), None);
}

#[test]
fn priced_schedules_are_nearly_the_best_of_all() {
    let mut rng = Rng::new(7);
    let (mut exact, mut worst) = (0, 0.0_f64);
    const CASES: usize = 120;
    for case in 0..CASES {
        let lanes: Vec<Lane> = (0..2 + case % 2)
            .map(|_| random_lane(&mut rng, 9))
            .collect();
        let room: usize = lanes.iter().map(Lane::most).sum();
        let k = (1 + rng.below(8) as usize).min(room);
        let price = 0.05 * rng.uniform();
        let objective = |packets: &[usize]| {
            let left = lanes
                .iter()
                .zip(packets)
                .map(|(lane, n)| lane.left_over(*n));
            brute_failure(&lanes, packets, k) + price * left.sum::<f64>()
        };
        let mut best = f64::INFINITY;
        schedules(&lanes, &mut |packets| {
            if packets.iter().sum::<usize>() >= k {
                best = best.min(objective(packets));
            }
        });
        let found = priced(&lanes, &Order::new(&lanes, 0.0), k, price);
        assert!(found.packets.iter().sum::<usize>() >= k);
        near(
            found.failure,
            brute_failure(&lanes, &found.packets, k),
            1e-9,
        );
        let regret = objective(&found.packets) - best;
        assert!(regret > -1e-9);
        exact += usize::from(regret < 1e-9);
        worst = worst.max(regret);
    }
    assert!(
        exact * 10 >= CASES * 8 && worst < 0.1,
        "{exact} of {CASES}, worst {worst}"
    );
}
