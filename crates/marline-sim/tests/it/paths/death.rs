//! Paths that go dark, for ever or for a while.

use marline_proto::path::PathState;
use marline_proto::wire::PathId;
use marline_proto::{CloseReason, Config};
use marline_sim::End;

use super::lab;
use crate::kit::{Lab, Logged, ms, secs};

const BULK: u64 = 10_000_000;

/// A bulk stream during which `paths` go dark after a second, for good.
fn bulk_with_death(paths: &[u64]) -> Lab {
    let mut lab = lab(2);
    lab.stream(End::Client, BULK);
    lab.run_for(secs(1));
    for path in paths {
        lab.dark(PathId(*path), true);
    }
    lab.finish_within(secs(20));
    lab
}

#[test]
fn the_first_path_is_lost() {
    let mut lab = bulk_with_death(&[0]);
    lab.run_for(secs(4));
    assert_eq!(lab.state(End::Client, PathId(0)), PathState::Dead);
    assert_eq!(lab.state(End::Client, PathId(1)), PathState::Active);
}

#[test]
fn the_second_path_is_lost() {
    let mut lab = bulk_with_death(&[1]);
    lab.run_for(secs(4));
    assert_eq!(lab.state(End::Client, PathId(0)), PathState::Active);
    assert_eq!(lab.state(End::Client, PathId(1)), PathState::Dead);
}

#[test]
fn each_path_is_lost_in_turn() {
    let mut lab = lab(2);
    lab.stream(End::Client, 3 * BULK);
    lab.stream(End::Server, 3 * BULK);
    for _ in 0..4 {
        for path in [PathId(0), PathId(1)] {
            lab.dark(path, true);
            lab.run_for(secs(1));
            lab.dark(path, false);
            lab.run_for(secs(1));
        }
    }
    lab.finish_within(secs(20));
}

#[test]
fn both_paths_break_and_return_within_the_idle_limit() {
    let mut lab = lab(2);
    let flow = lab.stream(End::Client, BULK);
    lab.run_for(secs(1));
    for path in [PathId(0), PathId(1)] {
        lab.dark(path, true);
    }
    lab.run_for(ms(500));
    let before = lab.inbox(End::Server, flow).read;
    lab.run_for(secs(20));
    assert_eq!(
        lab.inbox(End::Server, flow).read,
        before,
        "nothing gets through"
    );
    assert!(lab.closed.is_empty(), "the flows only stall");
    for path in [PathId(0), PathId(1)] {
        lab.dark(path, false);
    }
    lab.finish_within(secs(12));
}

#[test]
fn both_paths_stay_broken_beyond_the_idle_limit() {
    let mut lab = lab(2);
    lab.stream(End::Client, BULK);
    lab.run_for(secs(1));
    for path in [PathId(0), PathId(1)] {
        lab.dark(path, true);
    }
    let dark = lab.now();
    lab.run_until(dark + secs(60), |lab| lab.closed.len() == 2);
    for end in [End::Client, End::Server] {
        let (at, reason) = &lab.closed[&end];
        assert_eq!(*reason, CloseReason::IdleTimeout);
        let waited = at.since(dark);
        assert!(
            (secs(29)..secs(31)).contains(&waited),
            "{end:?} ended after {waited:?}"
        );
    }
}

#[test]
fn an_outage_of_the_whole_tunnel_is_survived_by_every_kind_of_flow() {
    let mut lab = lab(3);
    lab.stream(End::Server, 5_000_000);
    let messages = lab.messages(End::Client, 500, ms(5), 1_200);
    for _ in 0..3 {
        lab.run_for(ms(700));
        (0..3).for_each(|p| lab.dark(PathId(p), true));
        lab.run_for(ms(900));
        (0..3).for_each(|p| lab.dark(PathId(p), false));
    }
    lab.finish_within(secs(20));
    assert_eq!(lab.inbox(End::Server, messages).read, 1_200);
}

