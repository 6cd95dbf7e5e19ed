//! `--qlog` of `marline sim run`: the sessions of the runs, each end in files of its own.

use crate::commands::{CliError, qlog};
use crate::config::{QlogFolder, qlog_size};
use crate::qlog::{Clock, Qlog, Trace, WhenFull};
use marline_proto::Side;
use marline_sim::End;
use marline_sim::batch::Batch;
use marline_sim::scenario::{Cell, Watch, Watched};
use serde_json::{Map, json};
use std::path::PathBuf;

/// What the files of all runs may have together unless the user says otherwise (bytes): a minute
/// of two links at 20 Mb/s takes some 80 MB.
const DEFAULT_SIZE: u64 = 1 << 30;

/// Where the runs are written to.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Write what the sessions of the runs do to files of this folder, for tools that read qlog, as
    /// `marline client --qlog` does; times are virtual
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,
    /// What all files of --qlog may have together, 1MB or more; the oldest are deleted
    /// [default: 1GiB]
    #[arg(long, value_name = "SIZE", requires = "qlog", value_parser = read_size)]
    qlog_size: Option<u64>,
}

fn read_size(text: &str) -> Result<u64, String> {
    qlog_size(text).map_err(|problem| problem.to_string())
}

impl Args {
    /// Has the runs of the batch written, if that is wanted.
    pub(super) fn watch(&self, batch: &mut Batch) -> Result<Option<Qlog>, CliError> {
        let folder = self.qlog.as_ref().map(|path| QlogFolder {
            path: path.clone(),
            size: self.qlog_size.unwrap_or(DEFAULT_SIZE),
        });
        let qlog = qlog::open(folder.as_ref(), WhenFull::Wait)?;
        let Some(opened) = &qlog else { return Ok(None) };
        let several = batch.cells.len() > 1;
        for (number, (cell, scenario)) in (1..).zip(&mut batch.cells) {
            let (opened, title) = (opened.clone(), scenario.title.clone());
            let cell = cell.clone();
            scenario.watch = Watch::new(move |session| {
                let number = several.then_some(number);
                Some(opened.observer(trace(session, &title, number, &cell)))
            });
        }
        Ok(qlog)
    }
}

/// The description of one end of a session of a run.
fn trace(session: &Watched<'_>, title: &str, number: Option<usize>, cell: &Cell) -> Trace {
    let (side, end) = match session.end {
        End::Client => (Side::Client, "client"),
        End::Server => (Side::Server, "server"),
    };
    let number = number.map_or(String::new(), |number| format!("cell{number}-"));
    let (scheduler, seed) = (session.scheduler, session.seed);
    let name = format!("{number}{scheduler}-seed{seed}-{}-{end}", session.session);
    let safe = |c: char| match c {
        c if c.is_ascii_alphanumeric() || "-._=".contains(c) => c,
        _ => '_',
    };
    let mut details = Map::new();
    details.insert("scheduler".into(), json!(scheduler));
    details.insert("seed".into(), json!(seed));
    details.insert("session".into(), json!(session.session));
    details.extend(cell.iter().map(|(key, value)| (key.clone(), json!(value))));
    Trace {
        name: name.chars().map(safe).collect(),
        side,
        clock: Clock::Virtual,
        scenario: Some((title.to_owned(), details)),
    }
}
