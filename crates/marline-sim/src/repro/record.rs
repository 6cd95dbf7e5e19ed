//! A folder with what was found: for each paper the verdicts as CSV, a page, and a picture of each
//! figure.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use super::natural::natural;
use super::verdict::is_of;
use super::{Outcome, Report, ScenarioReport, measure, pages, picture, rows};
use crate::experiments::{self, Experiment};
use crate::report::plot::PlotError;

/// What a folder has, by paper; the scenarios of a paper by their names, figure 9 before figure 10.
#[derive(Clone, Debug, Default)]
pub struct Record {
    papers: BTreeMap<String, Vec<ScenarioReport>>,
}

/// A record cannot be read or written.
#[derive(Debug)]
pub enum RecordError {
    /// It is a file: a folder is needed.
    File,
    /// A file of it cannot be read, or is not what it should be.
    Read(String),
    /// A file of it cannot be made.
    Make(String),
    /// A file of it cannot be written.
    Write(String),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("is a file, not a folder"),
            Self::Read(why) | Self::Make(why) | Self::Write(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for RecordError {}

impl Record {
    /// Reads the CSV files of `folder`; nothing, if it is not there. Scenarios that are no more are
    /// left out.
    ///
    /// # Errors
    /// If it is a file or looks like one, or a file of it is not as it was written.
    pub fn read(folder: &Path) -> Result<Self, RecordError> {
        let names_a_file = folder
            .extension()
            .is_some_and(|end| end == "md" || end == "csv");
        if folder.is_file() || names_a_file && !folder.is_dir() {
            return Err(RecordError::File);
        }
        let all = experiments::all();
        let mut record = Self::default();
        for one in &all {
            if record.papers.contains_key(one.folder) {
                continue;
            }
            let file = folder.join(format!("{}.csv", one.folder));
            let failed = |error: &dyn fmt::Display| {
                RecordError::Read(format!("cannot read {}: {error}", file.display()))
            };
            let text = match std::fs::read_to_string(&file) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(&error)),
            };
            let own = all.iter().filter(|other| other.folder == one.folder);
            let own: Vec<Experiment> = own.copied().collect();
            let mut scenarios = rows::read(&text, &own).map_err(|error| failed(&error))?;
            for scenario in &mut scenarios {
                let of = own.iter().find(|one| one.name == scenario.name());
                if let Some(one) = of {
                    explain(scenario, one);
                }
            }
            record.papers.insert(one.folder.to_owned(), scenarios);
        }
        record.papers.retain(|_, scenarios| !scenarios.is_empty());
        Ok(record)
    }

    /// Has it nothing?
    pub fn is_empty(&self) -> bool {
        self.papers.is_empty()
    }

    /// Has it, of scenarios that the paper and the file name, what was found with all of their
    /// seeds?
    pub fn has_verdicts<'a>(&self, mut files: impl Iterator<Item = (&'a str, &'a str)>) -> bool {
        files.any(|(paper, name)| {
            let mut known = self.papers.get(paper).into_iter().flatten();
            known.any(|one| one.name() == name && one.is_full())
        })
    }

    /// Takes what was found; what it had of the same scenarios goes.
    pub fn add(&mut self, report: &Report) {
        for scenario in &report.scenarios {
            let known = self.papers.entry(scenario.paper.clone()).or_default();
            known.retain(|one| one.file != scenario.file);
            known.push(scenario.clone());
            known.sort_by_key(|one| natural(one.name()));
        }
    }

    /// The files of the folder, by name.
    ///
    /// # Errors
    /// If one cannot be made.
    pub fn files(&self) -> Result<BTreeMap<String, String>, RecordError> {
        let mut files = BTreeMap::new();
        for (paper, scenarios) in &self.papers {
            let csv = rows::csv(scenarios)
                .map_err(|error| RecordError::Make(format!("cannot make {paper}.csv: {error}")))?;
            files.insert(format!("{paper}.csv"), csv);
            for one in scenarios {
                let svg = picture::svg(one).map_err(|error: PlotError| {
                    RecordError::Make(format!("{paper}/{}: {error}", one.file))
                })?;
                files.insert(picture::file_of(one), svg);
            }
            files.insert(format!("{paper}.md"), pages::page(paper, scenarios));
        }
        files.insert("README.md".to_owned(), pages::index(&self.papers));
        Ok(files)
    }

    /// Writes them into `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// If one cannot be made or written.
    pub fn write(&self, folder: &Path) -> Result<(), RecordError> {
        let files = self.files()?;
        let failed = |path: &Path, error: std::io::Error| {
            RecordError::Write(format!("cannot write {}: {error}", path.display()))
        };
        std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        for (name, text) in files {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| failed(&path, error))?;
        }
        Ok(())
    }
}

/// Takes the reasons of misses from the scenario file as it is now: they are found after the run.
/// Of what the file no longer expects, and of files that cannot be read without measured traces,
/// they stay.
fn explain(scenario: &mut ScenarioReport, experiment: &Experiment) {
    let expectations = measure::expectations(experiment, None).unwrap_or_default();
    let missed = scenario.verdicts.iter_mut();
    for verdict in missed.filter(|verdict| verdict.outcome == Outcome::Missed) {
        if let Some(known) = expectations.iter().find(|one| is_of(verdict, one)) {
            verdict.reason.clone_from(&known.missed);
        }
    }
}
