//! What is spent on redundancy: never more than the surplus, and what that is.

use super::super::surplus::BUCKET;
use super::*;
use crate::sched::Common;
use marline_base::Rng;

/// The budget: over any stretch no more bytes are copied than the surplus brings, and a bucket.
#[test]
fn copies_never_exceed_the_surplus() {
    for seed in 0..50 {
        let mut rng = Rng::new(seed);
        let mut hedge = hedge("hedge:target=6");
        let mut copied: Vec<(Instant, f64)> = Vec::new();
        let mut now = Instant::from_millis(1_000);
        for _ in 0..400 {
            now += Duration::from_micros(rng.below(5_000));
            let mut views = paths(1e5);
            for view in &mut views {
                view.rate = Rate::from_kbps(4_800);
                view.in_flight = rng.below(20) * 1_200;
            }
            let backlog = plan(&mut hedge, now, &mut views, rng.below(4));
            copied.push((now, 1_200.0 * backlog.copied_to().len() as f64));
        }
        assert!(
            copied.iter().any(|(_, bytes)| *bytes > 0.0),
            "some are copied"
        );
        // 9.6 − 6 Mb/s are 450 kB/s.
        for (i, (from, _)) in copied.iter().enumerate() {
            let mut sum = 0.0;
            for (to, bytes) in &copied[i..] {
                sum += bytes;
                let allowed = 450e3 * (to.since(*from).as_secs_f64() + BUCKET);
                assert!(sum <= allowed + 1e-6, "seed {seed}: {sum} > {allowed}");
            }
        }
    }
}

/// The same over two to four random paths whose rates change, which lose and jitter: over any
/// stretch, what was copied, repaired and insured is at most what the rates beyond the target came
/// to, and a bucket.
#[test]
fn redundancy_never_exceeds_the_surplus_of_random_links() {
    let (mut copies, mut repairs, mut insured) = (0, 0, 0);
    let symbol = Symbol {
        unit: 0,
        offset: 0,
        len: 1_200,
    };
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        let target = 1 + rng.below(20);
        let mut hedge = hedge(&format!("hedge:target={target}"));
        let count = 2 + rng.below(3);
        let mut views: Vec<PathView> = (0..count).map(path).collect();
        for view in &mut views {
            view.min_rtt = Duration::from_millis(200);
        }
        let mut now = Instant::from_millis(1_000);
        // Bytes of redundancy less those that the surplus brought, and the least that this ever
        // was.
        let (mut balance, mut least) = (0.0, 0.0_f64);
        let mut bucket = 0.0_f64;
        for step in 0..500 {
            let gap = Duration::from_micros(rng.below(20_000));
            now += gap;
            if step == 0 || rng.chance(0.05) {
                for view in &mut views {
                    view.rate = Rate::from_kbps(500 + rng.below(15_000));
                    view.loss = 0.02 * rng.uniform();
                    view.forecast = Some(ArrivalForecast {
                        offset_us: 1e5 * rng.uniform(),
                        behind_us: 1e3 * rng.uniform(),
                        late_us: 1e5 * rng.uniform(),
                        ceiling_us: 0.0,
                        swing_us: 0.0,
                        due: None,
                        free: now,
                        service_us: 8e6 / view.rate.as_bps() as f64,
                    });
                }
            }
            for view in &mut views {
                // Little enough that every path has room.
                view.in_flight = rng.below(5) * 1_200;
                view.queued = 0;
            }
            let rates: f64 = views.iter().map(|v| v.rate.as_bps() as f64 / 8.0).sum();
            let surplus = (rates - target as f64 * 1e6 / 8.0).max(0.0);
            bucket = bucket.max(surplus * BUCKET);
            let mut backlog = Backlog::of(rng.below(6));
            if seed % 2 == 0 {
                backlog = backlog.coded(100);
            }
            hedge.plan(&mut Plan::new(now, &mut views, &mut backlog));
            let again = (0..rng.below(2)).filter(|_| hedge.insures(now, &symbol));
            let [copied, mended] = [backlog.copied_to(), backlog.repaired_on()].map(<[_]>::len);
            let again = again.count();
            copies += copied;
            repairs += mended;
            insured += again;
            balance -= surplus * gap.as_secs_f64();
            least = least.min(balance);
            balance += 1_200.0 * (copied + mended + again) as f64;
            assert!(balance - least <= bucket + 1e-3, "seed {seed}, step {step}");
        }
    }
    let all = [copies, repairs, insured];
    assert!(all.iter().all(|n| *n > 1_000), "{all:?}");
}

