//! Plans over paths: bounds that hold whatever comes in, and the paper's set-up.

use super::*;
use crate::sched::capacity::{Backlog, Batch, CapacityForecast, Lateness};

fn way(rng: &mut Rng) -> Way {
    let wild = |rng: &mut Rng, scale: f64| match rng.below(12) {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => -1.0,
        3 => 0.0,
        _ => scale * rng.uniform(),
    };
    let batch = Batch {
        came: wild(rng, 0.1),
        bits: wild(rng, 2e6),
    };
    let (mean, sd) = (wild(rng, 1e8), wild(rng, 2e7));
    Way {
        lateness: Lateness {
            backlog: Backlog::unseen(&[batch], wild(rng, 0.1), wild(rng, 0.1), mean, sd),
            capacity: CapacityForecast {
                mean,
                sd,
                outage: rng.uniform(),
                falling: rng.chance(0.2),
            },
            window: wild(rng, 0.1),
            slots: rng.below(5) as u32,
            packet: 12_000.0,
        },
        limits: Limits {
            least: rng.below(20) as u32,
            most: match rng.below(4) {
                0 => u32::MAX,
                _ => rng.below(300) as u32,
            },
        },
        loss: if rng.chance(0.5) { rng.uniform() } else { 0.0 },
    }
}

#[test]
fn no_input_breaks_a_bound() {
    let planner = Planner::new();
    let mut rng = Rng::new(61);
    for _ in 0..300 {
        let ways: Vec<Way> = (0..rng.below(19)).map(|_| way(&mut rng)).collect();
        let k = match rng.below(5) {
            0 => rng.below(100_000) as u32,
            _ => rng.below(200) as u32,
        };
        let demand = Demand {
            reliability: [0.98, 0.0, 1.0, f64::NAN][rng.below(4) as usize],
            tolerance: [0.0, 0.01, f64::NAN][rng.below(3) as usize],
        };
        let price = (PRICE, 0.03 * rng.uniform());
        let mut schedules = vec![
            planner.jump(&ways, k, demand),
            planner.priced(&ways, k, price.0, price.1),
            planner.hybrid(&ways, k, demand, price),
        ];
        if let Some((most, schedule)) = planner.leap(&ways, k, demand) {
            assert!(most <= k);
            schedules.push(schedule);
        }
        for schedule in schedules {
            assert_eq!(schedule.packets.len(), ways.len());
            assert!((0.0..=1.0).contains(&schedule.failure), "{schedule:?}");
            for (packets, way) in schedule.packets.iter().zip(&ways) {
                let Limits { least, most } = way.limits;
                assert!((least..=most.max(least)).contains(packets), "{schedule:?}");
            }
        }
    }
}

/// The balanced scenario with empty queues: two paths of 40 ± 8 Mb/s, RTT 25 ms, deadline 35 ms.
fn balanced() -> Vec<Way> {
    let way = Way {
        lateness: Lateness {
            backlog: Backlog::known(0.0),
            capacity: CapacityForecast::normal(40e6, 8e6),
            window: 22.5e-3,
            slots: 1,
            packet: 12_000.0,
        },
        limits: Limits {
            least: 10,
            most: u32::MAX,
        },
        loss: 0.0,
    };
    vec![way.clone(), way]
}

const DEMAND: Demand = Demand {
    reliability: 0.98,
    tolerance: 0.0,
};

#[test]
fn the_bound_of_the_paper_is_105_packets() {
    // Full repetition and no queue: (80 − 2.054·11.31) Mb/s · 22.5 ms are 106 packets; that a path
    // brings whole packets only costs one (the errata's table: 157.5 kB).
    let planner = Planner::new();
    let (k, schedule) = planner.leap(&balanced(), 1_000, DEMAND).expect("one fits");
    assert_eq!(k, 105);
    assert!(schedule.feasible && !planner.jump(&balanced(), 106, DEMAND).feasible);
}

#[test]
fn leap_sends_no_path_more_than_the_block() {
    // A path whose capacity is nearly known is the surest until long after it brings the block
    // alone, because the other one's spreads.
    let planner = Planner::new();
    let mut unlike = 0;
    for rate in [1e6, 2e6, 4e6, 8e6] {
        for part in [0.02, 0.05, 0.1, 0.2, 0.3] {
            let mut ways = balanced();
            for (way, sd) in ways.iter_mut().zip([part * 40e6, 0.6 * rate]) {
                way.limits.least = 0;
                way.lateness.capacity.sd = sd;
            }
            ways[1].lateness.capacity.mean = rate;
            let (k, schedule) = planner.leap(&ways, 1_000, DEMAND).expect("one fits");
            for packets in &schedule.packets {
                assert!(*packets <= k, "{k}: {schedule:?}");
            }
            assert!(
                schedule.feasible && schedule.failure <= 0.02,
                "{k}: {schedule:?}"
            );
            // The same as JUMP's for it.
            let jump = planner.jump(&ways, k, DEMAND);
            assert_eq!(schedule.packets, jump.packets, "{k}");
            unlike += usize::from(schedule.total() > u64::from(k));
        }
    }
    assert!(unlike > 0, "nowhere was there anything to spare");
}

#[test]
fn redundancy_grows_with_the_block_until_it_costs_more_than_it_gains() {
    let planner = Planner::new();
    let redundancy = |k: u32| {
        let plan = planner.hybrid(&balanced(), k, DEMAND, (PRICE, 25e-3));
        (plan.total() as f64 / f64::from(k) - 1.0, plan.feasible)
    };
    assert_eq!(redundancy(53), (0.0, true), "80 kB need none");
    let (at_80, at_97) = (redundancy(80), redundancy(97));
    assert!(at_80.1 && (0.0..0.08).contains(&at_80.0), "{at_80:?}");
    // The optimal policy sends about a third more at 145 kB when queues are empty.
    assert!(at_97.1 && (0.15..0.40).contains(&at_97.0), "{at_97:?}");
    let at_133 = redundancy(133);
    assert!(
        !at_133.1 && at_133.0 < 0.3,
        "200 kB cannot arrive: {at_133:?}"
    );
}

#[test]
fn a_path_that_takes_a_whole_block_takes_all_steps_of_it() {
    let lateness = Lateness {
        backlog: Backlog::known(0.0),
        capacity: CapacityForecast::normal(50e6, 1e6),
        window: 60e-3,
        slots: 2,
        packet: 1e4,
    };
    let limits = Limits {
        least: 0,
        most: 141,
    };
    let lane = Lane::new(Planner::new().table(), &lateness, limits, 2, None);
    assert_eq!(lane.most(), 71);
}

#[test]
fn steps_of_large_blocks_lose_little() {
    // The same path a hundred times as fast: 10 500 packets fit.
    let planner = Planner::new();
    let mut ways = balanced();
    for way in &mut ways {
        way.lateness.capacity = CapacityForecast::normal(4e9, 8e8);
    }
    let (k, schedule) = planner.leap(&ways, 60_000, DEMAND).expect("one fits");
    assert!((10_300..10_620).contains(&k), "{k}");
    assert!(schedule.failure <= 0.02);
}
