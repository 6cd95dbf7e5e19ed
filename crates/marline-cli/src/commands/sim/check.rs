//! `marline sim check`: what a scenario does, in words.

use super::prepare::{prepare, wrong};
use super::source::Source;
use crate::commands::{CliError, output};
use marline_sim::scenario::{Document, explain};

const ABOUT: &str = "Explain a scenario in words, or name every mistake in it";

const EXAMPLES: &str = "\
Examples:
  marline sim check live.toml
  marline sim check examples/handover
  marline sim check examples/drawn-links --set draw.seed=2

A mistake names the file, line and column, the key, and what to write instead (exit code 2).";

/// The flags of `marline sim check`.
#[derive(Debug, clap::Args)]
#[command(about = ABOUT, after_help = EXAMPLES)]
pub(super) struct Args {
    /// Scenario file, or the name of one that comes with the program (`marline sim list`)
    #[arg(value_name = "FILE")]
    file: String,
    /// Set a dotted key of the scenario, such as links.a.rate=2mbit; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let source = Source::find(&args.file)?;
    let mut document = Document::parse(&source.name, &source.text).map_err(wrong)?;
    for set in &args.set {
        document.set(set).map_err(wrong)?;
    }
    let prepared = prepare(source, document)?;
    let Some((_, first)) = prepared.batch.cells.first() else {
        return Ok(());
    };
    output::line(explain(&prepared.document, first).trim_end())
}