/// What the session sends again uses up the surplus as copies do, whoever asked for it; copies are
/// paid once.
#[test]
fn what_is_sent_again_is_paid_from_the_surplus() {
    let left = |kind| Feedback {
        symbol: Symbol {
            unit: 0,
            offset: 0,
            len: 1_200,
        },
        kind,
        path: PathId(0),
        outcome: Outcome::Sent,
        sent: Instant::from_millis(1_000),
        arrived_us: None,
        own_way: true,
    };
    let now = Instant::from_millis(1_000);
    // 9.6 Mb/s, less 10 % and 3 %, are 1048 kB/s, and the bucket 100 ms of what is beyond 7 Mb/s:
    // 14 packets and a third. The first copy is paid and has not left.
    for (kind, times, copies) in [
        (EmissionKind::Source, 20, 1),
        (EmissionKind::Retransmission, 13, 1),
        (EmissionKind::Retransmission, 14, 0),
        (EmissionKind::Copy, 13, 1),
        (EmissionKind::Copy, 14, 0),
    ] {
        let mut hedge = hedge("hedge:target=7");
        let first = plan(&mut hedge, now, &mut paths(1e5), 1);
        assert_eq!(first.copied_to().len(), 1);
        (0..times).for_each(|_| hedge.on_feedback(now, &left(kind)));
        let backlog = plan(&mut hedge, now, &mut paths(1e5), 1);
        assert_eq!(backlog.copied_to().len(), copies, "{kind:?} {times}");
    }
}

#[test]
fn a_flow_that_finds_no_room_has_no_surplus() {
    let mut hedge = hedge("hedge:target=1");
    let now = Instant::from_millis(200);
    let mut full = paths(1e5);
    for view in &mut full {
        view.in_flight = view.window;
    }
    plan(&mut hedge, now, &mut full, 1);
    // The same moment: nothing was filled since.
    let backlog = plan(&mut hedge, now, &mut paths(1e5), 1);
    assert_eq!(backlog.copied_to(), []);
}

#[test]
fn below_the_target_nothing_is_copied() {
    let mut hedge = hedge("hedge:target=20");
    let backlog = plan(&mut hedge, Instant::from_millis(200), &mut paths(1e5), 5);
    assert_eq!(backlog.copied_to(), []);
}

/// What has to be sent again finds four packets in the bucket; copies against jitter leave nothing
/// for that.
#[test]
fn copies_against_losses_leave_some_of_the_surplus() {
    let now = Instant::from_millis(200);
    let copies = |loss: f64, late_us: f64, packets: f64| {
        let mut hedge = hedge("hedge:target=1");
        let mut views = paths(late_us);
        views[0].loss = loss;
        // A tenth of a second's; nothing is filled at the same moment.
        hedge.budget.bucket.fill(now, 12_000.0 * packets, 0.0);
        plan(&mut hedge, now, &mut views, 1).copied_to().len()
    };
    assert_eq!([4.9, 5.0].map(|packets| copies(0.01, 0.0, packets)), [0, 1]);
    assert_eq!([0.9, 1.0].map(|packets| copies(0.0, 1e5, packets)), [0, 1]);
}

#[test]
fn repair_symbols_leave_as_much_of_the_surplus() {
    let now = Instant::from_millis(200);
    let repairs = |packets: f64| {
        let mut hedge = hedge("hedge:target=4");
        let mut views = paths(0.0);
        (views[0].loss, views[0].in_flight) = (0.05, 1_200);
        hedge.budget.bucket.fill(now, 12_000.0 * packets, 0.0);
        let mut backlog = Backlog::of(1).coded(100);
        hedge.plan(&mut Plan::new(now, &mut views, &mut backlog));
        backlog.repaired_on().len()
    };
    assert_eq!([4.9, 5.0].map(repairs), [0, 1]);
}

