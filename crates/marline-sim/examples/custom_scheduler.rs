//! A scheduler in one file, compared with two others: the worked example of docs/SIMULATOR.md.
//!
//! `cargo run --release -p marline-sim --example custom_scheduler`

use marline_proto::sched::registry::Entry;
use marline_proto::sched::{Choice, OptionSpec, PathView, Plan, Scheduler};
use marline_proto::wire::FlowKind;
use marline_sim::results::Run;
use marline_sim::run;
use marline_sim::scenario::{Document, Mistakes, Scenario};

/// Sends each packet on the path with the most room, in time at the path's rate.
#[derive(Debug)]
struct MostRoom {
    /// Ignores paths whose round trip is so many times the smallest.
    patience: f64,
}

/// What the registry needs to know; there it would be one more line of `SCHEDULERS`.
static MOST_ROOM: Entry = Entry {
    name: "most-room",
    publication: "docs/SIMULATOR.md",
    help: "the path whose window is emptiest, in time",
    kinds: &[FlowKind::Stream, FlowKind::Packets],
    options: &[OptionSpec::number(
        "patience",
        3.0,
        (1.0, 100.0),
        "a path whose round trip is so many times the smallest is left alone",
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

const SCENARIO: &str = r#"
title = "A live stream over two links that neither could carry alone"
duration = "20s"
warmup = "2s"
seeds = 3
schedulers = ["min-rtt", "edpf"]

[links.dsl]
rate = "6mbit"
delay = "10ms"
queue = "100ms"

[links.lte]
rate = "6mbit"
delay = "40ms"
jitter = "4ms"
queue = "100ms"

[[workloads]]
name = "live"
kind = "constant"
rate = "9mbit"
size = 1200
"#;

/// Mean and spread over seeds of a measure.
fn row(name: &str, runs: &[Run], measure: &str) -> String {
    let values: Vec<f64> = runs.iter().map(|r| r.values[measure]).collect();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    format!("{name:12} {measure}: {mean:7.1} ({least:.1} to {most:.1})")
}

/// Runs the scenario with each scheduler and all seeds; one line for each.
pub(crate) fn compare(scenario: &Scenario) -> Vec<String> {
    let ours = Choice::from(&MOST_ROOM);
    let known = scenario.schedulers.iter();
    let mut choices: Vec<Choice> = known.filter_map(|name| name.parse().ok()).collect();
    choices.push(ours);
    let measure = "live.in_order_delay.p99_ms";
    let runs = |choice: &Choice| -> Vec<Run> {
        let seeds = scenario.seeds.iter();
        seeds
            .map(|&seed| run::run_choice(scenario, *choice, seed))
            .collect()
    };
    choices
        .iter()
        .map(|choice| row(&choice.to_string(), &runs(choice), measure))
        .collect()
}

/// The scenario, checked; it has one cell and names no other file.
pub(crate) fn scenario() -> Result<Scenario, Mistakes> {
    let document = Document::parse("most-room.toml", SCENARIO)?;
    let no_files = |name: &str| Err(format!("{name} is not needed"));
    document.scenario(&document.cells()[0], &no_files)
}

#[allow(clippy::print_stdout, reason = "a program for people")]
pub(crate) fn main() {
    match scenario() {
        Ok(scenario) => {
            for line in compare(&scenario) {
                println!("{line}");
            }
        }
        Err(mistakes) => println!("{mistakes}"),
    }
}
