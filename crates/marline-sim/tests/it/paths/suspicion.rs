//! What a path in doubt may carry, and what clears it.

use std::collections::BTreeMap;

use marline_proto::path::{EmissionKind, PathState};
use marline_proto::wire::{FlowKind, PathId};
use marline_proto::{Config, FlowOptions};
use marline_sim::{End, Instant};

use super::{LINK, lab, lab_with};
use crate::kit::{Lab, Logged, Messages, Outbox, ms, secs};

/// A live flow during which path 0 is dark from 1 to 3 s, with its trace.
fn outage() -> Lab {
    let mut lab = lab(2);
    lab.trace.keep();
    lab.messages(End::Client, 1_000, ms(1), 5_000);
    lab.stream(End::Client, 3_000_000);
    lab.run_for(secs(1));
    lab.dark(PathId(0), true);
    lab.run_for(secs(2));
    lab.dark(PathId(0), false);
    lab.finish_within(secs(10));
    lab
}

fn client(lab: &Lab) -> impl Iterator<Item = (Instant, Logged)> {
    let log = lab.trace.log().into_iter();
    log.filter(|(_, end, _)| *end == End::Client)
        .map(|(at, _, logged)| (at, logged))
}

#[test]
fn a_suspect_path_gets_only_copies_of_what_another_path_carries() {
    let lab = outage();
    let mut state = BTreeMap::new();
    // Sum of the bytes of each flow sent on trusted paths, by unit and offset.
    let mut elsewhere: BTreeMap<(u64, u64, u64), u32> = BTreeMap::new();
    let mut copies = 0;
    for (at, logged) in client(&lab) {
        match logged {
            Logged::State(path, new) => {
                state.insert(path, new);
            }
            Logged::Emitted(path, flow, symbol, kind) => {
                let key = (flow.0, symbol.unit, symbol.offset);
                let doubted =
                    matches!(state.get(&path), Some(PathState::Suspect | PathState::Dead));
                if !doubted {
                    elsewhere.insert(key, symbol.len);
                    continue;
                }
                copies += 1;
                assert_eq!(
                    kind,
                    EmissionKind::Copy,
                    "{symbol:?} on a doubted path at {at:?}"
                );
                assert!(
                    elsewhere.contains_key(&key),
                    "sole copy of {symbol:?} at {at:?}"
                );
            }
            _ => {}
        }
    }
    assert!(copies > 8, "the path was tried under load: {copies} copies");
}

#[test]
fn one_echo_does_not_readmit_a_path() {
    let lab = outage();
    let fell = client(&lab)
        .find(|(_, l)| *l == Logged::State(PathId(0), PathState::Suspect))
        .expect("the path came under suspicion");
    let rose = client(&lab)
        .find(|(at, l)| *at > fell.0 && *l == Logged::State(PathId(0), PathState::Active))
        .expect("the path was readmitted");
    // Dark from 1.5 to 3.5 s.
    let returned = Instant::ZERO + ms(3_500);
    let mut emitted = Vec::new();
    let mut echoes = 0;
    for (at, logged) in client(&lab) {
        match logged {
            Logged::Sent(PathId(0), number, _) => emitted.push((number, at)),
            Logged::Acked(PathId(0), number, _) if (returned..=rose.0).contains(&at) => {
                let sent = emitted.iter().find(|(n, _)| *n == number);
                echoes += u32::from(sent.is_some_and(|(_, at)| *at > fell.0));
            }
            _ => {}
        }
    }
    assert!(echoes >= 8, "readmitted after {echoes} echoes");
    let back = rose.0.since(returned);
    assert!(back < ms(500), "readmitted {back:?} after its return");
}

#[test]
fn late_packets_of_one_flow_never_delay_another() {
    // A third of the bulk stream's packets on path 1 come late or never.
    let links = [LINK, "rate=20mbit,delay=60ms,loss=33%,queue=100ms"];
    let mut lab = lab_with(&Config::default(), &links);
    lab.stream(End::Client, 15_000_000);
    lab.run_for(secs(1));
    let live = lab.open(
        End::Client,
        &FlowOptions {
            priority: 0,
            ..FlowOptions::new(FlowKind::Packets)
        },
        Outbox::messages(
            lab.now(),
            Messages {
                size: 200,
                size_max: 200,
                count: 2_000,
                every: ms(2),
            },
        ),
    );
    lab.finish_within(secs(30));
    let inbox = lab.inbox(End::Server, live);
    let p99 = inbox.quantile(0.99);
    assert!(p99 < ms(60), "99 % within {p99:?}\n{lab}");
}

/// While both paths are in doubt, either may carry what nobody else has. Once one of them is
/// cleared, that must not wait for the other one's death, three seconds after it fell silent.
#[test]
fn what_only_a_doubted_path_carried_goes_again_once_another_is_cleared() {
    let mut lab = lab(2);
    lab.messages(End::Client, 1_000, ms(1), 2_300);
    lab.run_for(secs(1));
    lab.dark(PathId(0), true);
    lab.run_for(secs(1));
    lab.dark(PathId(1), true);
    lab.run_for(ms(100));
    lab.dark(PathId(1), false);
    lab.finish_within(ms(1_500));
}

/// A path that carries nothing loses a ping now and then. It is asked once more, and not doubted.
#[test]
fn a_lost_ping_of_an_idle_path_is_no_outage() {
    let far = "rate=20mbit,delay=100ms,loss=5%";
    let mut doubts = 0;
    for seed in 0..32 {
        let mut lab = Lab::new(seed, &Config::default());
        lab.path(far);
        lab.path(far);
        lab.run_for(secs(1_800));
        let states = lab.states.iter();
        doubts += states
            .filter(|(.., state, _)| *state == PathState::Suspect)
            .count();
    }
    // 2; if one packet were enough 27.
    assert!(doubts < 10, "{doubts}");
}
