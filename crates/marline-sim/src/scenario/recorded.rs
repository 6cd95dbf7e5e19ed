//! What a scenario names a file for.

use super::links::{A_FILE, ReadFile};
use super::reader::Reader;
use crate::traces::TraceError;

/// What the file named by `key` holds.
pub(super) fn recorded<T>(
    reader: &Reader<'_>,
    key: &'static str,
    files: &ReadFile<'_>,
    parse: impl Fn(&str, &str) -> Result<T, TraceError>,
) -> Option<T> {
    let name = reader.text(key)?;
    let read = files(&name).map_err(|why| format!("{name}: {why}"));
    match read.and_then(|text| parse(&name, &text).map_err(|error| error.to_string())) {
        Ok(found) => Some(found),
        Err(why) => {
            reader.wrong(key, reader.get(key)?, why, A_FILE);
            None
        }
    }
}
