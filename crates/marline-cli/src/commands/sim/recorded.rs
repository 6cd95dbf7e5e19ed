//! `--links RECORDING` of `marline sim run`.

use crate::commands::CliError;
use crate::recording::{Recording, links};
use marline_link::Capacity;
use marline_sim::batch::Batch;
use marline_sim::scenario::{NewLink, OVERHEAD};
use marline_sim::traces;
use std::io::{self, Write};
use std::path::Path;

/// A recording, read.
#[derive(Debug)]
pub(super) struct Recorded {
    file: String,
    recording: Recording,
}

impl Recorded {
    pub(super) fn read(file: &Path) -> Result<Self, CliError> {
        let text = traces::read(file).map_err(CliError::usage)?;
        let file = file.display().to_string();
        let recording = Recording::parse(&file, &text).map_err(CliError::usage)?;
        Ok(Self { file, recording })
    }

    /// Its length, as a scenario writes it.
    pub(super) fn length(&self) -> String {
        format!("{}ms", self.recording.length_ms())
    }

    /// Puts it in the place of the links of every cell.
    pub(super) fn replay(&self, batch: &mut Batch) -> Result<(), CliError> {
        let links = links(&self.recording, OVERHEAD);
        for link in &links {
            for (way, config) in [("up", &link.up), ("down", &link.down)] {
                if config.capacity == Capacity::Unlimited {
                    // Without standard error there is nobody to tell.
                    let _ = writeln!(
                        io::stderr().lock(),
                        "{} {way}: never filled while it was recorded, so it is replayed without a limit of rate",
                        link.name
                    );
                }
            }
        }
        let links: Vec<NewLink> = (links.into_iter())
            .map(|link| NewLink {
                name: link.name,
                up: link.up,
                down: link.down,
                handshake: Some(link.round_trip),
            })
            .collect();
        for (_, scenario) in &mut batch.cells {
            scenario.replace_links(&links).map_err(|why| {
                CliError::usage(format!("{} cannot replay {}: {why}", batch.file, self.file))
            })?;
        }
        batch
            .check()
            .map_err(|error| CliError::usage(format!("{}: {error}", self.file)))
    }
}
