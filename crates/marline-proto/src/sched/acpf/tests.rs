use super::*;
use crate::congestion::Phase;
use crate::sched::Common;
use crate::sched::tests::{Backlog, path};
use alloc::vec::Vec;
use marline_base::Duration;

const PAPER: Bounds = Bounds {
    least: 0.47,
    threshold: 10.0,
};
const MS: Duration = Duration::from_millis(1);

/// Milliseconds until the user-space fraction is at `goal` while `queue` packets wait.
fn ticks(user: &mut User, queue: f64, goal: f64) -> u32 {
    let mut now = Instant::ZERO;
    user.on_time(now, queue);
    for tick in 0..2_000 {
        if (user.fraction - goal).abs() < 1e-9 {
            return tick;
        }
        now += MS;
        user.on_time(now, queue);
    }
    panic!("never at {goal}");
}

#[test]
fn in_user_space_the_fraction_falls_within_530_ms() {
    // (1 - 0.47) / (0.05 / 50) = 530; a queue of exactly ten counts as short.
    for queue in [0.0, 10.0] {
        assert_eq!(ticks(&mut User::new(PAPER), queue, 0.47), 530);
    }
}

#[test]
fn in_user_space_the_fraction_rises_faster_the_longer_the_queue() {
    // Figure 2c by hand: the step is 0.001 · min(queue / 10, n / 10)² in the n-th millisecond.
    let by_hand = [
        (11.0, 445),
        (12.0, 376),
        (15.0, 246),
        (20.0, 146),
        (30.0, 79),
        (50.0, 55),
        (100.0, 54),
        (200.0, 54),
    ];
    for (queue, expected) in by_hand {
        let mut user = User::new(PAPER);
        user.fraction = 0.47;
        assert_eq!(ticks(&mut user, queue, 1.0), expected, "queue of {queue}");
    }
}

#[test]
fn what_was_missed_is_made_up_for() {
    let (mut often, mut rarely) = (User::new(PAPER), User::new(PAPER));
    let spans = [(0.0, 100), (25.0, 40), (0.0, 3), (11.0, 700), (300.0, 90)];
    let mut now = Instant::ZERO;
    for (queue, ms) in spans {
        rarely.on_time(now, queue);
        for _ in 0..ms {
            often.on_time(now, queue);
            now += MS;
        }
    }
    often.on_time(now, 0.0);
    rarely.on_time(now, 0.0);
    assert!((often.fraction - rarely.fraction).abs() < 1e-9);
    assert_eq!(often.increases, rarely.increases);
    assert_eq!(often.next, rarely.next);
    assert_eq!(rarely.wake_at(), None, "nothing waits");
    rarely.on_time(now, 3.0);
    assert_eq!(rarely.wake_at(), rarely.next);
}

/// Packets that the kernel's fraction takes from one end to the other.
fn packets(window: u64, from: f64, queue: f64, goal: f64) -> u32 {
    let mut one = path(0);
    one.window = window * u64::from(one.symbol);
    let mut kernel = Kernel::new(PAPER);
    kernel.fractions = [(one.id, from)].to_vec();
    for packets in 0..20_000 {
        if (kernel.of(&one) - goal).abs() < 1e-9 {
            return packets;
        }
        kernel.on_scheduled(&[one], queue);
    }
    panic!("never at {goal}");
}

#[test]
fn in_the_kernel_the_step_is_a_window_s_share() {
    // eq. 2: 0.53 / (0.05 / window) packets, rounded up.
    for (window, expected) in [
        (10, 106),
        (50, 530),
        (143, 1516),
        (286, 3032),
        (1000, 10_600),
    ] {
        assert_eq!(packets(window, 1.0, 10.0, 0.47), expected);
        assert_eq!(packets(window, 0.47, 11.0, 1.0), expected);
    }
}

#[test]
fn in_the_kernel_each_path_has_its_own_fraction_and_keeps_it_while_it_probes() {
    let (mut small, mut large, mut probes) = (path(0), path(1), path(2));
    small.window = 10 * 1_200;
    large.window = 100 * 1_200;
    probes.window = 10 * 1_200;
    probes.congestion.phase = Phase::ProbeRtt;
    let mut kernel = Kernel::new(PAPER);
    kernel.on_scheduled(&[small, large, probes], 0.0);
    let fractions: Vec<f64> = [small, large, probes]
        .iter()
        .map(|p| kernel.of(p))
        .collect();
    assert_eq!(fractions, [0.995, 0.9995, 1.0]);
    // It is forgotten with its path.
    kernel.on_scheduled(&[large], 0.0);
    assert_eq!(kernel.of(&small), 1.0);
}

fn acpf(user: User) -> Acpf {
    Acpf {
        choice: "acpf".parse().unwrap(),
        fractions: Fractions::User(user),
        wake_at: None,
    }
}

