//! What the side that did not open a flow decides about what it sends on it.

use bytes::Bytes;
use marline_proto::flow::SendError;
use marline_proto::sched::registry::SCHEDULERS;
use marline_proto::wire::{FlowId, FlowKind, PathId};
use marline_proto::{FlowOptions, OpenError};
use marline_sim::End;

use super::lab;
use crate::kit::{Lab, Messages, Outbox, ms, secs};

const SIZE: usize = 1_000;
const COUNT: u64 = 3_000;

fn messages(lab: &Lab, count: u64) -> Outbox {
    let plan = Messages {
        size: SIZE,
        size_max: SIZE,
        count,
        every: ms(2),
    };
    Outbox::messages(lab.now(), plan)
}

/// A flow of the client on which the server answers with so many messages.
fn opened(lab: &mut Lab, answers: u64) -> FlowId {
    let question = messages(lab, 1);
    let flow = lab.open(End::Client, &FlowOptions::new(FlowKind::Packets), question);
    if answers > 0 {
        let answers = messages(lab, answers);
        lab.reply(End::Client, flow, answers);
    }
    lab.finish_replies = false;
    lab.run_for(ms(500));
    flow
}

#[test]
fn it_chooses_its_scheduler_and_what_paths_cost_it() {
    for dear in [PathId(0), PathId(1)] {
        let mut lab = lab(2);
        let flow = opened(&mut lab, COUNT);
        let server = lab.world.session(End::Server);
        server.set_cost(dear, 1).expect("the path is there");
        server
            .set_scheduler(flow, "cpf".parse().expect("a scheduler"))
            .expect("it serves messages");
        let before = lab.sent_on(End::Server, dear);
        lab.finish_within(secs(20));
        assert_eq!(lab.inbox(End::Client, flow).read, COUNT);
        // What is sent takes a fifth of one link; `edpf` would use both alike.
        let after = lab.sent_on(End::Server, dear) - before;
        let all = COUNT * SIZE as u64;
        assert!(after < all / 10, "{dear}: {after} of {all} bytes");
    }
}

#[test]
fn a_scheduler_of_another_kind_is_refused() {
    let mut lab = lab(1);
    let flow = opened(&mut lab, 0);
    let other = SCHEDULERS
        .iter()
        .find(|entry| !entry.kinds.contains(&FlowKind::Packets));
    let choice = other.expect("a scheduler of units").name.parse();
    let server = lab.world.session(End::Server);
    let refused = server.set_scheduler(flow, choice.expect("a scheduler"));
    assert!(
        matches!(refused, Err(OpenError::Scheduler(_))),
        "{refused:?}"
    );
}

#[test]
fn it_bounds_what_waits() {
    let mut lab = lab(1);
    let flow = opened(&mut lab, 0);
    let now = lab.now();
    let server = lab.world.session(End::Server);
    server.set_queue(flow, Some(4 * SIZE as u64));
    let mut send = || server.send(now, flow, Bytes::from(vec![0; SIZE]));
    let taken = (0..10).take_while(|_| send().is_ok()).count();
    assert_eq!(taken, 4);
    assert_eq!(send(), Err(SendError::Full));
    server.set_queue(flow, None);
    assert!(server.send(now, flow, Bytes::from(vec![0; SIZE])).is_ok());
}
