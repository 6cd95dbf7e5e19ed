//! `marline sim sweep`: many runs that can be stopped and taken up again.

use super::prepare::{Common, complete};
use super::run::{print_table, write, write_page};
use crate::commands::{CliError, runs};
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

At the end OUT holds results.json, results.csv and results.html (docs/RESULTS.md).";

const EXAMPLES: &str = "\
Examples:
  marline sim sweep live.toml --vary links.b.delay=10ms,20ms,40ms,80ms --out delay
  marline sim sweep live.toml --vary links.b.loss=0,0.5%,2% --vary workloads.live.rate=2mbit,4mbit \\
      --scheduler all --seeds 30 --out loss";

/// The flags of `marline sim sweep`.
#[derive(Debug, clap::Args)]
#[command(about = ABOUT, long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(flatten)]
    common: Common,
    /// Vary a dotted key over a list; may be repeated
    #[arg(long, value_name = "KEY=LIST")]
    vary: Vec<String>,
    /// Folder for the results, made if it is not there [default: the scenario's name and -sweep]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Args {
    /// The folder for the results.
    fn out(&self) -> PathBuf {
        let named = || {
            let name = Path::new(&self.common.file).file_stem().unwrap_or_default();
            format!("{}-sweep", name.to_string_lossy()).into()
        };
        self.out.clone().unwrap_or_else(named)
    }
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let prepared = args.common.prepare(&args.vary, None)?;
    let out = args.out();
    let cannot = |error: std::io::Error| {
        CliError::runtime(format!("cannot write to {}: {error}", out.display()))
    };
    let store = runs::store(&out, &prepared.source.files())?;
    let outcome = args.common.make(&prepared, Some(&store))?;
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
    let about = prepared
        .batch
        .cells
        .first()
        .map_or("", |(_, one)| one.about.as_str());
    write_page(&out.join("results.html"), about, results)?;
    print_table(results, &[])
}
