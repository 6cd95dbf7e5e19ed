use super::*;
use crate::law::ArrivalForecast;
use crate::sched::PathView;
use crate::sched::tests::{Backlog, path};
use crate::wire::PathId;
use alloc::vec::Vec;
use alloc::{format, vec};
use marline_base::Duration;
use marline_base::Rate;

mod spending;

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
            ceiling_us: 0.0,
            swing_us: 0.0,
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

/// Where packets are lost, the path that is 10 ms longer takes what finds a queue on the other, if
/// the stream needs both.
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

/// A queue adds to a delay that varies: what may come later than by the longer path goes there, if
/// the stream needs both.
#[test]
fn a_jittery_path_keeps_no_queue_that_makes_it_the_later_one() {
    let told = |options: &str, late_us: f64, behind_us: f64, loss: f64| {
        let mut views = paths(0.0);
        views.iter_mut().for_each(|view| view.loss = loss);
        if let Some(forecast) = &mut views[0].forecast {
            forecast.late_us = late_us;
            forecast.behind_us = behind_us;
        }
        if let Some(forecast) = &mut views[1].forecast {
            forecast.offset_us += 10_000.0;
        }
        let mut hedge = hedge(&format!("hedge:copies=off:{options}"));
        let now = Instant::from_millis(200);
        plan(&mut hedge, now, &mut views, 6).sent_on().to_vec()
    };
    let on = |target: &str, late_us: f64, behind_us: f64| {
        told(&format!("target={target}"), late_us, behind_us, 0.0)
    };
    // The third would come after 6 ms and at most 18 more; by the other path it takes 22, and the
    // next 24.
    assert_eq!(on("8", 12e3, 0.0), [0, 0, 1, 0, 1, 0]);
    assert_eq!(on("8", 5.9e3, 0.0), [0; 6], "three packets' time");
    assert_eq!(
        on("4.1", 12e3, 0.0),
        [0; 6],
        "4.8 Mb/s, less 3 % and a tenth, suffice"
    );
    // Where packets overtake each other, 12 ms more count: the sixth would come after 24 ms.
    assert_eq!(on("8", 12e3, 6.1e3), [0, 0, 0, 0, 0, 1]);
    // Promptly 18, as above.
    let prompt = |loss| told("target=8:prompt=on", 12e3, 6.1e3, loss);
    assert_eq!(prompt(0.0), [0, 0, 1, 0, 1, 0]);
    assert_eq!(prompt(0.02), told("target=8", 12e3, 6.1e3, 0.02));
}

/// Where both delays wander, the quicker path may be the slower one when its queue is gone: what
/// would queue there goes to the other, if that comes sooner by what was seen for longer.
#[test]
fn of_two_paths_whose_delay_wanders_neither_keeps_a_queue() {
    let on = |target: &str, ceilings_ms: [f64; 2], swings_us: [f64; 2], loss: f64| {
        let mut views = paths(0.0);
        for (i, view) in views.iter_mut().enumerate() {
            view.loss = loss;
            if let Some(forecast) = &mut view.forecast {
                forecast.late_us = 20e3;
                forecast.ceiling_us = 3.6e9 + 1e3 * ceilings_ms[i];
                forecast.swing_us = swings_us[i];
            }
        }
        let mut hedge = hedge(&format!("hedge:copies=off:target={target}"));
        let now = Instant::from_millis(200);
        plan(&mut hedge, now, &mut views, 6).sent_on().to_vec()
    };
    // One may stand before another on either path.
    assert_eq!(on("8", [30.0; 2], [20e3; 2], 0.0), [0, 0, 1, 1, 0, 0]);
    // The fifth would come as late as by the other one, which is 8 ms longer, and the sixth later.
    assert_eq!(on("8", [30.0, 38.0], [20e3; 2], 0.0), [0, 0, 0, 0, 0, 1]);
    assert_eq!(
        on("8", [30.0; 2], [5.9e3; 2], 0.0),
        [0; 6],
        "three packets' time"
    );
    assert_eq!(
        on("8", [30.0; 2], [20e3, 9.9e3], 0.0),
        [0; 6],
        "less than half of the other's"
    );
    assert_eq!(
        on("4.1", [30.0; 2], [20e3; 2], 0.0),
        [0; 6],
        "one path suffices"
    );
    assert_eq!(
        on("8", [30.0; 2], [20e3; 2], 0.02),
        [0; 6],
        "packets are lost"
    );
}

