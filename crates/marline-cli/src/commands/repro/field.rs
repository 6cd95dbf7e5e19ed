//! `marline repro field`: the bench of links that nobody chose.

use std::fs;
use std::path::Path;

use marline_sim::field::{self, Options, Report};

use super::drawn::{self, Drawn};
use super::{Args, output};
use crate::commands::CliError;

/// What `marline repro` calls it.
pub(super) const NAME: &str = "field";
/// What the list says of it.
pub(super) const TITLE: &str = "Links that nobody chose: recorded, drawn and misbehaving ones";
/// The sets, where the list of figures stands for others.
pub(super) const SETS: [&str; 4] = ["wifi-cell", "leo-cell", "drawn", "misbehaving"];

/// Share of the cells that may be broken. 2 % was the aim: a cell at the very edge of the promise
/// is found beyond it in one run of twenty, and few cells lie there. What is missed is a live
/// stream whose link fades while bytes stand in it: they arrive at a tenth of the rate, which is
/// known a round trip later. Only copies on another path help, and bytes on the wire are bounded
/// as well. With that bound 25 to 33 of 364 cells are beyond the promise (docs/PERFORMANCE.md).
const MAY_BREAK: f64 = 0.1;

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    refuse(args)?;
    let mut only = args.cells.clone();
    only.extend(
        args.figure
            .iter()
            .map(|set| ("set".to_owned(), set.clone())),
    );
    let seed = drawn::seed(args);
    let options = Options {
        seed,
        quick: args.quick,
        seeds: args.seeds.map(|seeds| seeds as usize),
        ideal: args.ideal,
        auto_only: args.auto_only,
        traces: &args.traces,
        only: &only,
    };
    let bench = field::prepare(options).map_err(CliError::usage)?;
    let drawn = Drawn {
        name: NAME,
        seed,
        missing: &bench.missing,
        runs: bench.runs(),
        fewer: "--quick makes fewer; --cell set=NAME, place=NAME or load=NAME some of them",
    };
    let report = drawn.make(args, |threads, stop, progress| {
        bench.run(threads, stop, progress)
    })?;
    if let Some(folder) = &args.write {
        write(&folder.join(NAME), &report)?;
    }
    match args.json {
        true => output::json(&report)?,
        false => output::line(field::text(&report).trim_end())?,
    }
    broken(&report)
}

/// Flags that mean nothing here.
fn refuse(args: &Args) -> Result<(), CliError> {
    let flags = [
        ("--processes", args.processes),
        ("--plot", args.plot.is_some()),
        ("--out", args.out.is_some()),
    ];
    match flags.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => {
            Err(CliError::usage(format!("the bench has no {flag}")).hint("leave it out"))
        }
        None => Ok(()),
    }
}

/// Flags that mean nothing elsewhere.
pub(super) fn only_here(args: &Args) -> Result<(), CliError> {
    let flags = [
        ("--fixed", args.fixed),
        ("--seed", args.seed.is_some()),
        ("--ideal", args.ideal),
        ("--auto-only", args.auto_only),
    ];
    match flags.into_iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(CliError::usage(format!("{flag} is for the bench alone"))
            .hint(format!("write `marline repro {NAME} {flag}`"))),
        None => Ok(()),
    }
}

fn write(folder: &Path, report: &Report) -> Result<(), CliError> {
    let cannot = |error: std::io::Error| {
        CliError::runtime(format!("cannot write to {}: {error}", folder.display()))
    };
    fs::create_dir_all(folder).map_err(cannot)?;
    let csv = report.csv().map_err(CliError::runtime)?;
    fs::write(folder.join("cells.csv"), csv).map_err(cannot)?;
    fs::write(folder.join("table.txt"), field::text(report)).map_err(cannot)
}

/// Too much of a whole bench is broken.
fn broken(report: &Report) -> Result<(), CliError> {
    let (cells, broken, _) = report.score();
    let most = cells as f64 * MAY_BREAK;
    if !report.full || broken as f64 <= most {
        return Ok(());
    }
    let message = format!("{broken} of {cells} cells are broken, and 10 % may be");
    Err(CliError::runtime(message))
}
