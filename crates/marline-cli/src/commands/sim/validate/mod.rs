//! `marline sim validate`: the same scenarios in the simulator and by real processes.

mod compare;
mod report;

use super::prepare::{prepare, wrong};
use super::source::Source;
use crate::commands::real::{self, Quantiles, Through, Trial};
use crate::commands::{CliError, output, stop};
use compare::runs_for;
use marline_lab::process::look;
use marline_sim::experiments;
use marline_sim::run::run as simulate;
use marline_sim::scenario::Document;
use report::{Report, Simulated, Verdict};
use std::sync::atomic::AtomicBool;

const ABOUT: &str = "Run scenarios in the simulator and by real processes, and compare the delays";

const LONG_ABOUT: &str = "\
Run scenarios in the simulator and by real processes, and compare the delays.

The real ones are a `marline server`, a `marline client` and a `marline link` for each link, on \
loopback. A stream is written into a forward of the client and read behind the server, on one \
clock. The simulator agrees if p50, p95 and p99 of the delay in order lie within 10 % or 1 ms of \
the real ones; otherwise the exit code is 1.

Where the delay is a matter of chance, real runs are repeated until their mean is known. Timing needs a machine with idle cores: the last columns say how late the relays and the sender \
were themselves, and how many messages were left out because a processor stood still for more than \
2 ms while they were under way, as happens to virtual machines.";

const EXAMPLES: &str = "\
Examples:
  marline sim validate
  marline sim validate validate/loss --repeats 5
  marline sim validate mine.toml --seconds 10 --json

A scenario must have one session with one constant workload from the client, and nothing that only
the simulator can do; what is in the way is named.";

/// The folder of the scenarios that are run without others being named.
const FOLDER: &str = "validate";

/// The flags of `marline sim validate`.
#[derive(Debug, clap::Args)]
#[command(about = ABOUT, long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub(super) struct Args {
    /// Scenario files, or names of such that come with the program [default: all of validate/]
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Let each run last this many seconds, its warm-up included [default: as the scenario says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: Option<u64>,
    /// Real runs of each scenario; quantiles are averaged [default: 1 to 8, by how much the
    /// simulated ones differ]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    repeats: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let trials = args.trials()?;
    let stop = stop::on_signals()?;
    let mut verdicts = Vec::new();
    let mut failure = None;
    for trial in &trials {
        match judge(trial, args.repeats, &stop) {
            Ok(verdict) => verdicts.push(verdict),
            // What was measured is shown all the same.
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
    }
    let report = Report {
        version: 1,
        scenarios: verdicts,
    };
    if args.json {
        output::json(&report)?;
    } else if !report.scenarios.is_empty() {
        output::line(report::text(&report).trim_end())?;
    }
    if let Some(failure) = failure {
        return Err(failure);
    }
    match report.misses() {
        0 => Ok(()),
        1 => Err(CliError::runtime("one quantile differs too much")),
        many => Err(CliError::runtime(format!(
            "{many} quantiles differ too much"
        ))),
    }
}

impl Args {
    fn trials(&self) -> Result<Vec<Trial>, CliError> {
        let mut files = self.files.clone();
        if files.is_empty() {
            let all = experiments::all().into_iter();
            let ours = all.filter(|one| one.folder == FOLDER);
            files.extend(ours.map(|one| one.path.trim_end_matches(".toml").to_owned()));
        }
        let mut trials = Vec::new();
        for file in files {
            let source = Source::find(&file)?;
            let mut document = Document::parse(&source.name, &source.text).map_err(wrong)?;
            if let Some(seconds) = self.seconds {
                let set = format!("duration={seconds}s");
                document.set(&set).map_err(wrong)?;
            }
            for (cell, scenario) in prepare(source, document)?.batch.cells {
                let values = cell.iter().map(|(key, value)| format!(" {key}={value}"));
                let name = file.clone() + &values.collect::<String>();
                let wrong = |why: String| {
                    CliError::usage(format!("{name}: {why}"))
                        .hint("`marline sim run` simulates it without real processes")
                };
                let fits = real::trials(&name, scenario).map_err(wrong)?;
                if fits.iter().any(|trial| trial.rate.is_none()) {
                    let why = "its workload has no delay; write `kind = \"constant\"`";
                    return Err(wrong(why.to_owned()));
                }
                trials.extend(fits);
            }
        }
        Ok(trials)
    }
}

/// Runs the trial both ways.
fn judge(trial: &Trial, repeats: Option<u64>, stop: &AtomicBool) -> Result<Verdict, CliError> {
    let Trial {
        name, scheduler, ..
    } = trial;
    let mut simulated = Vec::new();
    for seed in &trial.scenario.seeds {
        look(stop)?;
        simulated.push(simulation(trial, *seed)?);
    }
    let runs: Vec<Quantiles> = simulated.iter().map(|run| run.delay_ms).collect();
    let repeats = repeats.unwrap_or_else(|| enough(&runs));
    let mut real = Vec::new();
    for repeat in 1..=repeats {
        let seconds = trial.scenario.duration.as_secs_f64();
        tracing::info!("{name}, {scheduler}: real run {repeat} of {repeats}, {seconds} s");
        let one = real::run(trial, Through::Forward, repeat, stop);
        real.push(one.inspect_err(|_| tracing::error!("{name}, {scheduler}: no result"))?);
    }
    Ok(Verdict::new(name, scheduler, simulated, real))
}

/// How many real runs the quantile calls for whose simulated values differ most.
fn enough(simulated: &[Quantiles]) -> u64 {
    let column = |i: usize| simulated.iter().map(move |run| run.named()[i].1);
    let wanted = (0..3).map(|i| runs_for(&column(i).collect::<Vec<f64>>()));
    wanted.max().unwrap_or(1)
}

fn simulation(trial: &Trial, seed: u64) -> Result<Simulated, CliError> {
    let run = simulate(&trial.simulated(), &trial.scheduler, seed);
    let workload = &trial.workload().name;
    let value = |what: &str| {
        let name = format!("{workload}.{what}");
        let value = run.values.get(&name).copied();
        value.ok_or_else(|| CliError::runtime(format!("the simulator did not measure {name}")))
    };
    Ok(Simulated {
        delay_ms: Quantiles {
            p50: value("in_order_delay.p50_ms")?,
            p95: value("in_order_delay.p95_ms")?,
            p99: value("in_order_delay.p99_ms")?,
        },
        lost: value("undelivered")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trial_that_ships_can_be_simulated() {
        let args = Args {
            files: Vec::new(),
            seconds: Some(4),
            repeats: Some(1),
            json: false,
        };
        for trial in args.trials().unwrap() {
            let simulated = simulation(&trial, 1).unwrap();
            let delays = simulated.delay_ms;
            assert!(
                delays.p50 <= delays.p95 && delays.p95 <= delays.p99,
                "{delays:?}"
            );
        }
    }
}
