use super::surplus::BUCKET;
use super::*;
use crate::path::ArrivalForecast;
use crate::sched::tests::{Backlog, path};
use crate::sched::{Common, PathView};
use crate::wire::PathId;
use alloc::vec::Vec;
use alloc::{format, vec};
use marline_base::{Rate, Rng};

/// 1200 bytes take 2 ms on either path. Clocks differ by an hour; the second path is 10 ms longer.
fn paths(late_us: f64) -> [PathView; 2] {
    let mut paths = [path(0), path(1)];
    for (p, offset_us) in paths.iter_mut().zip([0.0, 10_000.0]) {
        p.rate = Rate::from_kbps(4_800);
        p.min_rtt = Duration::from_millis(100);
        p.forecast = Some(ArrivalForecast {
            offset_us: 3.6e9 + offset_us,
            behind_us: 0.0,
            late_us,
            due: None,
            free: Instant::ZERO,
            service_us: 2_000.0 / 1_200.0,
        });
    }
    paths
}

fn hedge(text: &str) -> Hedge {
    let choice: Choice = text.parse().expect("a choice");
    Hedge::new(&choice)
}

fn plan(hedge: &mut Hedge, now: Instant, paths: &mut [PathView], symbols: u64) -> Backlog {
    let mut backlog = Backlog::of(symbols);
    hedge.plan(&mut Plan::new(now, paths, &mut backlog));
    backlog
}

#[test]
fn the_forecast_says_where_a_packet_arrives_first() {
    // 0 2 4 6 8 10 on the first path; the tie goes to it; then 10 on the second, and so on.
    let backlog = plan(
        &mut hedge("hedge:copies=off"),
        Instant::from_millis(200),
        &mut paths(0.0),
        8,
    );
    assert_eq!(backlog.sent_on(), [0, 0, 0, 0, 0, 0, 1, 0]);
}

/// Where packets are lost, the path that is 10 ms longer takes what finds a queue on the other, if the
/// stream needs both.
#[test]
fn a_quick_path_keeps_no_queue_while_a_longer_one_is_needed() {
    let on = |target: &str, loss: f64, late_us: f64| {
        let mut views = paths(late_us);
        views.iter_mut().for_each(|view| view.loss = loss);
        let mut hedge = hedge(&format!("hedge:copies=off:target={target}"));
        let now = Instant::from_millis(200);
        plan(&mut hedge, now, &mut views, 6).sent_on().to_vec()
    };
    // On the longer one, one packet may stand before another.
    assert_eq!(on("8", 0.02, 0.0), [0, 1, 1, 0, 0, 0]);
    // 4.8 Mb/s, less what is sent again and 3 %, are 4.47.
    assert_eq!(on("4.5", 0.02, 0.0), [0, 1, 1, 0, 0, 0]);
    assert_eq!(on("4.4", 0.02, 0.0), [0; 6]);
    assert_eq!(on("8", 0.0, 0.0), [0; 6], "nothing is lost");
    // 5 ms late are less than three packets.
    assert_eq!(on("8", 0.02, 5e3)[..3], [0, 1, 1]);
    assert_eq!(on("8", 0.02, 7e3), [0; 6], "times vary");
}

/// A queue adds to a delay that varies: what may come later than by the longer path goes there, if the
/// stream needs both.
#[test]
fn a_jittery_path_keeps_no_queue_that_makes_it_the_later_one() {
    let on = |target: &str, late_us: f64, behind_us: f64| {
        let mut views = paths(0.0);
        if let Some(forecast) = &mut views[0].forecast {
            forecast.late_us = late_us;
            forecast.behind_us = behind_us;
        }
        if let Some(forecast) = &mut views[1].forecast {
            forecast.offset_us += 10_000.0;
        }
        let mut hedge = hedge(&format!("hedge:copies=off:target={target}"));
        let now = Instant::from_millis(200);
        plan(&mut hedge, now, &mut views, 6).sent_on().to_vec()
    };
    // The third would come after 6 ms and at most 18 more; by the other path it takes 22, and the next 24.
    assert_eq!(on("8", 12e3, 0.0), [0, 0, 1, 0, 1, 0]);
    assert_eq!(on("8", 5.9e3, 0.0), [0; 6], "three packets' time");
    assert_eq!(
        on("4.1", 12e3, 0.0),
        [0; 6],
        "4.8 Mb/s, less 3 % and a tenth, suffice"
    );
    // Where packets overtake each other, 12 ms more count: the sixth would come after 24 ms.
    assert_eq!(on("8", 12e3, 6.1e3), [0, 0, 0, 0, 0, 1]);
}

