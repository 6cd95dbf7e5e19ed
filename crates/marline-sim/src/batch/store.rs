//! Finished runs in a file, one JSON line each.
//!
//! A line is written whole by one call and then synced, so that a killed program leaves at most
//! its last line cut; such a line is dropped when the store is opened again.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::{Job, digest};
use crate::results::Run;

/// Runs that are over, by their digest.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: Mutex<File>,
    runs: BTreeMap<String, Run>,
    program: String,
}

/// A store that cannot be used.
#[derive(Debug)]
pub struct StoreError {
    path: PathBuf,
    source: std::io::Error,
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.source)
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

#[derive(Serialize, Deserialize)]
struct Line<R> {
    key: String,
    run: R,
}

impl Store {
    /// Opens or makes the file and reads what it has. `program` stands for the program and the
    /// files that the scenario names: runs of another count as not made.
    ///
    /// # Errors
    ///
    /// A file that cannot be opened, locked, read or written.
    pub fn open(path: &Path, program: &str) -> Result<Self, StoreError> {
        let fail = |source| StoreError {
            path: path.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(fail)?;
        let alone = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::flock(&file, alone).map_err(|_| {
            let used = std::io::Error::other("another program writes to it; wait for its end");
            fail(used)
        })?;
        let (runs, end) = read(&file).map_err(fail)?;
        file.set_len(end).map_err(fail)?;
        file.seek(SeekFrom::Start(end)).map_err(fail)?;
        Ok(Self {
            path: path.to_owned(),
            file: Mutex::new(file),
            runs,
            program: program.to_owned(),
        })
    }

    /// The key of a run.
    pub fn key(&self, job: &Job<'_>) -> String {
        digest(job, &self.program)
    }

    /// The run of this key, if it was made when the store was opened.
    pub fn get(&self, key: &str) -> Option<&Run> {
        self.runs.get(key)
    }

    /// Adds a run.
    ///
    /// # Errors
    ///
    /// A file that cannot be written.
    pub fn add(&self, key: &str, run: &Run) -> Result<(), StoreError> {
        let line = Line {
            key: key.to_owned(),
            run,
        };
        let written = serde_json::to_vec(&line)
            .map_err(std::io::Error::from)
            .and_then(|mut bytes| {
                bytes.push(b'\n');
                let mut file = locked(&self.file);
                file.write_all(&bytes)?;
                file.sync_data()
            });
        written.map_err(|source| StoreError {
            path: self.path.clone(),
            source,
        })
    }
}

/// The runs of all whole lines that hold one, and where the last whole line ends.
fn read(file: &File) -> std::io::Result<(BTreeMap<String, Run>, u64)> {
    let mut reader = BufReader::new(file);
    let (mut runs, mut end) = (BTreeMap::new(), 0);
    let mut text = Vec::new();
    loop {
        text.clear();
        let length = reader.read_until(b'\n', &mut text)?;
        if !text.ends_with(b"\n") {
            return Ok((runs, end));
        }
        end += length as u64;
        // What else is in the file is none of ours to remove, and costs no more than its own run.
        if let Ok(line) = serde_json::from_slice::<Line<Run>>(&text) {
            runs.insert(line.key, line.run);
        }
    }
}

/// A panic elsewhere ends the batch by itself; what the lock holds is whole.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
