//! What commands that make many simulated runs share: threads, a progress bar, and runs that are
//! kept so that a stopped command goes on where it was.

use super::CliError;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use marline_sim::batch::Store;
use sha2::{Digest, Sha256};
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

/// Runs at once: as many as asked for, or one a core.
pub(super) fn threads(jobs: Option<usize>) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    jobs.unwrap_or_else(cores)
}

/// Progress on standard error; nothing where that is no terminal.
pub(super) fn bar(name: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len} runs, {eta} left") {
        bar.set_style(style);
    }
    bar.set_message(name.to_owned());
    bar
}

/// Opens the runs kept in a folder, which is made if it is not there. Runs of another build of the
/// program, or with other `files` of the scenario, count as not made.
pub(super) fn store(folder: &Path, files: &str) -> Result<Store, CliError> {
    store_of(folder, &format!("{}\n{files}", program()?))
}

/// The same, with `program` standing for both.
pub(super) fn store_of(folder: &Path, program: &str) -> Result<Store, CliError> {
    let cannot = |error| {
        let folder = folder.display();
        CliError::runtime(format!("cannot write to {folder}: {error}"))
    };
    fs::create_dir_all(folder).map_err(cannot)?;
    Store::open(&folder.join("runs.jsonl"), program).map_err(CliError::runtime)
}

/// Stands for the files of a folder and those below it: their names, sizes and times, not what is
/// in them, which may be much. Empty if it cannot be read.
pub(super) fn state(folder: &Path) -> String {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(data) if data.is_dir() => folders.push(entry.path()),
                Ok(data) => found.push((entry.path(), data.len(), data.modified().ok())),
                Err(_) => {}
            }
        }
    }
    found.sort();
    let lines = found.iter().map(|file| format!("{file:?}\n"));
    lines.collect()
}

/// Stands for this build of the program: another one may measure something else.
fn program() -> Result<String, CliError> {
    let read = std::env::current_exe().and_then(fs::read);
    let bytes = read.map_err(|error| CliError::runtime(format!("cannot read itself: {error}")))?;
    Ok(format!("{:?}", Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_folder_is_that_of_every_file_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("below");
        fs::create_dir(&below).unwrap();
        fs::write(below.join("a.csv"), "1").unwrap();
        let before = state(folder.path());
        assert!(before.contains("a.csv"), "{before}");
        assert_eq!(state(folder.path()), before);
        fs::write(below.join("a.csv"), "12").unwrap();
        assert_ne!(state(folder.path()), before);
        assert_eq!(state(&folder.path().join("none")), "");
    }
}
