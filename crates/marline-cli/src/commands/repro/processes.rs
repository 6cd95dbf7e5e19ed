//! `marline repro --processes`: the experiments by real processes.

use super::{Args, failed, missed, output, stop};
use crate::commands::CliError;
use crate::commands::real::{self, Real, Through, Trial};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use marline_sim::End;
use marline_sim::batch::Job;
use marline_sim::experiments::Experiment;
use marline_sim::report::cell_name;
use marline_sim::repro::{self, Prepared, Report, ScenarioReport};
use marline_sim::results::{Results, Run, Summary};
use marline_sim::scenario::Scenario;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How late the relays and the sender of a run were themselves: 99th percentiles.
const RELAYS_LATE: &str = "processes.relays_late_ms";
const SENDER_LATE: &str = "processes.sender_late_ms";

pub(super) fn run(args: &Args, found: &[Experiment]) -> Result<(), CliError> {
    let stop = stop::on_signals()?;
    let options = args.options(&stop);
    // What cannot be run is said before anything is.
    let mut plans = Vec::new();
    for one in found {
        let prepared = repro::prepare(one, options).map_err(|error| failed(error, one, false))?;
        plans.push(plan(args, one, prepared)?);
    }
    let made = make(plans, |trial, seed, cell| {
        measured(args, trial, seed, cell, &stop)
    });
    let report = Report::new(made.reports);
    let told = if args.json {
        output::json(&serde_json::json!({ "verdicts": report, "results": made.results }))
    } else {
        let mut text: String = made.results.iter().map(table).collect();
        if !report.scenarios.is_empty() {
            text += &repro::text(&report);
        }
        output::line(text.trim_end())
    };
    match made.failure {
        Some(failure) => Err(failure),
        None => told.and_then(|()| missed(&report)),
    }
}

type SeedAndCell = (u64, BTreeMap<String, String>);
/// An experiment and its runs.
type Plan = (Prepared, Vec<(SeedAndCell, Trial)>);

fn plan(args: &Args, experiment: &Experiment, prepared: Prepared) -> Result<Plan, CliError> {
    let mut trials = Vec::new();
    for job in prepared.needed() {
        trials.push((seed_and_cell(&job), trial(args, experiment, &job)?));
    }
    Ok((prepared, trials))
}

/// What came of the plans.
struct Made {
    /// Of experiments of which every run was made.
    reports: Vec<ScenarioReport>,
    /// The runs that were made.
    results: Vec<Results>,
    /// The run that failed: none was made after it.
    failure: Option<CliError>,
}

/// Makes the runs by `measure`, until one fails.
fn make(
    plans: Vec<Plan>,
    mut measure: impl FnMut(&Trial, u64, BTreeMap<String, String>) -> Result<Run, CliError>,
) -> Made {
    let mut made = Made {
        reports: Vec::new(),
        results: Vec::new(),
        failure: None,
    };
    for (prepared, trials) in plans {
        let count = trials.len();
        let mut runs = Vec::new();
        for (number, ((seed, cell), trial)) in trials.into_iter().enumerate() {
            let what = format!(
                "{}, {}, seed {seed}: run {} of {count}",
                trial.name,
                trial.scheduler,
                number + 1
            );
            tracing::info!("{what}");
            match measure(&trial, seed, cell) {
                Ok(run) => runs.push(run),
                Err(error) => {
                    made.failure = Some(error.of(what));
                    break;
                }
            }
        }
        let any = !runs.is_empty();
        let result = prepared.batch.results(runs);
        if made.failure.is_none() {
            made.reports.push(prepared.judge(&result));
        }
        if any {
            made.results.push(result);
        }
        if made.failure.is_some() {
            break;
        }
    }
    made
}

fn seed_and_cell(job: &Job<'_>) -> SeedAndCell {
    (job.seed, job.cell.iter().cloned().collect())
}

