use super::*;
use crate::flow::Symbol;
use crate::path::EmissionKind;
use crate::sched::tests::{Backlog, path};

const SYMBOL: u32 = 1_200;

fn ols(text: &str) -> Ols {
    let choice: Choice = text.parse().expect("a choice");
    Ols::new(&choice)
}

/// Ten packets of window and 20 ms on the first path, 40 ms on the second: without a queue a
/// packet takes (1/10 + 1/2) · srtt, so 12 and 24 ms.
fn paths() -> [PathView; 2] {
    let mut paths = [path(0), path(1)];
    for (p, srtt) in paths.iter_mut().zip([20, 40]) {
        p.window = 10 * u64::from(SYMBOL);
        p.srtt = Duration::from_millis(srtt);
    }
    paths
}

/// Lets the first path's round trips have a median deviation of Δ: of m − Δ, m and m + Δ the
/// distances from the median are Δ, 0 and Δ.
fn jitter(ols: &mut Ols, delta: u64) {
    for rtt in [100 - delta, 100, 100 + delta] {
        let acked = Feedback {
            symbol: Symbol {
                unit: 0,
                offset: 0,
                len: SYMBOL,
            },
            path: PathId(0),
            sent: Instant::ZERO,
            kind: EmissionKind::Source,
            outcome: Outcome::Acked,
            arrived_us: None,
            own_way: true,
        };
        ols.on_feedback(Instant::from_millis(rtt), &acked);
    }
}

fn plan(ols: &mut Ols, paths: &mut [PathView], symbols: u64) -> Backlog {
    let mut backlog = Backlog::of(symbols);
    ols.plan(&mut Plan::new(Instant::ZERO, paths, &mut backlog));
    backlog
}

#[test]
fn equation_2_at_both_ends() {
    let mut view = paths()[1];
    view.queued = 5 * u64::from(SYMBOL);
    // (5 + 1)/10 + 1/2 = 1.1 windows of 40 ms, of 50 ms with Δ = 10 ms.
    let interval = Interval::of(&view, SYMBOL, Duration::from_millis(10));
    assert!((interval.left - 0.044).abs() < 1e-12);
    assert!((interval.right - 0.055).abs() < 1e-12);
}

#[test]
fn deja_copies_where_the_intervals_overlap() {
    // The first path's interval ends at 0.6 · (20 + Δ) ms; the second begins at 24 ms.
    for (delta, copies) in [(0, 0), (19, 0), (21, 1)] {
        let mut ols = ols("ols:tpa=off");
        jitter(&mut ols, delta);
        let backlog = plan(&mut ols, &mut paths(), 1);
        assert_eq!(backlog.sent_on(), [0], "Δ = {delta} ms");
        assert_eq!(backlog.copied_to().len(), copies, "Δ = {delta} ms");
    }
}

#[test]
fn intervals_that_only_touch_do_not_overlap_and_points_lie_inside() {
    let first = Interval {
        left: 1.0,
        right: 2.0,
    };
    let at = |left, right| Interval { left, right };
    assert!(!at(2.0, 3.0).overlaps(&first));
    assert!(at(1.5, 1.5).overlaps(&first), "a point inside");
    assert!(!at(1.0, 1.0).overlaps(&at(1.0, 1.0)), "two points");
    assert!(!at(1.0, 1.0).overlaps(&first), "a point at an end");
    assert!(!first.overlaps(&at(1.0, 1.0)), "the same two");
    assert!(first.overlaps(&first), "alike");
}

#[test]
fn without_deja_nothing_is_copied() {
    let mut ols = ols("ols:deja=off");
    jitter(&mut ols, 90);
    let backlog = plan(&mut ols, &mut paths(), 20);
    assert_eq!(backlog.copied_to(), []);
}

#[test]
fn the_queue_moves_the_turn_to_the_other_path() {
    // T_1 = ((q + 1)/10 + 1/2) · 20 ms grows by 2 ms a packet; T_2 is 24 ms, then 28, 32 …
    // 12 14 16 18 20 22 24(tie: the first) | 24 on the second | 26 28(tie) | 28 …
    let mut ols = ols("ols:deja=off");
    let backlog = plan(&mut ols, &mut paths(), 11);
    assert_eq!(backlog.sent_on(), [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1]);
}

