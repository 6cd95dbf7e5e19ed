//! Counts: of flows, of threads.

use super::error::ConfigError;
use super::raw::RawServer;
use super::source::Source;
use super::written::Written;
use marline_base::text::Problem;
use std::ops::RangeInclusive;

/// Each worker has a socket for each address, and some memory.
const WORKERS_RANGE: RangeInclusive<usize> = 1..=256;

/// A count within a range.
pub(super) fn count(text: &str, range: RangeInclusive<usize>) -> Result<usize, Problem> {
    match text.parse() {
        Ok(count) if range.contains(&count) => Ok(count),
        _ => Err(Problem::new(format!(
            "`{text}` is not a count from {} to {}",
            range.start(),
            range.end()
        ))),
    }
}

/// Threads that sessions run on.
pub(super) fn workers(
    source: &Source<RawServer>,
    written: Option<&Written>,
) -> Result<usize, ConfigError> {
    match written {
        Some(value) => source.read("workers", value, |text| match text {
            "auto" => Ok(cores()),
            text => count(text, WORKERS_RANGE).map_err(|wrong| wrong.hint("or `auto`")),
        }),
        None => Ok(cores()),
    }
}

/// Cores that this process may use, by its affinity and the quota of its control group.
fn cores() -> usize {
    let cores = std::thread::available_parallelism();
    cores.map_or(1, |cores| cores.get().min(*WORKERS_RANGE.end()))
}