/// Flows of one session have one surplus: over any stretch, what all of them copied, repaired and
/// insured is at most what the rates beyond all their targets came to, and two buckets, the second
/// one for what is insured between two plans.
#[test]
fn several_flows_spend_one_surplus() {
    let symbol = Symbol {
        unit: 0,
        offset: 0,
        len: 1_200,
    };
    let (mut spent, mut insured) = (0, 0);
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        let mut common = Common::default();
        // Options set no flow apart.
        let targets: Vec<u64> = (0..2 + rng.below(3)).map(|_| 1 + rng.below(3)).collect();
        let flow = |target: &u64| hedge(&format!("hedge:target={target}"));
        let mut flows: Vec<Hedge> = targets.iter().map(flow).collect();
        let mut views = paths(1e5);
        views[0].loss = if seed % 2 == 0 { 0.02 } else { 0.0 };
        let surplus = (9.6e6 - 1e6 * targets.iter().sum::<u64>() as f64).max(0.0) / 8.0;
        let mut now = Instant::from_millis(1_000);
        let (mut balance, mut least) = (0.0, 0.0_f64);
        for step in 0..600 {
            let gap = Duration::from_micros(rng.below(2_000));
            now += gap;
            for view in &mut views {
                view.in_flight = rng.below(5) * 1_200;
                view.queued = 0;
                if let Some(forecast) = &mut view.forecast {
                    forecast.free = now;
                }
            }
            // All are there from the beginning.
            let first = step < flows.len();
            let index = if first {
                step
            } else {
                rng.below(flows.len() as u64) as usize
            };
            let mut backlog = Backlog::of(if first { 0 } else { rng.below(4) });
            if seed % 4 < 2 {
                backlog = backlog.coded(100);
            }
            flows[index].plan(&mut Plan::new(now, &mut views, &mut backlog).among(&mut common));
            let again = (0..rng.below(2)).filter(|_| flows[index].insures(now, &symbol));
            let again = if first { 0 } else { again.count() };
            let redundant = backlog.copied_to().len() + backlog.repaired_on().len();
            spent += redundant;
            insured += again;
            balance -= surplus * gap.as_secs_f64();
            least = least.min(balance);
            balance += 1_200.0 * (redundant + again) as f64;
            let most = 2.0 * BUCKET * surplus;
            assert!(
                balance - least <= most + 1e-3,
                "seed {seed}, step {step}: {balance} {least} {most}"
            );
        }
    }
    assert!(spent > 1_000 && insured > 1_000, "{spent} {insured}");
}

/// A repair symbol mends what is lost or late; where there are losses, no copy takes its place.
#[test]
fn repair_symbols_have_the_whole_surplus_where_packets_are_lost() {
    for (loss, copied) in [(0.0, true), (0.05, false)] {
        let mut views = paths(1e5);
        (views[0].loss, views[0].in_flight) = (loss, 1_200);
        let mut backlog = Backlog::of(8).coded(100);
        let now = Instant::from_millis(1_000);
        hedge("hedge:target=4").plan(&mut Plan::new(now, &mut views, &mut backlog));
        let [copies, repairs] = [backlog.copied_to(), backlog.repaired_on()].map(<[_]>::is_empty);
        assert_eq!((copies, repairs), (!copied, copied), "{loss}");
    }
}

/// A call beside downloads: each packet goes over both paths, and the bucket is as full afterwards.
#[test]
fn what_is_negligible_goes_everywhere_and_costs_the_bucket_nothing() {
    let run = |in_flight: u64| {
        let mut hedge = hedge("hedge:target=0.1");
        let mut common = Common::bounded(true);
        let mut copies = 0;
        for ms in (0..60_000).step_by(20) {
            let now = Instant::from_millis(200 + ms);
            let mut views = paths(0.0);
            for view in &mut views {
                (view.in_flight, view.srtt) = (in_flight, Duration::from_millis(100));
            }
            let mut backlog = Backlog::of(1);
            hedge.plan(&mut Plan::new(now, &mut views, &mut backlog).among(&mut common));
            for path in backlog.copied_to() {
                copies += 1;
                let symbol = Symbol {
                    unit: 0,
                    offset: 0,
                    len: 250,
                };
                hedge.on_feedback(
                    now,
                    &Feedback {
                        symbol,
                        kind: EmissionKind::Copy,
                        path: views[*path].id,
                        sent: now,
                        outcome: Outcome::Sent,
                        arrived_us: None,
                        own_way: true,
                    },
                );
            }
        }
        common.exchange(&Choice::from(&ENTRY), &mut hedge.budget.bucket);
        (copies, hedge.budget.bucket.tokens)
    };
    // 60 kB in flight for 100 ms are 600 kB/s, of which 12.5 kB/s are 2 %.
    let (copies, tokens) = run(30_000);
    assert_eq!(copies, 3_000);
    assert!(tokens > 0.0, "{tokens}");
    assert_eq!(run(1_000).0, 0, "alone it would be a second stream");
}
