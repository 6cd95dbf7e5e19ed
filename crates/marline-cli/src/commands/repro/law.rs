//! `marline repro law`: what the paths' laws are worth, by what became of packets.

use std::fs;
use std::io::Write;

use marline_sim::law::{self, Options};

use super::field::{FIXED, fresh};
use super::{Args, output, runs, stop};
use crate::commands::CliError;

/// What `marline repro` calls it.
pub(super) const NAME: &str = "law";
/// What the list says of it.
pub(super) const TITLE: &str = "When packets arrive: the paths' laws and older estimators";
/// What it writes with --write.
const PICTURE: &str = "law.svg";

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    refuse(args)?;
    let seed = match (args.fixed, args.seed) {
        (true, _) => FIXED,
        (false, Some(seed)) => seed,
        (false, None) => fresh(),
    };
    let only: Vec<String> = args.figure.iter().cloned().collect();
    let options = Options {
        seed,
        quick: args.quick,
        traces: &args.traces,
        only: &only,
    };
    let bench = law::prepare(options).map_err(CliError::usage)?;
    // Without standard error there is nobody to tell.
    let mut stderr = std::io::stderr().lock();
    for missing in &bench.missing {
        let _ = writeln!(stderr, "LEFT OUT {missing}");
    }
    let wanted = bench.runs();
    let _ = writeln!(
        stderr,
        "seed {seed}: {wanted} runs; --seed {seed} repeats them"
    );
    drop(stderr);
    let stop = stop::on_signals()?;
    let bar = runs::bar(NAME);
    bar.set_length(wanted as u64);
    let report = bench.run(runs::threads(args.jobs), &stop, |over| {
        bar.set_position(over as u64)
    });
    bar.finish_and_clear();
    let report = report.ok_or_else(|| {
        CliError::runtime("stopped before all runs were made").hint("--quick makes fewer")
    })?;
    if let Some(folder) = &args.write {
        let cannot = |error: std::io::Error| {
            CliError::runtime(format!("cannot write to {}: {error}", folder.display()))
        };
        fs::create_dir_all(folder).map_err(cannot)?;
        let picture = law::picture().map_err(CliError::runtime)?;
        fs::write(folder.join(PICTURE), picture).map_err(cannot)?;
        fs::write(folder.join("law.txt"), law::text(&report, true)).map_err(cannot)?;
    }
    match args.json {
        true => output::json(&report),
        false => output::line(law::text(&report, false).trim_end()),
    }
}

/// Flags that mean nothing here.
fn refuse(args: &Args) -> Result<(), CliError> {
    let flags = [
        ("--processes", args.processes),
        ("--plot", args.plot.is_some()),
        ("--out", args.out.is_some()),
        ("--ideal", args.ideal),
        ("--seeds", args.seeds.is_some()),
        ("--cell", !args.cells.is_empty()),
    ];
    match flags.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(CliError::usage(format!("`{NAME}` has no {flag}"))
            .hint("leave it out; `marline repro law SET` runs one set")),
        None => Ok(()),
    }
}
