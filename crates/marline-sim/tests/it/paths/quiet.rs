//! How long a path in reserve is left alone, beside address translators that forget it.

use marline_proto::Config;
use marline_proto::path::{PathParams, PathState};
use marline_proto::wire::PathId;
use marline_sim::{Duration, End};

use super::LINK;
use crate::kit::{Lab, ms, secs};

/// Bytes that one datagram costs beside what the session writes: IPv4 and UDP, 28; a short header
/// with a connection id of 8 bytes and a packet number of 2, 11; a DATAGRAM frame's head, 3; the
/// tag, 16 (RFC 9000, 9221).
const AROUND: u64 = 28 + 11 + 3 + 16;
/// For two datagrams that ask and answer QUIC itself acknowledges once, by a packet of its own.
const ACKNOWLEDGED: u64 = 28 + 11 + 6 + 16;
const DAY: u64 = 86_400;

const RESERVE: PathId = PathId(1);

/// A path in use and one in reserve, whose translator forgets it after so long.
fn behind(nat: Duration, client: &Config, server: &Config) -> Lab {
    let mut lab = Lab::with(7, client.clone(), server.clone());
    for standby in [false, true] {
        let params = PathParams {
            standby,
            survives_rebinding: true,
            ..PathParams::default()
        };
        lab.path_with(LINK, LINK, params);
    }
    lab.world.set_nat(RESERVE, nat);
    lab.run_for(secs(10));
    assert_eq!(lab.state(End::Client, RESERVE), PathState::Standby);
    assert_eq!(lab.state(End::Server, RESERVE), PathState::Standby);
    lab
}

fn learnt(nat: u64) -> Lab {
    behind(secs(nat), &Config::default(), &Config::default())
}

/// What a day in reserve costs (MB of IP).
fn a_day(lab: &mut Lab) -> f64 {
    let sent = |lab: &mut Lab| {
        [End::Client, End::Server].map(|end| {
            let stats = lab.world.session(end).stats();
            let path = stats.paths.iter().find(|p| p.id == RESERVE);
            let counters = path.expect("it is there").counters;
            (counters.sent_packets, counters.sent_bytes)
        })
    };
    let before = sent(lab);
    lab.run_for(secs(DAY));
    let after = sent(lab);
    let sum = |part: fn(&(u64, u64)) -> u64| {
        let total = |both: &[(u64, u64); 2]| both.iter().map(part).sum::<u64>();
        total(&after) - total(&before)
    };
    let (packets, bytes) = (sum(|p| p.0), sum(|p| p.1));
    (bytes + packets * AROUND + packets / 2 * ACKNOWLEDGED) as f64 / 1e6
}

/// The path never looked as if it were out of order.
fn nothing_happened(lab: &Lab) {
    let of_reserve = lab
        .states
        .iter()
        .filter(|(_, _, path, ..)| *path == RESERVE);
    for (at, end, _, state, reason) in of_reserve {
        let fine = matches!(
            state,
            PathState::Validating | PathState::Active | PathState::Standby
        );
        assert!(fine, "{end:?} at {at:?}: {state:?}, {reason}");
    }
    assert!(lab.closed.is_empty());
}

#[test]
fn a_path_in_reserve_costs_what_its_translator_makes_necessary() {
    for (nat, least, most) in [
        (30, 0.5, 1.0),
        (45, 0.4, 0.6),
        (60, 0.3, 0.5),
        (120, 0.3, 0.5),
    ] {
        let mut lab = learnt(nat);
        let cost = a_day(&mut lab);
        assert!(
            (least..most).contains(&cost),
            "{cost:.2} MB a day at {nat} s"
        );
        nothing_happened(&lab);
        let later = a_day(&mut lab);
        assert!(
            later < 1.05 * cost,
            "{cost:.2}, then {later:.2} MB a day at {nat} s"
        );
    }
}

#[test]
fn who_does_not_know_of_it_is_served_as_before() {
    let old = Config {
        longest_quiet: Duration::ZERO,
        ..Config::default()
    };
    let new = Config::default();
    for (client, server) in [(&old, &new), (&new, &old)] {
        let mut lab = behind(secs(30), client, server);
        let cost = a_day(&mut lab);
        assert!((0.6..0.8).contains(&cost), "{cost:.2} MB a day");
        nothing_happened(&lab);
    }
}

/// Nothing is sent there but the peer's pings, and still each end knows of the other.
#[test]
fn a_path_in_reserve_is_not_taken_for_silent() {
    let mut lab = learnt(60);
    lab.run_for(secs(3_600));
    for _ in 0..50 {
        lab.run_for(secs(7));
        let now = lab.now();
        for end in [End::Client, End::Server] {
            let stats = lab.world.session(end).path(RESERVE);
            let silent = now.since(stats.expect("it is there").heard);
            assert!(silent < secs(55), "{end:?}: {silent:?}");
        }
    }
}

#[test]
fn a_path_that_dies_in_reserve_is_found_out_and_its_return_too() {
    let mut lab = learnt(60);
    lab.run_for(secs(3_600));
    lab.dark(RESERVE, true);
    lab.run_for(secs(75));
    for end in [End::Client, End::Server] {
        assert_eq!(lab.state(end, RESERVE), PathState::Dead, "{end:?}");
    }
    lab.dark(RESERVE, false);
    lab.run_for(secs(5));
    for end in [End::Client, End::Server] {
        assert_eq!(lab.state(end, RESERVE), PathState::Standby, "{end:?}");
    }
}

/// Whoever needs the path has it at once, whenever that is.
#[test]
fn a_path_in_reserve_works_a_round_trip_after_it_is_needed() {
    for nat in [30, 60, 120] {
        for after in [26, 46, 48, 200, 3_600, 3_630, 3_649] {
            for end in [End::Client, End::Server] {
                let mut lab = learnt(nat);
                lab.run_for(secs(after));
                let flow = lab.messages(end, 1_000, ms(20), 500);
                lab.run_for(secs(2));
                lab.dark(PathId(0), true);
                lab.finish_within(secs(20));
                let silence = lab.inbox(end.other(), flow).silence;
                assert!(
                    silence < ms(250),
                    "{silence:?}: {nat} s, {end:?}, after {after} s"
                );
            }
        }
    }
}

/// Another translator, as of another network, that forgets sooner than was learnt.
#[test]
fn a_translator_that_forgets_sooner_than_before_is_learnt_anew() {
    let mut lab = learnt(120);
    lab.run_for(secs(600));
    lab.world.set_nat(RESERVE, secs(30));
    let cost = a_day(&mut lab);
    assert!((0.6..1.0).contains(&cost), "{cost:.2} MB a day");
    nothing_happened(&lab);
}

#[test]
fn losses_make_no_outage_of_a_path_in_reserve() {
    let mut lab = Lab::new(7, &Config::default());
    lab.path(LINK);
    let lossy = "rate=20mbit,delay=15ms,queue=100ms,loss=5%";
    let params = PathParams {
        standby: true,
        survives_rebinding: true,
        ..PathParams::default()
    };
    lab.path_with(lossy, lossy, params);
    lab.world.set_nat(RESERVE, secs(60));
    lab.run_for(secs(10));
    let cost = a_day(&mut lab);
    assert!(cost < 0.8, "{cost:.2} MB a day");
    nothing_happened(&lab);
}