/// The job as real processes run it.
fn trial(args: &Args, experiment: &Experiment, job: &Job<'_>) -> Result<Trial, CliError> {
    let cell: BTreeMap<String, String> = job.cell.iter().cloned().collect();
    let name = format!("{} {}", experiment.path, cell_name(&cell));
    let mut scenario = job.scenario.clone();
    scenario.schedulers = vec![job.scheduler.to_owned()];
    if let Some(seconds) = args.seconds {
        scenario.duration = Duration::from_secs(seconds);
    }
    mirror(&mut scenario);
    if scenario.duration <= scenario.warmup {
        let message = format!("{name}: nothing is left of a run after its warm-up");
        let warmup = scenario.warmup;
        return Err(CliError::usage(message).hint(format!("give --seconds more than {warmup:?}")));
    }
    let trials = real::trials(&name, scenario).map_err(|why| {
        CliError::usage(format!("{name}: {why}"))
            .hint("leave out --processes: the simulator can run it; or name a figure of link-pairs")
    })?;
    let mut trials = trials.into_iter();
    trials
        .next()
        .ok_or_else(|| CliError::runtime(format!("{name}: no scheduler")))
}

/// Lets the client send what the server does over links that are alike both ways: a forward carries
/// from the client.
fn mirror(scenario: &mut Scenario) {
    if scenario.links.iter().all(|link| link.up == link.down) {
        for session in &mut scenario.sessions {
            for workload in &mut session.workloads {
                workload.from = End::Client;
            }
        }
    }
}

fn measured(
    args: &Args,
    trial: &Trial,
    seed: u64,
    cell: BTreeMap<String, String>,
    stop: &AtomicBool,
) -> Result<Run, CliError> {
    let through = match trial.rate {
        None if args.curl => Through::Curl,
        _ => Through::Forward,
    };
    let real = real::run(trial, through, seed, stop)?;
    Ok(Run {
        cell,
        scheduler: trial.scheduler.clone(),
        seed,
        values: values(&trial.workload().name, &real),
        fractions: BTreeMap::new(),
        distributions: BTreeMap::new(),
        series: BTreeMap::new(),
    })
}

/// What was measured, by the names that the simulator has for it.
fn values(workload: &str, real: &Real) -> BTreeMap<String, f64> {
    let mut values = BTreeMap::from([
        (RELAYS_LATE.to_owned(), real.relays_late_ms),
        (SENDER_LATE.to_owned(), real.sender_late_ms),
    ]);
    let mut add = |name: &str, value| values.insert(format!("{workload}.{name}"), value);
    add("goodput_mbps", real.goodput_mbps);
    add("undelivered", real.lost);
    if let Some(redundancy) = real.redundancy {
        add("redundancy", redundancy);
    }
    for (quantile, ms) in real.delay_ms.iter().flat_map(|delays| delays.named()) {
        add(&format!("in_order_delay.{quantile}_ms"), ms);
    }
    values
}

const HEADER: [&str; 9] = [
    "",
    "",
    "runs",
    "goodput\nMb/s",
    "p50\nms",
    "p99\nms",
    "lost\n%",
    "redundancy\n%",
    "late p99, ms\nrelay, sender",
];