/// What is not heard of in time counts for such a path, too: it may be dark.
#[test]
fn no_queue_gives_way_to_a_path_that_is_silent() {
    let now = Instant::from_millis(200);
    let on = |silent: u64| {
        let mut views = paths(0.0);
        for view in &mut views {
            let forecast = view.forecast.as_mut().unwrap();
            forecast.ceiling_us = 3.6e9 + 30e3;
            forecast.swing_us = 20e3;
        }
        let due = now - Duration::from_millis(silent);
        views[1].forecast.as_mut().unwrap().due = Some(due);
        let mut hedge = hedge("hedge:copies=off:target=8");
        plan(&mut hedge, now, &mut views, 6).sent_on().to_vec()
    };
    assert_eq!(on(0), [0, 0, 1, 1, 0, 0]);
    assert_eq!(on(100), [0; 6]);
}

/// Of a path whose delay varies nobody sees the queue in time: it has no larger share of its rate
/// than the paths have together, if a longer one is idle that the stream needs.
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
    // 4.8 Mb/s over 100 ms are 50 packets; 1.25 pipes and 3 packets are 65, and a burst that may be
    // lost 8 more.
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

/// The quick path is busy, and the other one has room for a repair symbol.
#[test]
fn no_repair_symbol_comes_later_than_what_is_lost_twice() {
    let now = Instant::from_millis(200);
    let repaired = |trips: f64| {
        let mut views = paths(0.0);
        (views[0].loss, views[0].in_flight) = (0.005, 1_200);
        let trip = micros(views[0].srtt);
        let quick = views[0].forecast.unwrap().offset_us;
        views[0].forecast.as_mut().unwrap().free = now + Duration::from_millis(6);
        views[1].forecast.as_mut().unwrap().offset_us = quick + trips * trip;
        let mut hedge = hedge("hedge:target=4");
        hedge.budget.bucket.fill(now, 120_000.0, 0.0);
        let mut backlog = Backlog::of(1).coded(100);
        hedge.plan(&mut Plan::new(now, &mut views, &mut backlog));
        backlog.repaired_on().to_vec()
    };
    assert_eq!([2.9, 3.1].map(repaired), [vec![1], vec![]]);
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

/// What a path holds in a usual round is for the stream, what it holds at the least for redundancy;
/// and where the stream starves, the window alone counts.
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

/// What a path fails to deliver comes again after a round trip; half of that counts.
#[test]
fn a_path_that_flaps_is_judged_by_what_comes_again() {
    // The second path is longer by 10 ms.
    let first = |target: u32, flaps: bool, trip: u64| {
        let mut views = paths(0.0);
        (views[0].flaps, views[0].srtt) = (flaps, Duration::from_millis(trip));
        let mut hedge = hedge(&format!("hedge:copies=off:target={target}"));
        plan(&mut hedge, Instant::from_millis(200), &mut views, 1).sent_on()[0]
    };
    assert_eq!([false, true].map(|flaps| first(4, flaps, 40)), [0, 1]);
    assert_eq!([19, 21].map(|trip| first(4, true, trip)), [0, 1]);
    // The other one does not carry all.
    assert_eq!(first(5, true, 40), 0);
}

/// The same where a path loses more than a packet in twenty.
#[test]
fn a_path_that_loses_often_is_judged_by_what_comes_again() {
    let first = |loss: f64| {
        let mut views = paths(0.0);
        (views[0].loss, views[0].srtt) = (loss, Duration::from_millis(40));
        let mut hedge = hedge("hedge:copies=off:target=4");
        plan(&mut hedge, Instant::from_millis(200), &mut views, 1).sent_on()[0]
    };
    assert_eq!([0.04, 0.06].map(first), [0, 1]);
}
