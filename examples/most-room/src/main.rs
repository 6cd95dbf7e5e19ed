//! The program `marline` with one scheduler more, in one file: docs/SIMULATOR.md explains it.
//!
//! `cargo run --release -p most-room -- sim run examples/most-room/live.toml`

use std::process::ExitCode;

use marline::FlowKind;
use marline::sched::{Entry, OptionSpec, PathView, Plan, Scheduler};

/// Sends each packet on the path with the most room, in time at the path's rate.
#[derive(Debug)]
struct MostRoom {
    /// A path whose round trip is longer than this many times the shortest is left alone.
    patience: f64,
}

/// What flags, help and errors say of it.
static MOST_ROOM: Entry = Entry {
    name: "most-room",
    publication: "docs/SIMULATOR.md",
    help: "the path whose window is emptiest, in time",
    kinds: &[FlowKind::Stream, FlowKind::Packets],
    options: &[OptionSpec::number(
        "patience",
        10.0,
        (1.0, 100.0),
        "how many times the shortest round trip a path's may be for it to be used",
    )],
    new: |choice| {
        Box::new(MostRoom {
            patience: choice.number("patience"),
        })
    },
};

impl Scheduler for MostRoom {
    fn plan(&mut self, plan: &mut Plan<'_>) {
        while plan.next_len().is_some() {
            let paths = plan.paths();
            let quickest = paths.iter().map(|p| p.srtt).min().unwrap_or_default();
            let limit = quickest.mul_f64(self.patience);
            let open = |p: &PathView| p.has_room() && p.srtt <= limit;
            let room = |p: &PathView| p.rate.time_for(p.room());
            let candidates = paths.iter().enumerate().filter(|(_, p)| open(p));
            let Some((best, _)) = candidates.max_by_key(|(_, p)| room(p)) else {
                return;
            };
            plan.send(best);
        }
    }
}

fn main() -> ExitCode {
    marline_cli::main_with(&[&MOST_ROOM])
}