#[test]
fn equation_3_reserves_what_the_others_cannot_carry() {
    // 600 and 300 kB/s; of a target of 700 kB/s the first path leaves 100 to the second.
    let ols = ols("ols:target=5.6");
    let views = paths();
    assert!((ols.budget(&views, 1) - 200e3).abs() < 1.0);
    // 700 − 300 = 400 of the first path's 600 are reserved.
    assert!((ols.budget(&views, 0) - 200e3).abs() < 1.0);
    // A target beyond both: no redundancy at all.
    let greedy = self::ols("ols:target=8");
    assert_eq!(greedy.budget(&views, 1), 0.0);
}

#[test]
fn tpa_lets_as_many_copies_pass_as_the_budget_has_steps() {
    // A step is 1200 B / 40 ms = 30 kB/s; 200 kB/s let ⌈200/30⌉ − 1 = 6 pass in a window.
    let mut ols = ols("ols:target=5.6");
    let views = paths();
    let allowed = (0..10).filter(|_| ols.allows(&views, 1, SYMBOL)).count();
    assert_eq!(allowed, 6);
    // When a window was scheduled on the path, the budget is calculated again.
    for _ in 0..10 {
        assert!(!ols.allows(&views, 1, SYMBOL));
        ols.scheduled(&views, 1, SYMBOL);
    }
    assert!(ols.allows(&views, 1, SYMBOL));
}

#[test]
fn a_budget_of_whole_steps_lets_one_less_pass() {
    // Of a window of w packets in 30 ms the target leaves x; the other path carries nothing.
    const LEN: u32 = 1_400;
    for window in 2..=14 {
        for x in 1..window {
            let mut views = paths();
            views[0].window = 0;
            views[1].window = window * u64::from(LEN);
            views[1].srtt = Duration::from_millis(30);
            let mut ols = ols("ols");
            let target = (window - x) * u64::from(LEN) * 8 * 1_000 / 30;
            let target = marline_base::Rate::from_bps(target);
            ols.target.observe(Instant::ZERO, Some(target), 0);
            let allowed = (0..window).filter(|_| ols.allows(&views, 1, LEN));
            assert_eq!(allowed.count() as u64, x - 1, "{x} of {window}");
        }
    }
}

#[test]
fn a_plan_copies_what_equation_3_grants_and_again_when_a_window_was_scheduled() {
    // Of 600 and 300 kB/s a target of 700 leaves the second path 200 for copies: 6 steps of 30 (see
    // above).
    let mut ols = ols("ols:target=5.6");
    // T_1 ends at 110/20 of its beginning, so T_2 begins inside of it as long as packets leave on
    // the first path.
    jitter(&mut ols, 90);
    // T_1 = 12, 14 … 22 ms, T_2 = 24, 28 … 44 ms: six are copied. T_2 stays at 48 ms, which T_1 has
    // not passed before 13 more. Then T_2 grows by 4 ms for each packet on the second path, T_1 by
    // 2 for each of two on the first. With the fourth of the second path's own its window is full,
    // and so is the first one's.
    let backlog = plan(&mut ols, &mut paths(), 100);
    assert_eq!(backlog.sent_on()[..19], [0; 19]);
    assert_eq!(backlog.sent_on()[19..], [1, 0, 0, 1, 0, 0, 1, 0, 0, 1]);
    assert_eq!(backlog.copied_to(), [1; 6]);
    // Six copies and four packets are the second path's ten: the budget is there again, when the
    // queues are gone.
    let backlog = plan(&mut ols, &mut paths(), 10);
    assert_eq!(backlog.sent_on(), [0; 10]);
    assert_eq!(backlog.copied_to(), [1; 6]);
    // They are only six of the next window, so nothing more is granted.
    let backlog = plan(&mut ols, &mut paths(), 10);
    assert_eq!(backlog.copied_to(), []);
}