/// Of a path whose delay varies nobody sees the queue in time: it has no larger share of its rate than the
/// paths have together, if a longer one is idle that the stream needs.
#[test]
fn a_jittery_path_is_filled_no_more_than_all_paths_together() {
    let share_beside = |told: f64, target: &str, late_us: f64| {
        let mut hedge = hedge(&format!("hedge:copies=off:target={target}"));
        // 1200 bytes every 1.2 ms, of 9.6 Mb/s: all queues are empty each time.
        let sent = (0..400).map(|n| {
            let now = Instant::from_micros(200_000 + 1_200 * n);
            let mut views = paths(0.0);
            if let Some(forecast) = &mut views[0].forecast {
                forecast.late_us = late_us;
            }
            if let Some(forecast) = &mut views[1].forecast {
                forecast.service_us /= told;
            }
            views[1].congestion.bandwidth = Some(Rate::from_kbps(4_800));
            plan(&mut hedge, now, &mut views, 1).sent_on()[0]
        });
        sent.filter(|path| *path == 0).count()
    };
    let share = |target: &str, late_us: f64| share_beside(1.0, target, late_us);
    assert!(
        share("8", 12e3).abs_diff(200) <= 10,
        "half each: {}",
        share("8", 12e3)
    );
    assert_eq!(share("8", 0.0), 400, "what is steady shows its queue");
    assert_eq!(share("8", 6.5e3), 400, "still sooner at the latest");
    assert_eq!(share("4.1", 12e3), 400, "the longer one is not needed");
    assert_eq!(share("9.2", 12e3), 400, "too little is there for all");
    // Of what the other one is told to carry only what was measured counts, or 100 would go here.
    let beside = share_beside(3.0, "8", 12e3);
    assert!(beside > 175, "{beside}");
}

/// What has waited would come later by the longer path than all that was written meanwhile.
#[test]
fn what_is_planned_anew_stays_on_the_quick_path() {
    let mut hedge = hedge("hedge:copies=off:target=8");
    let lossy = |window| {
        let mut views = paths(0.0);
        views.iter_mut().for_each(|view| view.loss = 0.02);
        views[0].window = window;
        views
    };
    let now = Instant::from_millis(200);
    plan(&mut hedge, now, &mut lossy(0), 4);
    let mut backlog = Backlog::of(2).with_waiting(&[4, 0]);
    let mut views = lossy(1_000_000);
    hedge.plan(&mut Plan::new(now + REVISE, &mut views, &mut backlog));
    assert_eq!(backlog.sent_on(), [0, 0, 0, 0, 1, 1]);
}

#[test]
fn copies_go_where_the_first_path_may_be_later() {
    // The copy arrives 10 ms later, and must gain three packets' time, 6 ms.
    for (late_us, copies) in [(15_000.0, 0), (17_000.0, 1)] {
        let mut hedge = hedge("hedge:target=1");
        let now = Instant::from_millis(200);
        let backlog = plan(&mut hedge, now, &mut paths(late_us), 1);
        assert_eq!(backlog.sent_on(), [0]);
        assert_eq!(backlog.copied_to().len(), copies, "{late_us} µs");
    }
}

#[test]
fn no_copy_behind_a_long_queue() {
    // Three packets stand before it, then four.
    for (ahead, copies) in [(6, 1), (8, 0)] {
        let mut hedge = hedge("hedge:target=1");
        let now = Instant::from_millis(200);
        let mut views = paths(40_000.0);
        if let Some(forecast) = &mut views[1].forecast {
            forecast.free = now + Duration::from_millis(ahead);
        }
        let backlog = plan(&mut hedge, now, &mut views, 1);
        assert_eq!(backlog.copied_to().len(), copies, "{ahead} ms");
    }
}

#[test]
fn no_path_is_filled_beyond_its_pipe_whatever_its_window() {
    // 4.8 Mb/s over 100 ms are 50 packets; 1.25 pipes and 3 packets are 65, and a burst that may be lost 8 more.
    for (loss, most) in [(0.0, 65), (0.02, 73)] {
        let mut views = paths(0.0);
        views[1].in_flight = 1_000_000;
        views[0].window = 1_000_000;
        views[0].loss = loss;
        let mut hedge = hedge("hedge:copies=off");
        let backlog = plan(&mut hedge, Instant::from_millis(200), &mut views, 500);
        let sent = backlog.sent_on().iter().filter(|&&p| p == 0).count();
        assert_eq!(sent, most, "{loss}");
    }
}

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
/// stretch, what was copied, repaired and insured is at most what the rates beyond the target came to, and a bucket.
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
        // Bytes of redundancy less those that the surplus brought, and the least that this ever was.
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

