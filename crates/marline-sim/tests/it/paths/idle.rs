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
        // One end asks, every ten seconds.
        let back = lab.sent_on(End::Server, path);
        assert!(
            sent + back < 3_500,
            "{sent} and {back} bytes in ten quiet minutes"
        );
    }
    let steps = lab.world.steps();
    assert!(steps < 10_000, "{steps} steps in ten quiet minutes");
}

#[test]
fn a_path_on_standby_is_asked_more_rarely_unless_nothing_else_is_there() {
    let mut lab = lab(2);
    lab.run_for(secs(1));
    lab.standby(PathId(1), true);
    lab.run_for(secs(1));
    let mut on = [0, 0];
    let mut more = |lab: &mut crate::kit::Lab| {
        [0, 1].map(|path| {
            let ends = [End::Client, End::Server];
            let sum = ends.map(|end| lab.sent_on(end, PathId(path))).iter().sum();
            sum - std::mem::replace(&mut on[path as usize], sum)
        })
    };
    more(&mut lab);
    lab.run_for(secs(600));
    let sent = more(&mut lab);
    assert!(sent[1] < sent[0] / 2, "{sent:?}");
    // Alone it keeps the session.
    lab.dark(PathId(0), true);
    lab.run_for(secs(120));
    assert!(lab.closed.is_empty());
    let alone = more(&mut lab)[1];
    assert!(
        alone > sent[1] / 4,
        "{alone} in two minutes, {sent:?} in ten"
    );
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
