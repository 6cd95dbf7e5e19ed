//! The folder of `--qlog`, opened.

use super::CliError;
use crate::config::QlogFolder;
use crate::qlog::{Qlog, WhenFull};

/// Opens the folder, if one is wanted.
pub(super) fn open(
    folder: Option<&QlogFolder>,
    when_full: WhenFull,
) -> Result<Option<Qlog>, CliError> {
    let Some(QlogFolder { path, size }) = folder else {
        return Ok(None);
    };
    let qlog = Qlog::start(path, *size, when_full).map_err(|error| {
        CliError::runtime(format!(
            "--qlog {}: cannot write there: {error}",
            path.display()
        ))
        .hint("name a folder that this user may write, or that can be made")
    })?;
    Ok(Some(qlog))
}
