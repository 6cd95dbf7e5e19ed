//! From a name and flags to runs.

use super::source::Source;
use crate::commands::{CliError, runs, stop};
use clap::builder::RangedU64ValueParser;
use marline_sim::batch::{Alteration, Batch, Outcome, Store};
use marline_sim::scenario::{Document, Mistakes};

/// What `run` and `sweep` share.
#[derive(Debug, clap::Args)]
pub(super) struct Common {
    /// Scenario file, or the name of one that comes with the program (`marline sim list`)
    #[arg(value_name = "FILE")]
    pub(super) file: String,
    #[command(flatten)]
    pub(super) flags: Flags,
}

/// What flags change of a scenario, and how many of its runs are made at once.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Flags {
    /// Compare these schedulers instead of the scenario's: NAME,NAME:KEY=VALUE,… or all
    #[arg(long, value_name = "LIST")]
    scheduler: Option<String>,
    /// Repeat each run with the seeds 1 to N
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Let each run last so long in virtual time, such as 10s
    #[arg(long, value_name = "TIME")]
    duration: Option<String>,
    /// Set a dotted key of the scenario, such as links.a.rate=2mbit; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Runs at once [default: one a core]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_024))]
    jobs: Option<usize>,
}

/// A scenario with its flags, checked.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) source: Source,
    pub(super) document: Document,
    pub(super) batch: Batch,
}

impl Common {
    /// Reads and checks the scenario with the flags, with these axes besides its own, and with
    /// `length` as its duration where no flag says one.
    pub(super) fn prepare(
        &self,
        vary: &[String],
        length: Option<&str>,
    ) -> Result<Prepared, CliError> {
        let source = Source::find(&self.file)?;
        let mut document = Document::parse(&source.name, &source.text).map_err(wrong)?;
        for alteration in self.flags.alterations(vary, length) {
            match alteration {
                Alteration::Set(set) => document.set(&set).map_err(wrong)?,
                Alteration::Vary(axis) => document.vary(&axis).map_err(wrong)?,
                Alteration::Compare(names) => document.compare(&names),
            }
        }
        prepare(source, document)
    }
}

impl Flags {
    /// What they change, in the order in which they do.
    pub(super) fn alterations(&self, vary: &[String], length: Option<&str>) -> Vec<Alteration> {
        let duration = self.duration.as_deref().or(length);
        let duration = duration.iter().map(|time| format!("duration={time}"));
        let seeds = self.seeds.iter().map(|seeds| format!("seeds={seeds}"));
        let sets = self.set.iter().cloned().chain(duration).chain(seeds);
        let axes = vary.iter().cloned().map(Alteration::Vary);
        let compared = self.scheduler.iter().cloned().map(Alteration::Compare);
        sets.map(Alteration::Set)
            .chain(axes)
            .chain(compared)
            .collect()
    }

    /// Do they change anything?
    pub(super) fn change_nothing(&self) -> bool {
        self.alterations(&[], None).is_empty()
    }

    /// Makes the runs of the scenario `name`; the first SIGINT or SIGTERM lets those under way end
    /// and begins no more.
    pub(super) fn make(
        &self,
        name: &str,
        batch: &Batch,
        store: Option<&Store>,
    ) -> Result<Outcome, CliError> {
        let stop = stop::on_signals()?;
        let threads = runs::threads(self.jobs);
        let bar = runs::bar(name);
        bar.set_length(batch.jobs().len() as u64);
        let outcome = batch.run(threads, &stop, store, |over| {
            bar.set_position(over as u64);
        });
        bar.finish_and_clear();
        outcome.map_err(CliError::runtime)
    }
}

/// Checks a document; every mistake is named.
pub(super) fn prepare(source: Source, document: Document) -> Result<Prepared, CliError> {
    let cells = document
        .scenarios(&|file| source.read(file))
        .map_err(wrong)?;
    let batch = Batch {
        file: source.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cells,
    };
    let cannot = |error| CliError::usage(format!("{}: {error}", source.name));
    batch.check().map_err(cannot)?;
    Ok(Prepared {
        source,
        document,
        batch,
    })
}

pub(super) fn wrong(mistakes: Mistakes) -> CliError {
    CliError::usage(mistakes)
}

/// What to say when not all runs were made.
pub(super) fn complete(outcome: &Outcome, hint: &str) -> Result<(), CliError> {
    let made = outcome.results.runs.len();
    if made == outcome.wanted {
        return Ok(());
    }
    let message = format!("stopped after {made} of {} runs", outcome.wanted);
    Err(CliError::runtime(message).hint(hint))
}
