//! Names, sizes, and the bound of a folder.

use crate::platform::make_private_folder;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What all files of a folder may have together unless the user says otherwise (bytes).
pub const DEFAULT_SIZE: u64 = 256 << 20;
/// The smallest bound (bytes): a few files.
pub const LEAST_SIZE: u64 = 1 << 20;
/// A file's part of the folder, and the largest file (bytes): what editors and browsers still open.
const PART: u64 = 16;
const LARGEST: u64 = 16 << 20;

const PREFIX: &str = "marline-";
const EXTENSION: &str = "sqlog";

/// The folder.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    size: u64,
}

impl Folder {
    /// Makes the folder where there is none, and sees that files can be made in it.
    pub(super) fn open(path: &Path, size: u64) -> io::Result<Self> {
        make_private_folder(path)?;
        let size = size.max(LEAST_SIZE);
        let folder = Self {
            path: path.to_owned(),
            size,
        };
        let probe = folder
            .path
            .join(format!(".{PREFIX}probe-{}", std::process::id()));
        private(&probe)?;
        fs::remove_file(&probe)?;
        Ok(folder)
    }

    /// Bytes of one file.
    pub(super) fn file_size(&self) -> u64 {
        (self.size / PART).min(LARGEST)
    }

    /// Bytes that may be written before the folder is looked at again: half a file.
    pub(super) fn step(&self) -> u64 {
        self.size / PART / 2
    }

    /// A trace's file of this number, empty.
    pub(super) fn create(&self, trace: &str, number: u32) -> io::Result<(File, PathBuf)> {
        let path = self
            .path
            .join(format!("{PREFIX}{trace}.{number:03}.{EXTENSION}"));
        let file = private(&path)?;
        mark(&file);
        Ok((file, path))
    }

    /// Deletes the oldest files of ours until there is room for `room` bytes more, but none that is
    /// being written: those in `open`, and those of other programs with the same folder. Answers
    /// whether there is room then.
    pub(super) fn make_room(&self, room: u64, open: &[&Path]) -> bool {
        let Ok(entries) = fs::read_dir(&self.path) else {
            return true;
        };
        let mut files: Vec<(SystemTime, PathBuf, u64)> = entries
            .flatten()
            .filter(|entry| is_ours(&entry.path()))
            .filter_map(|entry| {
                let meta = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                let changed = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                Some((changed, entry.path(), meta.len()))
            })
            .collect();
        files.sort();
        let mut all: u64 = files.iter().map(|(_, _, length)| length).sum();
        for (_, path, length) in files {
            if all + room <= self.size {
                return true;
            }
            let is_written = open.contains(&path.as_path()) || is_marked(&path);
            if !is_written && fs::remove_file(&path).is_ok() {
                all -= length;
            }
        }
        all + room <= self.size
    }
}

/// A new file that nobody but its owner may read, in the place of one that has that name. No link
/// is followed, as anybody may have made one in a folder for all.
fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(path)?;
            options.open(path)
        }
        opened => opened,
    }
}

/// Marks a file as being written, for as long as it is open: by a lock, which goes with the process
/// however that ends. Other systems than Unix would keep readers from it, too.
fn mark(file: &File) {
    #[cfg(unix)]
    if let Err(error) = file.try_lock() {
        // Not every file system has locks.
        tracing::debug!(%error, "other programs may delete a qlog that is being written");
    }
    #[cfg(not(unix))]
    let _ = file;
}

/// Is somebody writing this file?
fn is_marked(path: &Path) -> bool {
    let locked = |file: File| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock));
    cfg!(unix) && File::open(path).is_ok_and(locked)
}

/// Was it written here? The folder may hold other files, and other programs' qlogs.
fn is_ours(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(PREFIX))
        && path
            .extension()
            .is_some_and(|extension| extension == EXTENSION)
}
