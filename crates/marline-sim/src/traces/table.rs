//! Comma-separated tables with comment lines (`#`) and a header.

use super::TraceError;
use csv::{ErrorKind, Position, ReaderBuilder, StringRecord, Trim};
use std::time::Duration;

/// Latest time in a table: a week, so that sums of them stay far from the end of time.
const LATEST_MS: f64 = 7.0 * 86_400_000.0;

/// Calls `each` with every row after the header, which must have the columns `wanted`.
pub(super) fn rows(
    name: &str,
    text: &str,
    wanted: &[&str],
    mut each: impl FnMut(&Row<'_>) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    let mut reader = ReaderBuilder::new()
        .comment(Some(b'#'))
        .trim(Trim::All)
        .from_reader(text.as_bytes());
    let header = reader
        .headers()
        .map_err(|error| refused(name, text, &error))?
        .clone();
    let line = line_at(text, header.position());
    for column in wanted {
        if !header.iter().any(|name| name == *column) {
            let problem = format!(
                "no column {column}; begin the table with a header that names {}",
                wanted.join(", ")
            );
            return Err(TraceError::new(name, line, problem));
        }
    }
    let mut cells = StringRecord::new();
    let mut is_empty = true;
    while reader
        .read_record(&mut cells)
        .map_err(|error| refused(name, text, &error))?
    {
        is_empty = false;
        each(&Row {
            name,
            table: text,
            header: &header,
            cells: &cells,
        })?;
    }
    if is_empty {
        let problem = "the table has no rows; give at least one after the header";
        return Err(TraceError::new(name, line, problem));
    }
    Ok(())
}

/// The line of the row that was read from `position`: before it may come comments and blank lines.
fn line_at(text: &str, position: Option<&Position>) -> u64 {
    let (line, byte) = position.map_or((1, 0), |p| (p.line(), p.byte() as usize));
    let rest = text.get(byte..).unwrap_or_default();
    let skipped = |content: &&str| content.is_empty() || content.starts_with('#');
    line + rest.lines().take_while(skipped).count() as u64
}

fn refused(name: &str, text: &str, error: &csv::Error) -> TraceError {
    let line = line_at(text, error.position());
    match error.kind() {
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            let problem = format!("{len} values; the header names {expected_len}");
            TraceError::new(name, line, problem)
        }
        _ => TraceError::new(name, line, format!("not a table: {error}")),
    }
}

/// One row of a table.
pub(super) struct Row<'a> {
    name: &'a str,
    table: &'a str,
    header: &'a StringRecord,
    cells: &'a StringRecord,
}

impl<'a> Row<'a> {
    /// The text in `column`, if there is such a column.
    pub(super) fn text(&self, column: &str) -> Option<&'a str> {
        let place = self.header.iter().position(|name| name == column)?;
        self.cells.get(place)
    }

    /// The names of all columns.
    pub(super) fn columns(&self) -> impl Iterator<Item = &'a str> {
        self.header.iter()
    }

    /// A time in milliseconds, which may have decimals.
    pub(super) fn millis(&self, column: &str) -> Result<Duration, TraceError> {
        let text = self.text(column).unwrap_or_default();
        let ms: Option<f64> = text.parse().ok();
        ms.and_then(from_millis).ok_or_else(|| {
            self.fail(format!(
                "{column} \"{}\" is not a time; give milliseconds from 0 to a week",
                excerpt(text)
            ))
        })
    }

    /// A whole number of bytes, above zero.
    pub(super) fn bytes(&self, column: &str) -> Result<u32, TraceError> {
        let text = self.text(column).unwrap_or_default();
        text.parse().ok().filter(|&n| n > 0).ok_or_else(|| {
            self.fail(format!(
                "{column} \"{}\" is not a size; give whole bytes from 1 to {}",
                excerpt(text),
                u32::MAX
            ))
        })
    }

    /// An error of this row.
    pub(super) fn fail(&self, problem: impl Into<String>) -> TraceError {
        let line = line_at(self.table, self.cells.position());
        TraceError::new(self.name, line, problem)
    }
}

/// Milliseconds as a time, rounded to nanoseconds; `None` when negative or longer than a week.
pub(super) fn from_millis(ms: f64) -> Option<Duration> {
    (0.0..=LATEST_MS)
        .contains(&ms)
        .then(|| Duration::from_nanos((ms * 1e6).round() as u64))
}

/// The beginning of `text`, for messages.
pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}
