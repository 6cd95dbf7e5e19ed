//! Paths in reserve.

use marline_proto::path::{PathParams, PathState};
use marline_proto::wire::PathId;
use marline_sim::End;

use super::{LINK, lab};
use crate::kit::{Lab, ms, secs};

/// A path in use and one in reserve.
fn with_reserve() -> (Lab, PathId, PathId) {
    let mut lab = lab(1);
    let params = PathParams {
        standby: true,
        ..PathParams::default()
    };
    let reserve = lab.path_with(LINK, LINK, params);
    lab.run_for(ms(500));
    (lab, PathId(0), reserve)
}

#[test]
fn a_reserve_path_carries_nothing_while_another_works() {
    let (mut lab, _, reserve) = with_reserve();
    assert_eq!(lab.state(End::Client, reserve), PathState::Standby);
    assert_eq!(
        lab.state(End::Server, reserve),
        PathState::Standby,
        "both sides know"
    );
    lab.stream(End::Client, 5_000_000);
    lab.stream(End::Server, 5_000_000);
    lab.finish_within(secs(10));
    for end in [End::Client, End::Server] {
        let sent = lab.sent_on(end, reserve);
        assert!(sent < 5_000, "{end:?} sent {sent} bytes on the reserve");
    }
}

#[test]
fn the_reserve_stands_up_and_steps_back() {
    let (mut lab, main, reserve) = with_reserve();
    let flow = lab.messages(End::Client, 1_000, ms(2), 6_000);
    lab.run_for(secs(2));
    lab.dark(main, true);
    lab.run_for(secs(4));
    lab.dark(main, false);
    lab.run_for(secs(3));
    let at_return = lab.sent_on(End::Client, reserve);
    assert!(
        at_return > 1_000_000,
        "the reserve carried {at_return} bytes"
    );
    lab.finish_within(secs(10));
    let after = lab.sent_on(End::Client, reserve) - at_return;
    assert!(after < 20_000, "the reserve carried {after} bytes more");
    let silence = lab.inbox(End::Server, flow).silence;
    assert!(silence < ms(120), "silent for {silence:?}");
}

#[test]
fn a_path_is_put_on_standby_and_taken_back_while_loaded() {
    let mut lab = lab(2);
    lab.stream(End::Client, 20_000_000);
    lab.run_for(secs(1));
    lab.standby(PathId(0), true);
    lab.run_for(ms(500));
    let before = lab.sent_on(End::Client, PathId(0));
    lab.run_for(secs(1));
    let meanwhile = lab.sent_on(End::Client, PathId(0)) - before;
    assert!(meanwhile < 20_000, "{meanwhile} bytes on standby");
    lab.standby(PathId(0), false);
    lab.finish_within(secs(10));
    let after = lab.sent_on(End::Client, PathId(0)) - before;
    assert!(after > 2_000_000, "{after} bytes after standby");
}

#[test]
fn all_paths_on_standby_carry_data_all_the_same() {
    let mut lab = lab(2);
    lab.standby(PathId(0), true);
    lab.standby(PathId(1), true);
    lab.stream(End::Client, 1_000_000);
    lab.finish_within(secs(3));
}
