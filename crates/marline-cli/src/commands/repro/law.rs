//! `marline repro law`: what the paths' laws are worth, by what became of packets.

use std::fs;

use marline_sim::law::{self, Options};

use super::drawn::{self, Drawn};
use super::{Args, output};
use crate::commands::CliError;

/// What `marline repro` calls it.
pub(super) const NAME: &str = "law";
/// What the list says of it.
pub(super) const TITLE: &str = "When packets arrive: the paths' laws and older estimators";
/// What it writes with --write.
const PICTURE: &str = "law.svg";

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    refuse(args)?;
    let seed = drawn::seed(args);
    let only: Vec<String> = args.figure.iter().cloned().collect();
    let options = Options {
        seed,
        quick: args.quick,
        traces: &args.traces,
        only: &only,
    };
    let bench = law::prepare(options).map_err(CliError::usage)?;
    let drawn = Drawn {
        name: NAME,
        seed,
        missing: &bench.missing,
        runs: bench.runs(),
        fewer: "--quick makes fewer",
    };
    let report = drawn.make(args, |threads, stop, progress| {
        bench.run(threads, stop, progress)
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
        ("--auto-only", args.auto_only),
        ("--seeds", args.seeds.is_some()),
        ("--cell", !args.cells.is_empty()),
    ];
    match flags.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(CliError::usage(format!("`{NAME}` has no {flag}"))
            .hint("leave it out; `marline repro law SET` runs one set")),
        None => Ok(()),
    }
}
