//! `marline sim run`: the runs of a scenario, and a table.

use super::prepare::{Common, complete};
use super::recorded::Recorded;
use super::watch;
use crate::commands::{CliError, output};
use marline_sim::batch::Batch;
use marline_sim::report::{Page, Section, choose, csv, over_time, page, table};
use marline_sim::results::Results;
use marline_sim::scenario::value_names;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

const ABOUT: &str = "Run a scenario and print what was measured";

const LONG_ABOUT: &str = "\
Run a scenario: every combination of its [vary] values, every scheduler, every seed. Prints a \
table of means with 95 % confidence intervals over the seeds.

Ctrl-C lets the runs under way end and prints what was done (exit code 1); a second one ends at \
once.";

const EXAMPLES: &str = "\
Examples:
  marline sim run examples/handover
  marline sim run live.toml --scheduler edpf,min-rtt --seeds 20
  marline sim run live.toml --set links.lte.delay=60ms --set workloads.live.rate=4mbit
  marline sim run live.toml --measure live.in_order_delay,path --plot live.html
  marline sim run examples/link-death --measure in_order_delay --over-time death.svg
  marline sim run live.toml --json > live.json
  marline sim run live.toml --links afternoon.jsonl
  marline sim run live.toml --scheduler hedge --qlog traces
  marline sim run live.toml --csv | head";

/// Characters of a line where the terminal does not say.
const WIDTH: usize = 120;

/// The flags of `marline sim run`.
#[derive(Debug, clap::Args)]
#[command(about = ABOUT, long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    common: Common,
    /// Show the measures that contain one of these words instead of the usual ones
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    measure: Vec<String>,
    /// Print all results as JSON (docs/RESULTS.md)
    #[arg(long)]
    json: bool,
    /// Print all values as CSV, one a line
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write a page with plots, readable without a network
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Draw what --measure names over the time of the first run, as an SVG file
    #[arg(long, value_name = "FILE")]
    over_time: Option<PathBuf>,
    /// Replace the scenario's links by what `marline record` or `marline demo --record` recorded,
    /// in its order of paths; each run is as long as the recording, unless --duration says
    /// otherwise
    #[arg(long, value_name = "RECORDING")]
    links: Option<PathBuf>,
    #[command(flatten)]
    watch: watch::Args,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let recorded = args.links.as_deref().map(Recorded::read).transpose()?;
    let length = recorded.as_ref().map(Recorded::length);
    let mut prepared = args.common.prepare(&[], length.as_deref())?;
    if let Some(recorded) = &recorded {
        recorded.replay(&mut prepared.batch)?;
    }
    // What cannot be shown is said before the runs are made, not after.
    selects(&prepared.batch, &args.measure)?;
    for file in args.plot.iter().chain(&args.over_time) {
        can_write(file)?;
    }
    let qlog = args.watch.watch(&mut prepared.batch)?;
    let outcome = (args.common.flags).make(&prepared.source.name, &prepared.batch, None)?;
    if let Some(qlog) = qlog {
        qlog.finish();
    }
    let results = &outcome.results;
    if results.runs.is_empty() {
        return complete(&outcome, "");
    }
    let about = prepared
        .batch
        .cells
        .first()
        .map_or("", |(_, one)| one.about.as_str());
    let plotted = match &args.plot {
        Some(file) => write_page(file, about, results),
        None => Ok(()),
    };
    let drawn = match &args.over_time {
        Some(file) => draw_over_time(file, results, &args.measure),
        None => Ok(()),
    };
    if args.json {
        print_json(results)?;
    } else if args.csv {
        csv(results, io::stdout().lock()).map_err(csv_error)?;
    } else {
        print_table(results, &args.measure)?;
    }
    plotted?;
    drawn?;
    complete(
        &outcome,
        "`marline sim sweep` keeps what was done and goes on from there",
    )
}

/// Does each of these words select something that the runs can yield?
fn selects(batch: &Batch, words: &[String]) -> Result<(), CliError> {
    let names: BTreeSet<String> = (batch.cells.iter())
        .flat_map(|(_, scenario)| value_names(scenario))
        .collect();
    let unknown = (words.iter()).find(|word| !names.iter().any(|name| name.contains(&**word)));
    unknown.map_or(Ok(()), |word| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let names = names.join(", ");
        Err(CliError::usage(format!(
            "no measure contains `{word}`; there are {names}"
        )))
    })
}

/// Is there a folder that the file can be written to?
fn can_write(file: &Path) -> Result<(), CliError> {
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    match folder.is_none_or(Path::is_dir) && !file.is_dir() {
        true => Ok(()),
        false => Err(CliError::usage(format!("cannot write {}", file.display()))
            .hint("name a file in a folder that is there")),
    }
}

/// Results as one line of JSON: pretty ones would be mostly line ends.
pub(super) fn print_json(results: &Results) -> Result<(), CliError> {
    output::line(&serde_json::to_string(results).map_err(CliError::runtime)?)
}

pub(super) fn print_table(results: &Results, words: &[String]) -> Result<(), CliError> {
    let measures = choose(results, words).map_err(CliError::usage)?;
    output::line(table(results, &measures, WIDTH).trim_end())
}

pub(super) fn write_page(file: &Path, about: &str, results: &Results) -> Result<(), CliError> {
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| word.to_string_lossy().into_owned());
    let command: Vec<String> = std::iter::once("marline".to_owned()).chain(words).collect();
    let text = page(&Page {
        title: &results.title,
        command: &command.join(" "),
        sections: vec![Section {
            about,
            results,
            measures: Vec::new(),
            cell: BTreeMap::new(),
            verdicts: None,
        }],
    });
    write(file, &text.map_err(CliError::runtime)?)
}

fn draw_over_time(file: &Path, results: &Results, words: &[String]) -> Result<(), CliError> {
    match over_time(results, words).map_err(CliError::runtime)? {
        Some(svg) => write(file, &svg),
        None => Err(
            CliError::runtime(format!("no quantity over time fits {}", words.join(", ")))
                .hint("name a rate, a delay of a workload, or a window or queue with --measure"),
        ),
    }
}

pub(super) fn write(file: &Path, text: &str) -> Result<(), CliError> {
    std::fs::write(file, text)
        .map_err(|error| CliError::runtime(format!("cannot write {}: {error}", file.display())))
}

fn csv_error(error: csv::Error) -> CliError {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => CliError::output(error),
        other => CliError::runtime(format!("cannot write CSV: {other:?}")),
    }
}
