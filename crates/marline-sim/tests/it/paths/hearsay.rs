//! What is learnt of a path outside the session: that its device is gone, or that something
//! changed.

use marline_proto::path::PathState;
use marline_proto::wire::PathId;
use marline_sim::End;

use super::lab;
use crate::kit::{ms, secs};

const FIRST: PathId = PathId(0);

#[test]
fn a_path_that_is_said_to_be_in_doubt_is_so_at_once_and_proves_itself() {
    let mut lab = lab(2);
    let flow = lab.messages(End::Client, 1_000, ms(2), 2_000);
    lab.run_for(secs(1));
    let now = lab.now();
    let session = lab.world.session(End::Client);
    session
        .suspect_path(now, FIRST, "its route is gone")
        .unwrap();
    assert_eq!(lab.state(End::Client, FIRST), PathState::Suspect);
    lab.dark(FIRST, true);
    lab.run_for(secs(1));
    lab.dark(FIRST, false);
    lab.run_for(secs(2));
    assert_eq!(lab.state(End::Client, FIRST), PathState::Active);
    lab.finish_within(secs(10));
    let silence = lab.inbox(End::Server, flow).silence;
    // What was in flight is copied at once, not when it is overdue.
    assert!(silence < ms(60), "silent for {silence:?}");
}

#[test]
fn an_idle_path_that_is_asked_is_doubted_when_it_does_not_answer() {
    let mut lab = lab(2);
    lab.run_for(secs(2));
    for (dark, expected) in [
        (false, PathState::Active),
        (true, PathState::Suspect),
        // Asked again as it comes back, it is tested at once.
        (false, PathState::Active),
    ] {
        lab.dark(FIRST, dark);
        let now = lab.now();
        lab.world
            .session(End::Client)
            .probe_path(now, FIRST)
            .unwrap();
        lab.run_for(ms(400));
        assert_eq!(lab.state(End::Client, FIRST), expected, "dark: {dark}");
    }
}
