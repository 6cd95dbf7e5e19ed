//! What schedulers are told of their symbols.

use std::sync::Mutex;

use marline_proto::sched::Entry;
use marline_proto::sched::{Choice, Feedback, Outcome, Plan, Scheduler};
use marline_proto::wire::FlowKind;
use marline_proto::{Config, FlowOptions};
use marline_sim::{End, Instant};

use super::lab_with;
use crate::kit::{Messages, Outbox, ms, secs};

static TOLD: Mutex<Vec<(Instant, Feedback)>> = Mutex::new(Vec::new());

static LISTENER: Entry = Entry {
    name: "listener",
    publication: "none",
    help: "uses the first path and notes what it is told",
    kinds: &[FlowKind::Packets],
    options: &[],
    new: |_| Box::new(Listener),
};

#[derive(Debug)]
struct Listener;

impl Scheduler for Listener {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        while plan.next_len().is_some() && plan.paths()[0].has_room() {
            plan.send(0);
        }
    }

    fn on_feedback(&mut self, now: Instant, feedback: &Feedback) {
        let mut told = TOLD.lock().expect("no test thread panicked here");
        told.push((now, *feedback));
    }
}

#[test]
fn acknowledgements_tell_when_a_symbol_left_and_arrived() {
    let mut lab = lab_with(&Config::default(), &["delay=15ms"]);
    let options = FlowOptions {
        scheduler: Some(Choice::from(&LISTENER)),
        ..FlowOptions::new(FlowKind::Packets)
    };
    let plan = Messages {
        size: 1_000,
        size_max: 1_000,
        count: 100,
        every: ms(7),
    };
    let outbox = Outbox::messages(lab.now(), plan);
    lab.open(End::Client, &options, outbox);
    lab.finish_within(secs(5));
    // The last acknowledgements are still under way.
    lab.run_for(ms(100));
    let told = TOLD.lock().expect("no test thread panicked here");
    let of = |outcome| told.iter().filter(move |(_, f)| f.outcome == outcome);
    let sent: Vec<_> = of(Outcome::Sent).collect();
    let acked: Vec<_> = of(Outcome::Acked).collect();
    assert_eq!((sent.len(), acked.len()), (100, 100));
    assert!(
        sent.iter()
            .all(|(at, f)| *at == f.sent && f.arrived_us.is_none())
    );
    // The link takes 15 ms, always; the peer's clock has any origin.
    let origin = |f: &Feedback| {
        let arrived = f.arrived_us.expect("acknowledged with its arrival");
        arrived as i64 - (f.sent.as_micros() + 15_000) as i64
    };
    let first = origin(&acked[0].1);
    for ((_, was_sent), (at, was_acked)) in sent.iter().zip(&acked) {
        assert_eq!(was_sent.symbol, was_acked.symbol);
        assert_eq!(was_sent.sent, was_acked.sent);
        assert!((origin(was_acked) - first).abs() <= 1, "whole microseconds");
        assert!(at.since(was_acked.sent) >= ms(30));
    }
}