/// Medians over the runs, with their range.
fn table(results: &Results) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(HEADER);
    for group in results.groups() {
        let summary = |measure: &str| {
            let values = group.runs.iter().filter_map(|run| {
                let mut values = run.values.iter();
                let found = values.find(|(name, _)| {
                    name.strip_suffix(measure)
                        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
                });
                found.map(|(_, value)| *value)
            });
            Summary::of(&values.collect::<Vec<f64>>())
        };
        let median = |measure: &str, scale: f64| match summary(measure) {
            Some(summary) if summary.n > 1 => format!(
                "{:.1} ({:.1}–{:.1})",
                summary.median * scale,
                summary.min * scale,
                summary.max * scale
            ),
            Some(summary) => format!("{:.1}", summary.median * scale),
            None => "-".to_owned(),
        };
        let worst = |measure: &str| summary(measure).map_or(f64::NAN, |summary| summary.max);
        table.add_row([
            cell_name(group.cell),
            group.scheduler.to_owned(),
            group.runs.len().to_string(),
            median("goodput_mbps", 1.0),
            median("in_order_delay.p50_ms", 1.0),
            median("in_order_delay.p99_ms", 1.0),
            summary("undelivered").map_or("-".to_owned(), |s| format!("{:.2}", 100.0 * s.mean)),
            median("redundancy", 100.0),
            format!("{:.2}, {:.2}", worst(RELAYS_LATE), worst(SENDER_LATE)),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    let lines: String = lines.collect();
    format!(
        "{}: by real processes; medians, and the range of the runs\n{lines}\n",
        results.title
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::args;
    use super::*;
    use crate::commands::real::Quantiles;
    use marline_sim::experiments;

    #[test]
    fn every_pair_of_links_can_be_run_by_processes() {
        let args = args(&["link-pairs", "--processes", "--seeds", "1"]);
        for one in experiments::all() {
            if one.folder != "link-pairs" {
                continue;
            }
            let stop = AtomicBool::new(false);
            let prepared = repro::prepare(&one, args.options(&stop)).unwrap();
            let needed = prepared.needed();
            assert!(!needed.is_empty(), "{}", one.path);
            for job in needed {
                trial(&args, &one, &job).unwrap();
            }
        }
    }

    #[test]
    fn a_run_shorter_than_its_warm_up_is_refused() {
        let args = args(&["link-pairs", "--processes", "--seconds", "2"]);
        let error = run(
            &args,
            &[experiments::all()
                .into_iter()
                .find(|one| one.path == "link-pairs/live.toml")
                .unwrap()],
        );
        let error = format!("{:?}", error.unwrap_err());
        assert!(error.contains("--seconds more than 5s"), "{error}");
    }

    #[test]
    fn a_run_that_fails_is_named_and_those_before_it_are_kept() {
        let args = args(&["link-pairs", "--processes", "--seeds", "2"]);
        let stop = AtomicBool::new(false);
        let mut plans = Vec::new();
        for path in ["lossy-live", "lossy-bulk", "bulk"] {
            let all = experiments::all();
            let one = all.iter().find(|one| one.name == path).unwrap();
            let prepared = repro::prepare(one, args.options(&stop)).unwrap();
            plans.push(plan(&args, one, prepared).unwrap());
        }
        let first = plans[0].1.len();
        let mut begun = 0;
        let made = make(plans, |trial, seed, cell| {
            begun += 1;
            if begun > first + 1 {
                return Err(CliError::runtime("the paths did not come up in time"));
            }
            Ok(Run {
                cell,
                scheduler: trial.scheduler.clone(),
                seed,
                values: BTreeMap::new(),
                fractions: BTreeMap::new(),
                distributions: BTreeMap::new(),
                series: BTreeMap::new(),
            })
        });
        assert_eq!(begun, first + 2, "none after the failure");
        let kept: Vec<usize> = made
            .results
            .iter()
            .map(|result| result.runs.len())
            .collect();
        assert_eq!(kept, [first, 1]);
        // Half an experiment is not judged.
        let judged: Vec<&str> = made.reports.iter().map(|report| &*report.file).collect();
        assert_eq!(judged, ["lossy-live.toml"]);
        let failure = format!("{:?}", made.failure.unwrap());
        for part in [
            "lossy-bulk.toml",
            "mend, seed",
            "run 2 of",
            "did not come up",
        ] {
            assert!(failure.contains(part), "no {part} in {failure}");
        }
    }

    #[test]
    fn values_have_the_simulators_names_and_medians_are_shown() {
        let real = |ms: f64| Real {
            delay_ms: Some(Quantiles {
                p50: 20.0,
                p95: 30.0,
                p99: ms,
            }),
            calm_ms: None,
            lost: 0.0,
            left_out: 0.0,
            goodput_mbps: 24.0,
            redundancy: Some(0.05),
            relays_late_ms: 0.25,
            sender_late_ms: 0.5,
        };
        let run = |seed: u64, ms| Run {
            cell: BTreeMap::from([("pair".to_owned(), "two-lte".to_owned())]),
            scheduler: "mend".to_owned(),
            seed,
            values: values("live", &real(ms)),
            fractions: BTreeMap::new(),
            distributions: BTreeMap::new(),
            series: BTreeMap::new(),
        };
        assert_eq!(run(1, 40.0).values["live.in_order_delay.p99_ms"], 40.0);
        let results = Results {
            format: 1,
            title: "Pairs".to_owned(),
            file: String::new(),
            version: String::new(),
            runs: vec![run(1, 40.0), run(2, 44.0), run(3, 60.0)],
        };
        let text = table(&results);
        for part in ["two-lte", "mend", "44.0 (40.0–60.0)", "5.0", "0.25, 0.50"] {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
    }
}