/// What the session sends again uses up the surplus as copies do, whoever asked for it; copies are paid once.
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
    };
    let now = Instant::from_millis(1_000);
    // 9.6 Mb/s, less 10 % and 3 %, are 1048 kB/s, and the bucket 100 ms of what is beyond 7 Mb/s: 14 packets and
    // a third. The first copy is paid and has not left.
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
fn a_spread_of_a_few_packets_is_not_worth_a_copy() {
    // Three packets are 6 ms; the second path, made equal, would take a copy.
    for (late_us, copies) in [(5_900.0, 0), (6_100.0, 1)] {
        let mut hedge = hedge("hedge:target=1");
        let mut views = paths(late_us);
        views[1].forecast = views[0].forecast;
        let backlog = plan(&mut hedge, Instant::from_millis(200), &mut views, 1);
        assert_eq!(backlog.copied_to().len(), copies, "{late_us} µs");
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

#[test]
fn a_packet_is_of_use_when_those_before_it_are_there() {
    // Packets of the first path wait 9, then 11 ms for those before them; the second's come 10 ms
    // later than the first's.
    for (behind_us, path) in [(9_000.0, 0), (11_000.0, 1)] {
        let mut views = paths(0.0);
        if let Some(forecast) = &mut views[0].forecast {
            forecast.behind_us = behind_us;
        }
        let mut hedge = hedge("hedge");
        let backlog = plan(&mut hedge, Instant::from_millis(200), &mut views, 1);
        assert_eq!(backlog.sent_on(), [path], "{behind_us} µs");
    }
}

#[test]
fn a_path_of_which_nothing_is_heard_is_later_by_its_silence() {
    for (text, silent, path) in [
        ("hedge", 9, 0),
        ("hedge", 11, 1),
        ("hedge:silence=off", 11, 0),
    ] {
        let now = Instant::from_millis(200);
        let mut views = paths(0.0);
        if let Some(forecast) = &mut views[0].forecast {
            forecast.due = Some(Instant::from_millis(200 - silent));
        }
        let backlog = plan(&mut hedge(text), now, &mut views, 1);
        assert_eq!(backlog.sent_on(), [path], "{text}, {silent} ms");
    }
}

#[test]
fn silence_that_is_no_longer_than_the_usual_lateness_says_nothing() {
    // 4 ms are counted on, and the second path is 6 ms longer then.
    for (silent, path) in [(9, 0), (11, 1)] {
        let now = Instant::from_millis(200);
        let mut views = paths(0.0);
        if let Some(forecast) = &mut views[0].forecast {
            forecast.late_us = 8_000.0;
            forecast.due = Some(Instant::from_millis(200 - silent));
        }
        let backlog = plan(&mut hedge("hedge"), now, &mut views, 1);
        assert_eq!(backlog.sent_on(), [path], "{silent} ms");
    }
}

#[test]
fn a_burst_of_losses_is_not_taken_for_a_step_of_the_delay() {
    // Eight packets are 16 ms, and the second path is 10 ms longer.
    for (loss, silent, path) in [(0.02, 25, 0), (0.02, 27, 1), (0.0, 25, 1)] {
        let now = Instant::from_millis(200);
        let mut views = paths(0.0);
        for view in &mut views {
            view.loss = loss;
        }
        if let Some(forecast) = &mut views[0].forecast {
            forecast.due = Some(Instant::from_millis(200 - silent));
        }
        let backlog = plan(&mut hedge("hedge"), now, &mut views, 1);
        assert_eq!(backlog.sent_on(), [path], "{loss}, {silent} ms");
    }
}

#[test]
fn what_a_lossy_path_carries_of_a_flow_without_a_code_is_copied() {
    for (loss, copies) in [(0.0004, 0), (0.01, 1)] {
        let mut hedge = hedge("hedge:target=1");
        let mut views = paths(0.0);
        views[0].loss = loss;
        let backlog = plan(&mut hedge, Instant::from_millis(200), &mut views, 1);
        assert_eq!(backlog.copied_to().len(), copies, "{loss}");
    }
}

/// What has to be sent again finds four packets in the bucket; copies against jitter leave nothing for that.
#[test]
fn copies_against_losses_leave_some_of_the_surplus() {
    let now = Instant::from_millis(200);
    let copies = |loss: f64, late_us: f64, packets: f64| {
        let mut hedge = hedge("hedge:target=1");
        let mut views = paths(late_us);
        views[0].loss = loss;
        // A tenth of a second's; nothing is filled at the same moment.
        hedge.budget.bucket.fill(now, 12_000.0 * packets);
        plan(&mut hedge, now, &mut views, 1).copied_to().len()
    };
    assert_eq!([4.9, 5.0].map(|packets| copies(0.01, 0.0, packets)), [0, 1]);
    assert_eq!([0.9, 1.0].map(|packets| copies(0.0, 1e5, packets)), [0, 1]);
}

#[test]
fn repair_symbols_leave_as_much_of_the_surplus() {
    let now = Instant::from_millis(200);
    let repairs = |packets: f64| {
        let mut hedge = hedge("hedge:target=1");
        let mut views = paths(0.0);
        views[0].loss = 0.01;
        hedge.budget.bucket.fill(now, 12_000.0 * packets);
        let mut backlog = Backlog::of(1).coded(100);
        hedge.plan(&mut Plan::new(now, &mut views, &mut backlog));
        backlog.repaired_on().len()
    };
    assert_eq!([4.9, 5.0].map(repairs), [0, 1]);
}

/// The quick path is busy, and the other one has room for a repair symbol.
#[test]
fn no_repair_symbol_comes_later_than_what_is_lost_twice() {
    let now = Instant::from_millis(200);
    let repaired = |trips: f64| {
        let mut views = paths(0.0);
        views[0].loss = 0.01;
        let trip = micros(views[0].srtt);
        let quick = views[0].forecast.unwrap().offset_us;
        views[0].forecast.as_mut().unwrap().free = now + Duration::from_millis(6);
        views[1].forecast.as_mut().unwrap().offset_us = quick + trips * trip;
        let mut hedge = hedge("hedge:target=1");
        hedge.budget.bucket.fill(now, 120_000.0);
        let mut backlog = Backlog::of(1).coded(100);
        hedge.plan(&mut Plan::new(now, &mut views, &mut backlog));
        backlog.repaired_on().to_vec()
    };
    assert_eq!([2.9, 3.1].map(repaired), [vec![1], vec![]]);
}

/// Flows of one session have one surplus: over any stretch, what all of them copied, repaired and insured is at most what
/// the rates beyond all their targets came to, and two buckets, the second one for what is insured between two plans.
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

#[test]
fn no_path_lends_its_clock_before_all_have_told() {
    // Half the smallest round trips decide: 20 and 10 ms.
    let mut views = paths(0.0);
    views[0].forecast = None;
    views[0].min_rtt = Duration::from_millis(40);
    views[1].min_rtt = Duration::from_millis(20);
    let mut hedge = hedge("hedge");
    let backlog = plan(&mut hedge, Instant::from_millis(200), &mut views, 1);
    assert_eq!(backlog.sent_on(), [1]);
}

/// A repair symbol mends what is lost or late; where there are losses, no copy takes its place.
#[test]
fn repair_symbols_have_the_whole_surplus_where_packets_are_lost() {
    for (loss, copied) in [(0.0, true), (0.02, false)] {
        let mut views = paths(1e5);
        views[0].loss = loss;
        let mut backlog = Backlog::of(8).coded(100);
        let now = Instant::from_millis(1_000);
        hedge("hedge:target=2").plan(&mut Plan::new(now, &mut views, &mut backlog));
        let [copies, repairs] = [backlog.copied_to(), backlog.repaired_on()].map(<[_]>::is_empty);
        assert_eq!((copies, repairs), (!copied, copied), "{loss}");
    }
}

/// What a path holds in a usual round is for the stream, what it holds at the least for redundancy; and where the
/// stream starves, the window alone counts.
#[test]
fn a_usual_round_is_room_for_the_stream_and_not_for_redundancy() {
    let now = Instant::from_millis(200);
    let lane = |usual: Option<Duration>, bound| {
        let [mut view, _] = paths(0.0);
        view.min_rtt = Duration::from_millis(40);
        view.congestion.min_rtt = usual;
        view.window = 300_000;
        let known = view.forecast;
        Lane::new(now, &view, 0.0, known.as_ref(), true, bound)
    };
    // 600 bytes take a millisecond: 1.25 times 40 ms and three packets of 1200 bytes are 33600.
    let (least, usual) = (
        lane(None, true),
        lane(Some(Duration::from_millis(80)), true),
    );
    assert!(least.has_room(33_600.0) && !least.has_room(33_700.0));
    assert!(usual.has_room(63_600.0) && !usual.has_room(63_700.0));
    assert!(usual.takes(3.0, 33_600.0, 33_600.0) && !usual.takes(3.0, 33_700.0, 33_700.0));
    let starving = lane(None, false);
    assert!(starving.has_room(300_000.0) && !starving.has_room(300_001.0));
    assert!(!starving.takes(3.0, 33_700.0, 33_700.0));
}
