//! Standard output: data only, for people or for programs.

use super::CliError;
use serde::Serialize;
use std::io::{self, Write};

/// Writes `text` and a line end to standard output.
pub fn line(text: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")
        .and_then(|()| stdout.flush())
        .map_err(CliError::output)
}

/// Writes `value` as indented JSON and a line end to standard output.
pub fn json<T: Serialize>(value: &T) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(CliError::runtime)?;
    line(&text)
}
