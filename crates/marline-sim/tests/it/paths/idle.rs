//! Sessions in which nothing happens.

use marline_proto::path::PathState;
use marline_proto::wire::PathId;
use marline_sim::End;

use super::lab;
use crate::kit::secs;

#[test]
fn keep_alive_keeps_an_idle_session() {
    let mut lab = lab(2);
    lab.run_for(secs(600));
    assert!(lab.closed.is_empty());
    for path in [PathId(0), PathId(1)] {
        assert_eq!(lab.state(End::Client, path), PathState::Active);
        let sent = lab.sent_on(End::Client, path);
        assert!(sent < 20_000, "{sent} bytes in ten quiet minutes");
    }
    let steps = lab.world.steps();
    assert!(steps < 10_000, "{steps} steps in ten quiet minutes");
}

#[test]
fn an_idle_path_that_dies_is_found_out_and_its_return_too() {
    let mut lab = lab(2);
    lab.dark(PathId(0), true);
    lab.run_for(secs(20));
    assert_eq!(lab.state(End::Client, PathId(0)), PathState::Dead);
    lab.dark(PathId(0), false);
    lab.run_for(secs(5));
    assert_eq!(lab.state(End::Client, PathId(0)), PathState::Active);
}

#[test]
fn a_close_reaches_the_peer_even_through_heavy_loss() {
    for seed in 0..50 {
        let mut lab = crate::kit::Lab::new(seed, &Default::default());
        lab.path("rate=20mbit,delay=15ms,loss=50%,queue=100ms");
        lab.stream(End::Server, 100_000);
        lab.run_for(secs(1));
        lab.close(End::Client);
        let (at, _) = lab.closed[&End::Server];
        let (closed, _) = lab.closed[&End::Client];
        // While the peer still sends it is told again; only silence leaves it to the idle limit.
        assert!(at.since(closed) < secs(31), "seed {seed}");
    }
}
