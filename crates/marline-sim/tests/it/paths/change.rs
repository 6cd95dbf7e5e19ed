//! Paths that come, go, and change beneath their carriers.

use marline_proto::path::{PathParams, PathState};
use marline_proto::wire::PathId;
use marline_proto::{Event, PathError};
use marline_sim::End;

use super::{LINK, goodput, lab};
use crate::kit::{ms, secs};

const BULK: u64 = 10_000_000;

fn rebinding(lose: bool) {
    let mut lab = lab(2);
    let moved = lab.stream(End::Client, BULK);
    lab.stream(End::Server, BULK);
    lab.run_for(secs(1));
    lab.rewire(PathId(0), "rate=15mbit,delay=35ms,queue=100ms", lose);
    lab.finish_within(secs(12));
    assert!(lab.inbox(End::Server, moved).silence < ms(300));
    assert_eq!(lab.state(End::Client, PathId(0)), PathState::Active);
}

#[test]
fn a_carrier_is_rebound_without_loss() {
    rebinding(false);
}

#[test]
fn a_carrier_is_rebound_and_loses_what_was_on_its_way() {
    rebinding(true);
}

#[test]
fn a_path_added_late_carries_its_share() {
    let mut lab = lab(1);
    let flow = lab.stream(End::Client, 2 * BULK);
    lab.run_for(secs(2));
    let late = lab.path(LINK);
    lab.finish_within(secs(12));
    let carried = lab.sent_on(End::Client, late);
    assert!(carried > BULK / 2, "the late path carried {carried} bytes");
    let rate = goodput(lab.inbox(End::Server, flow));
    assert!(rate > 22.0, "{rate:.1} Mb/s");
}

#[test]
fn a_path_is_removed_before_it_carried_anything() {
    let mut lab = lab(2);
    lab.remove_path(End::Client, PathId(1));
    lab.stream(End::Client, 1_000_000);
    lab.finish_within(secs(3));
    assert_eq!(lab.world.server.stats().paths.len(), 1, "the peer was told");
}

#[test]
fn a_loaded_path_is_removed() {
    for end in [End::Client, End::Server] {
        let mut lab = lab(2);
        lab.stream(End::Client, BULK);
        lab.messages(End::Server, 1_000, ms(1), 3_000);
        lab.run_for(secs(1));
        lab.remove_path(end, PathId(0));
        lab.finish_within(secs(10));
        for session in [&lab.world.client, &lab.world.server] {
            let ids: Vec<_> = session.stats().paths.iter().map(|p| p.id).collect();
            assert_eq!(ids, [PathId(1)]);
        }
    }
}

#[test]
fn the_only_path_is_replaced_by_another() {
    let mut lab = lab(1);
    lab.stream(End::Client, BULK);
    lab.run_for(secs(1));
    lab.remove_path(End::Client, PathId(0));
    lab.run_for(secs(2));
    assert!(lab.closed.is_empty(), "without a path the session waits");
    lab.path(LINK);
    lab.finish_within(secs(10));
}

#[test]
fn a_peer_hears_of_a_removed_path() {
    let mut lab = lab(2);
    let now = lab.now();
    lab.world.client.remove_path(now, PathId(0)).unwrap();
    let mut heard = None;
    let limit = now + secs(1);
    lab.world.run_until(limit, |world, end, event| {
        if let (End::Server, Event::PathAbandoned(path)) = (end, event) {
            heard = Some((path, world.now().since(now)));
        }
    });
    let (path, after) = heard.expect("within a second");
    assert_eq!(path, PathId(0));
    assert!(after < ms(20), "{after:?}");
    // What either end knows by the path's number must not be believed of another.
    let now = lab.now();
    for end in [End::Client, End::Server] {
        let params = PathParams::default();
        let again = lab.world.session(end).add_path(now, path, &params);
        assert_eq!(again, Err(PathError::Taken(path)), "{end:?}");
    }
}

#[test]
fn three_and_four_paths_add_up() {
    let rates: Vec<f64> = (1..=4)
        .map(|n| super::bulk(&Default::default(), &vec![LINK; n], 2 * BULK))
        .collect();
    for (i, rate) in rates.iter().enumerate().skip(1) {
        let sum = rates[0] * (i + 1) as f64;
        assert!(*rate > 0.75 * sum, "{} paths: {rates:.1?} Mb/s", i + 1);
    }
}

#[test]
fn a_path_whose_round_trip_triples_stays_in_use() {
    let mut lab = lab(2);
    let flow = lab.stream(End::Client, 3 * BULK);
    lab.run_for(secs(2));
    lab.rewire(PathId(1), "rate=20mbit,delay=45ms,queue=100ms", false);
    lab.run_for(secs(2));
    let before = lab.sent_on(End::Client, PathId(1));
    lab.finish_within(secs(20));
    let carried = lab.sent_on(End::Client, PathId(1)) - before;
    // BBR believes in the old round trip for ten seconds and holds back for so long.
    assert!(carried > BULK / 10, "it carried {carried} bytes\n{lab}");
    let rate = goodput(lab.inbox(End::Server, flow));
    assert!(rate > 22.0, "{rate:.1} Mb/s");
}