#[test]
fn a_dead_path_is_revived_and_carries_data_again() {
    let mut lab = lab(2);
    lab.dark(PathId(0), true);
    lab.messages(End::Client, 1_000, ms(2), 10_000);
    lab.run_for(secs(6));
    assert_eq!(lab.state(End::Client, PathId(0)), PathState::Dead);
    lab.dark(PathId(0), false);
    lab.run_for(secs(4));
    assert_eq!(lab.state(End::Client, PathId(0)), PathState::Active);
    let before = lab.sent_on(End::Client, PathId(0));
    lab.stream(End::Client, BULK);
    lab.finish_within(secs(20));
    let carried = lab.sent_on(End::Client, PathId(0)) - before;
    assert!(
        carried > BULK / 4,
        "the revived path carried {carried} bytes"
    );
}

/// What a dead path held is given up, and so is not known to be lost. That it is settled does not
/// make the path one that was only late: it is back after a trial, whenever the first answer comes.
#[test]
fn a_dead_path_is_back_after_a_trial_only() {
    for dark_ms in (5_000..7_000).step_by(290) {
        let mut lab = lab(2);
        lab.trace.keep();
        lab.messages(End::Client, 1_000, ms(5), 2_000);
        // The path carries next to nothing before, so that little of it can be lost.
        lab.run_for(ms(200));
        lab.world.set_dark(PathId(0), true, false);
        lab.run_for(ms(dark_ms));
        assert_eq!(lab.state(End::Client, PathId(0)), PathState::Dead);
        lab.world.set_dark(PathId(0), false, false);
        lab.run_for(secs(3));
        assert_eq!(lab.state(End::Client, PathId(0)), PathState::Active);
        let of_client = lab.trace.log().into_iter();
        let of_client = of_client.filter(|(_, end, _)| *end == End::Client);
        let mut since_dead = of_client
            .map(|(_, _, logged)| logged)
            .skip_while(|it| *it != Logged::State(PathId(0), PathState::Dead));
        let until_active = since_dead
            .by_ref()
            .take_while(|it| *it != Logged::State(PathId(0), PathState::Active));
        let is_answer = |it: &Logged| matches!(it, Logged::Acked(PathId(0), ..));
        let answers = until_active.filter(is_answer).count();
        assert!(answers >= 8, "{answers} answers after {dark_ms} ms");
    }
}

#[test]
fn a_path_that_flaps_every_500_ms_does_not_hold_up_the_other() {
    let mut lab = lab(2);
    let flow = lab.stream(End::Client, 2 * BULK);
    let mut dark = false;
    let limit = lab.now() + secs(40);
    while lab.now() < limit && !lab.is_done() {
        dark = !dark;
        lab.dark(PathId(0), dark);
        lab.run_for(ms(500));
    }
    lab.finish_within(secs(1));
    let rate = super::goodput(lab.inbox(End::Server, flow));
    assert!(
        rate > 15.0,
        "{rate:.1} Mb/s beside a steady path of 20\n{lab}"
    );
}

#[test]
fn a_path_that_delivers_up_only_is_found_out() {
    one_way(true);
}

#[test]
fn a_path_that_delivers_down_only_is_found_out() {
    one_way(false);
}

/// A path that delivers one way only: both sides go on over the other.
fn one_way(up_works: bool) {
    let mut lab = lab(2);
    lab.stream(End::Client, BULK);
    lab.stream(End::Server, BULK);
    lab.run_for(ms(500));
    lab.world.set_dark(PathId(0), !up_works, up_works);
    let ends = [End::Client, End::Server];
    let states = |lab: &mut Lab| ends.map(|end| lab.state(end, PathId(0)));
    let fallen = |s: &PathState| matches!(s, PathState::Suspect | PathState::Dead);
    // Who sends into the dark finds out; who is heard goes on, acknowledged over the other path.
    let [unheard, heard] = if up_works { [1, 0] } else { [0, 1] };
    lab.run_for(ms(200));
    assert!(fallen(&states(&mut lab)[unheard]), "{:?}", states(&mut lab));
    lab.finish_within(secs(15));
    lab.run_for(secs(8));
    assert!(fallen(&states(&mut lab)[unheard]), "{:?}", states(&mut lab));
    assert_eq!(states(&mut lab)[heard], PathState::Active);
}

#[test]
fn the_first_path_never_worked() {
    let mut lab = Lab::new(7, &Config::default());
    let first = lab.path(super::LINK);
    lab.dark(first, true);
    lab.path(super::LINK);
    lab.stream(End::Client, 1_000_000);
    lab.finish_within(secs(3));
    assert_eq!(lab.state(End::Client, first), PathState::Validating);
}
