//! `marline sim sweep`: many runs that can be stopped and taken up again.

use super::prepare::{Common, Flags, complete};
use super::run::{print_table, write, write_page};
use super::source::Source;
use crate::commands::{CliError, output, runs};
use marline_sim::batch::{Batch, Plan, Store};
use marline_sim::report::csv;
use std::fs::File;
use std::path::{Path, PathBuf};

const ABOUT: &str = "Run a scenario over ranges of its keys; stopped and started again, it goes on";

const LONG_ABOUT: &str = "\
Run a scenario over ranges of its keys: every combination of all --vary values and of the \
scenario's own [vary] is a cell.

Every finished run is kept in OUT/runs.jsonl. Killed and started again, the same command redoes \
nothing; more seeds, values or schedulers add to what is there. A run counts as made if the \
scenario with all keys set, its trace files, the scheduler, the seed and the program are the same.

At the end OUT holds results.json, results.csv and results.html (docs/RESULTS.md).

With FILE and --plan nothing is run: the plan is written, a file that holds all that its runs \
depend on. `python -m marline sweep PLAN --engine local|ray|dask|slurm --out OUT` runs it on many \
machines and writes the results as Parquet, too (docs/PYTHON.md). With --plan alone, its results \
are taken back from OUT: runs that are there are not made again, missing ones are made here.";

const EXAMPLES: &str = "\
Examples:
  marline sim sweep live.toml --vary links.b.delay=10ms,20ms,40ms,80ms --out delay
  marline sim sweep live.toml --vary links.b.loss=0,0.5%,2% --vary workloads.live.rate=2mbit,4mbit \\
      --scheduler all --seeds 30 --out loss
  marline sim sweep live.toml --vary links.b.delay=10ms,20ms,40ms --seeds 1000 --plan delay.plan
  python3 -m marline sweep delay.plan --engine slurm --out delay
  marline sim sweep --plan delay.plan --out delay";

/// The flags of `marline sim sweep`.
#[derive(Debug, clap::Args)]
#[command(about = ABOUT, long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub(super) struct Args {
    /// Scenario file, or the name of one that comes with the program (`marline sim list`)
    #[arg(value_name = "FILE", required_unless_present = "plan")]
    file: Option<String>,
    #[command(flatten)]
    flags: Flags,
    /// Vary a dotted key over a list; may be repeated
    #[arg(long, value_name = "KEY=LIST")]
    vary: Vec<String>,
    /// With FILE: write the sweep to this file and run nothing. Without: take back the results of
    /// the sweep that is written there
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Folder for the results, made if it is not there [default: the scenario's name and -sweep]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Args {
    /// The folder for the results of this file.
    fn out(&self, file: &Path) -> PathBuf {
        let named = || {
            let name = file.file_stem().unwrap_or_default();
            format!("{}-sweep", name.to_string_lossy()).into()
        };
        self.out.clone().unwrap_or_else(named)
    }
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    match (&args.file, &args.plan) {
        (Some(file), Some(plan)) => write_plan(args, file, plan),
        (Some(file), None) => {
            let common = Common {
                file: file.clone(),
                flags: args.flags.clone(),
            };
            let prepared = common.prepare(&args.vary, None)?;
            let out = args.out(Path::new(file));
            let store = runs::store(&out, &prepared.source.files())?;
            sweep(args, &prepared.source.name, &prepared.batch, &out, &store)
        }
        (None, Some(plan)) => take_back(args, plan),
        (None, None) => Err(CliError::usage("neither a scenario nor a plan is named")),
    }
}

/// Writes the sweep to a file, for others to run.
fn write_plan(args: &Args, file: &str, to: &Path) -> Result<(), CliError> {
    if let Some(out) = &args.out {
        let out = out.display();
        return Err(
            CliError::usage(format!("--out {out}: writing a plan runs nothing"))
                .hint("leave --out away; name the folder when the plan is run"),
        );
    }
    let source = Source::find(file)?;
    let alterations = args.flags.alterations(&args.vary, None);
    let read = |name: &str| source.read(name);
    let plan = Plan::new(&source.name, &source.text, alterations, &read);
    let plan = plan.map_err(CliError::usage)?;
    let text = serde_json::to_string(&plan).map_err(CliError::runtime)?;
    write(to, &text)?;
    let (runs, to) = (plan.runs.len(), to.display());
    output::line(&format!(
        "{runs} runs are planned in {to}; run them by `marline sim sweep --plan {to} --out DIR`, or on \
         other machines by `python3 -m marline sweep {to} --engine ray --out DIR`"
    ))
}

/// Takes back the results of a plan, and makes the missing runs.
fn take_back(args: &Args, file: &Path) -> Result<(), CliError> {
    if !args.flags.change_nothing() || !args.vary.is_empty() {
        return Err(
            CliError::usage("a plan says all of its runs: nothing can be changed of it")
                .hint("name the scenario file, too, to write another plan"),
        );
    }
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| CliError::usage(format!("cannot read {name}: {error}")))?;
    let wrong = |error| CliError::usage(format!("{name}: {error}"));
    let plan = Plan::parse(&text).map_err(wrong)?;
    let batch = plan.batch().map_err(wrong)?;
    let out = args.out(file);
    let store = runs::store_of(&out, &plan.program())?;
    sweep(args, &name, &batch, &out, &store)
}

/// Makes the runs that are missing in the folder, and writes the results of all.
fn sweep(
    args: &Args,
    name: &str,
    batch: &Batch,
    out: &Path,
    store: &Store,
) -> Result<(), CliError> {
    let cannot = |error: std::io::Error| {
        CliError::runtime(format!("cannot write to {}: {error}", out.display()))
    };
    let outcome = args.flags.make(name, batch, Some(store))?;
    let made = outcome.results.runs.len() - outcome.kept;
    let kept = outcome.kept;
    tracing::info!(
        "{made} runs made, {kept} there already, in {}",
        out.display()
    );
    complete(&outcome, "run the same command again to go on")?;
    let results = &outcome.results;
    let json = serde_json::to_string(results).map_err(CliError::runtime)?;
    write(&out.join("results.json"), &json)?;
    let file = File::create(out.join("results.csv")).map_err(cannot)?;
    csv(results, file).map_err(CliError::runtime)?;
    let about = batch.cells.first();
    let about = about.map_or("", |(_, one)| one.about.as_str());
    write_page(&out.join("results.html"), about, results)?;
    print_table(results, &[])
}