#[test]
fn the_cheap_path_takes_its_fraction_and_the_dear_one_the_rest() {
    let (mut cheap, mut dear) = (path(0), path(1));
    (cheap.window, cheap.cost) = (20 * 1_200, 0);
    (dear.window, dear.cost) = (20 * 1_200, 5);
    let mut user = User::new(PAPER);
    user.fraction = 0.47;
    let mut acpf = acpf(user);
    let mut backlog = Backlog::of(14);
    let mut paths = [dear, cheap];
    paths.sort_unstable_by_key(|p| p.id);
    acpf.plan(&mut Plan::new(Instant::ZERO, &mut paths, &mut backlog));
    // 0.47 · 20 = 9.4 packets: the tenth would be beyond that.
    let cheap = backlog.sent_on().iter().filter(|p| **p == 0).count();
    assert_eq!((cheap, backlog.sent_on().len()), (9, 14));
}

#[test]
fn a_live_window_is_not_exceeded() {
    // Steps of the user-space fraction to one half, which rounding leaves a little below it.
    let half = (0..500).fold(1.0, |fraction, _| PAPER.shrunk(fraction, RAW_STEP / 50.0));
    for (window, fraction, expected) in [
        (143, 0.47, 67),
        (20, 0.47, 9),
        (20, half, 10),
        (20, 1.0, 20),
        (2, 0.47, 1),
    ] {
        let mut one = path(0);
        one.window = window * u64::from(one.symbol);
        let live = fraction * one.window as f64;
        while takes(&one, live) {
            one.in_flight += u64::from(one.symbol);
        }
        let packets = one.in_flight / u64::from(one.symbol);
        assert_eq!(packets, expected, "{fraction} of {window}");
    }
}

#[test]
fn a_live_window_is_never_below_one_packet() {
    let mut tiny = path(0);
    tiny.window = 2 * 1_200;
    let mut user = User::new(PAPER);
    user.fraction = 0.05;
    let mut acpf = acpf(user);
    let mut backlog = Backlog::of(3);
    acpf.plan(&mut Plan::new(Instant::ZERO, &mut [tiny], &mut backlog));
    assert_eq!(backlog.sent_on(), [0]);
    assert_eq!(acpf.wake_at(), Some(Instant::ZERO + MS), "two wait");
}

/// One path with a window of 20 packets, of which `used` are in flight.
fn window_of_20(used: u64) -> PathView {
    let mut one = path(0);
    one.window = 20 * 1_200;
    one.in_flight = used * 1_200;
    one
}

#[test]
fn a_flow_in_which_little_waits_goes_by_the_queue_of_all() {
    for choice in ["acpf", "acpf:kernel=on"] {
        let choice: Choice = choice.parse().unwrap();
        let (mut bulk, mut thin) = (choice.make(), choice.make());
        let mut common = Common::default();
        let mut now = Instant::ZERO;
        let mut sent = 0;
        for _ in 0..2_000 {
            now += MS;
            // As many packets leave as have arrived: one fits the window, and three hundred wait.
            let mut backlog = Backlog::of(301);
            let used = 19;
            common.set_others(1_200);
            bulk.plan(
                &mut Plan::new(now, &mut [window_of_20(used)], &mut backlog).among(&mut common),
            );
            let taken = backlog.sent_on().len() as u64;
            // In the next millisecond the turn is the other one's.
            now += MS;
            let mut backlog = Backlog::of(1);
            common.set_others((301 - taken) * 1_200);
            thin.plan(
                &mut Plan::new(now, &mut [window_of_20(used)], &mut backlog).among(&mut common),
            );
            sent += backlog.sent_on().len();
        }
        assert_eq!(sent, 2_000, "{choice}");
    }
}

#[test]
fn flows_of_one_session_have_one_fraction_unless_they_were_told_otherwise() {
    let choice: Choice = "acpf".parse().unwrap();
    let other: Choice = "acpf:least=0.6".parse().unwrap();
    let mut common = Common::default();
    let mut plan = |choice: &Choice, now: Instant| {
        let mut backlog = Backlog::of(0);
        let mut flow = choice.make();
        flow.plan(&mut Plan::new(now, &mut [window_of_20(0)], &mut backlog).among(&mut common));
        let mut seen = Fractions::User(User::new(PAPER));
        common.exchange(choice, &mut seen);
        let fraction = seen.of(&path(0));
        common.exchange(choice, &mut seen);
        fraction
    };
    plan(&choice, Instant::ZERO);
    plan(&other, Instant::ZERO);
    // A flow that is opened later finds what the others did.
    let later = Instant::ZERO + MS * 600;
    assert!((plan(&choice, later) - 0.47).abs() < 1e-9);
    assert!((plan(&other, later) - 0.6).abs() < 1e-9);
}
