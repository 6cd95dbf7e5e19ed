//! The smallest scheduler that codes: earliest delivery, a repair symbol every so many symbols.

use marline_proto::sched::Entry;
use marline_proto::sched::{Choice, Plan, Scheduler};
use marline_proto::wire::FlowKind;

/// The name says it all: one symbol of so many repairs, and "idle" if symbols also repair while
/// nothing is unsent.
const fn entry(name: &'static str) -> Entry {
    Entry {
        name,
        publication: "none",
        help: "earliest delivery, and every so often a repair symbol on the lossiest path",
        kinds: &[FlowKind::Stream, FlowKind::Packets],
        options: &[],
        new: |choice| {
            let mut words = choice.name().split('-').skip(1);
            let tau = words.next().and_then(|tau| tau.parse().ok());
            Box::new(Tau {
                tau: tau.expect("the number in the name"),
                idle: words.next().is_some(),
                since: 0,
            })
        },
    }
}

static ENTRIES: [Entry; 7] = [
    entry("tau-0"),
    entry("tau-3"),
    entry("tau-5"),
    entry("tau-5-idle"),
    entry("tau-8"),
    entry("tau-8-idle"),
    entry("tau-16"),
];

#[derive(Debug)]
struct Tau {
    tau: u64,
    idle: bool,
    /// Symbols emitted since the last repair symbol.
    since: u64,
}

impl Scheduler for Tau {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        while let Some(len) = plan.next_len() {
            let open = plan.paths().iter().enumerate();
            let open = open.filter(|(_, p)| p.has_room());
            let Some((best, _)) = open.min_by_key(|(_, p)| p.arrival(len)) else {
                break;
            };
            plan.send(best);
            self.since += 1;
            if self.tau > 0 && self.since + 1 >= self.tau {
                repair(plan);
                self.since = 0;
            }
        }
        if self.idle && self.tau > 0 && plan.unsent() == 0 {
            let coding = plan.coding().unwrap_or_default();
            let free = plan.paths().iter().any(|p| p.queued == 0 && p.has_room());
            if free && coding.repairs_in_flight < coding.unknown {
                repair(plan);
            }
        }
    }

    fn codes(&self) -> bool {
        self.tau > 0
    }
}

fn repair(plan: &mut Plan<'_>) {
    let lossiest = plan.paths().iter().enumerate();
    let lossiest = lossiest.max_by(|(_, a), (_, b)| a.loss.total_cmp(&b.loss));
    if let Some((index, _)) = lossiest {
        plan.repair(index);
    }
}

/// The scheduler of this name: `tau-0` never codes, `tau-8-idle` does so whenever it can.
pub(crate) fn tau(name: &str) -> Choice {
    let entry = ENTRIES.iter().find(|entry| entry.name == name);
    Choice::from(entry.unwrap_or_else(|| panic!("no scheduler {name}")))
}
