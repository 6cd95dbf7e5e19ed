//! What was recorded: video frames, web pages, an offloaded task, and rates of links that were
//! measured at once.
//!
//! Every loader takes a file's name and text, so that it can be tested without files; [`read`]
//! fetches the text with a bound on its length. Every error names the file, the line and the hint.
//! The trace of one link is not here: a link reads its own
//! ([`marline_link::LinkConfig::parse_with`]).

mod error;
mod frames;
mod offload;
mod pages;
mod pings;
mod rates;
mod table;

pub use error::TraceError;
pub use frames::{Frame, FrameKind, FrameTrace};
pub use offload::{OffloadTrace, Request};
pub use pages::{Page, PageObject, Pages};
pub use pings::pings;
pub use rates::RateTable;

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest file that is read, in bytes.
pub const MAX_FILE: u64 = 64 << 20;

/// Reads the text of a trace or a scenario, without the byte order mark that it may begin with.
///
/// # Errors
///
/// When the file cannot be read, is not UTF-8, or is longer than [`MAX_FILE`].
pub fn read(path: &Path) -> Result<String, TraceError> {
    let name = path.display().to_string();
    let fail = |problem: String| TraceError::of_file(&name, problem);
    let cannot = |error| fail(format!("cannot read: {error}"));
    let file = File::open(path).map_err(cannot)?;
    let mut text = String::new();
    // One byte more distinguishes a file that is too long from one that just fits.
    file.take(MAX_FILE + 1)
        .read_to_string(&mut text)
        .map_err(cannot)?;
    if text.len() as u64 > MAX_FILE {
        return Err(fail(format!(
            "longer than {} MiB; shorten the file",
            MAX_FILE >> 20
        )));
    }
    // Some editors begin a file with a byte order mark.
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_named() {
        let error = read(Path::new("/no/such/video.csv"))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("/no/such/video.csv: cannot read: "),
            "{error}"
        );
    }
}
