//! Where sessions are written to.

use super::error::{ConfigError, Placed as _};
use super::keys::Raw;
use super::source::Source;
use super::written::Written;
use crate::qlog::{DEFAULT_SIZE, LEAST_SIZE};
use marline_base::text::{Problem, size};
use std::path::PathBuf;

/// A folder of qlog files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QlogFolder {
    /// The folder.
    pub path: PathBuf,
    /// What its files may have together (bytes).
    pub size: u64,
}

pub(super) fn qlog<R: Raw>(
    source: &Source<R>,
    folder: Option<&Written>,
    limit: Option<&Written>,
) -> Result<Option<QlogFolder>, ConfigError> {
    let limited = limit.map(|value| source.read("qlog-size", value, qlog_size));
    let limited = limited.transpose()?;
    match (folder, limit) {
        (Some(folder), _) => Ok(Some(QlogFolder {
            path: source.resolve(folder),
            size: limited.unwrap_or(DEFAULT_SIZE),
        })),
        (None, Some(value)) => Err(
            Problem::new("there is no qlog folder whose size it could be")
                .hint("name the folder with `qlog`, too")
                .at(source.place("qlog-size", value)),
        ),
        (None, None) => Ok(None),
    }
}

/// The size of a folder of qlog files, as people write it.
pub(crate) fn qlog_size(text: &str) -> Result<u64, Problem> {
    // 1 MB is less than 1 MiB.
    match size(text)? {
        bytes if bytes >= 1_000_000 => Ok(bytes.max(LEAST_SIZE)),
        _ => Err(
            Problem::new(format!("`{text}` is too small for the files of a qlog"))
                .hint("write 1MB or more, 64MB for example"),
        ),
    }
}
