//! What schedulers are told of symbols that were not needed any more.

use std::sync::Mutex;

use marline_proto::Config;
use marline_proto::congestion::Congestion;
use marline_proto::sched::Entry;
use marline_proto::sched::{Choice, Feedback, Outcome, Plan, Scheduler};
use marline_proto::wire::FlowKind;
use marline_sim::Instant;

use super::lab::Units;
use crate::kit::{ms, secs};

/// Symbols that left, and those that the peer has acknowledged.
static TOLD: Mutex<(u32, u32)> = Mutex::new((0, 0));

static LAVISH: Entry = Entry {
    name: "lavish",
    publication: "none",
    help: "a unit over the first path, as many repair symbols over the second",
    kinds: &[FlowKind::Blocks, FlowKind::Objects],
    options: &[],
    new: |_| Box::new(Lavish),
};

#[derive(Debug)]
struct Lavish;

impl Scheduler for Lavish {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        if plan.paths().len() < 2 {
            return;
        }
        while plan.next_len().is_some() {
            plan.send(0);
        }
        for unit in plan.units() {
            let code = unit.code.filter(|_| unit.len == 0);
            for _ in code.map_or(0..0, |code| code.repairs..code.symbols) {
                let sent = plan.repair_of(unit.id, 1);
                sent.expect("there are some left");
            }
        }
    }

    fn on_feedback(&mut self, _: Instant, feedback: &Feedback) {
        let mut told = TOLD.lock().expect("no test thread panicked here");
        match feedback.outcome {
            Outcome::Sent => told.0 += 1,
            Outcome::Acked => told.1 += 1,
            _ => {}
        }
    }

    fn codes(&self) -> bool {
        true
    }
}

#[test]
fn a_path_is_also_known_by_symbols_that_were_not_needed_any_more() {
    // What takes the second path comes 30 ms after the unit is whole.
    let links = ["rate=50mbit,delay=10ms", "rate=50mbit,delay=40ms"];
    let config = Config {
        congestion: Congestion::none(),
        ..Config::default()
    };
    for kind in [FlowKind::Blocks, FlowKind::Objects] {
        let scheduler = Some(Choice::from(&LAVISH));
        let mut units = Units::over(1, &config, kind, scheduler, &links);
        let mut send = |count| {
            for _ in 0..count {
                let written = match kind {
                    FlowKind::Blocks => units.block(12_000, Some(ms(70))),
                    _ => units.object(12_000, &Default::default()),
                };
                written.expect("there is room");
                units.run_for(ms(50));
            }
            units.run_for(ms(500));
            std::mem::take(&mut *TOLD.lock().expect("no test thread panicked here"))
        };
        // Until round-trip times are known, some is sent twice.
        send(5);
        let (sent, acked) = send(20);
        assert!(sent >= 400 && acked == sent, "{kind:?}: {acked} of {sent}");
        units.finish_within(secs(5));
        units.check_fates();
    }
}