#[test]
fn waits_when_every_window_is_full() {
    let mut views = paths();
    for view in &mut views {
        view.in_flight = view.window;
    }
    let backlog = plan(&mut ols("ols"), &mut views, 3);
    assert_eq!(backlog.sent_on(), []);
}

#[test]
fn the_target_is_measured_when_nobody_says_it() {
    let mut target = Target::new(0.0);
    // 1250 bytes every millisecond for 3 s, sent at once: 1.25 MB/s.
    for ms in 0..3_000 {
        target.observe(Instant::from_millis(ms), None, 1_250);
        target.sent(1_250);
    }
    let measured = target.bytes_per_second();
    assert!((measured - 1.25e6).abs() < 0.02e6, "{measured}");
    // A backlog counts as written although it is not sent.
    let mut waiting = Target::new(0.0);
    for ms in 0..3_000 {
        waiting.observe(Instant::from_millis(ms), None, 1_250 * ms);
    }
    assert!((waiting.bytes_per_second() - 1.25e6).abs() < 0.02e6);
    // What is taken back and sent again was written once.
    let mut again = Target::new(0.0);
    for ms in 0..3_000 {
        if ms > 0 && ms % 10 == 0 {
            again.taken_back(5 * 1_250);
            (0..5).for_each(|_| again.sent(1_250));
        }
        again.observe(Instant::from_millis(ms), None, 1_250);
        again.sent(1_250);
    }
    assert!((again.bytes_per_second() - 1.25e6).abs() < 0.02e6);
    // What the application says counts more, and what the user says most.
    target.observe(
        Instant::from_millis(3_001),
        Some(marline_base::Rate::from_mbps(8)),
        0,
    );
    assert_eq!(target.bytes_per_second(), 1e6);
    let mut given = Target::new(4.0);
    given.observe(Instant::ZERO, Some(marline_base::Rate::from_mbps(8)), 0);
    assert_eq!(given.bytes_per_second(), 0.5e6);
}

#[test]
fn a_stream_that_begins_late_or_again_is_measured_from_its_beginning() {
    let mut target = Target::new(0.0);
    for start in [350, 60_000] {
        for ms in start..start + 1_000 {
            target.observe(Instant::from_millis(ms), None, 1_250);
            target.sent(1_250);
            // It is not known in the first tenth of a second.
            let known = ms >= 450;
            assert_eq!(target.is_known(), known, "{ms} ms");
            let off = (target.bytes_per_second() - 1.25e6).abs();
            assert!(!known || off < 0.05e6, "{ms} ms: off by {off}");
        }
    }
}

#[test]
fn bursts_with_seconds_of_silence_between_them_are_measured_too() {
    let mut target = Target::new(0.0);
    for second in 1..10 {
        // A burst of 90 kB, which is planned at once.
        target.observe(Instant::from_millis(2_000 * second), None, 90_000);
        target.sent(90_000);
        assert_eq!(target.is_known(), second > 1);
        let measured = target.bytes_per_second();
        assert!(second == 1 || measured == 45e3, "{measured}");
    }
    // One that takes 100 ms to leave counts whole, though it waited when the measurement began.
    let mut target = Target::new(0.0);
    target.observe(Instant::from_millis(2_000), None, 90_000);
    target.observe(Instant::from_millis(2_100), None, 45_000);
    assert_eq!(target.bytes_per_second(), 450e3);
}

#[test]
fn a_target_that_is_given_for_a_while_leaves_nothing_to_the_measurement() {
    let mut target = Target::new(0.0);
    let given = marline_base::Rate::from_mbps(8);
    // 10 Mb/s all the time; from 3 to 60 s the application says that it needs 8.
    for ms in 0..70_000 {
        let said = (3_000..60_000).contains(&ms).then_some(given);
        target.observe(Instant::from_millis(ms), said, 1_250);
        target.sent(1_250);
        let mbps = target.bytes_per_second() * 8e-6;
        if ms >= 2_000 {
            assert!((7.9..10.2).contains(&mbps), "{mbps} at {ms} ms");
        }
    }
    assert!((target.bytes_per_second() - 1.25e6).abs() < 0.02e6);
}
