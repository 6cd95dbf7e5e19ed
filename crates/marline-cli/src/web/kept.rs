//! A secret in a file of its own: read, or made if there is none yet.

use crate::platform::make_private_folder;
use marline::support::access;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

/// Longest such file (bytes): a chain of some ten certificates with its key has 20 kB. A choice.
const LONGEST: u64 = 64 << 10;

/// What `read` finds in the text of `file`, which becomes what `make` yields if there is no file or
/// it is empty.
///
/// # Errors
/// The file cannot be read or made, holds something else, or is open to others.
pub(super) fn kept<T>(
    file: &Path,
    make: impl FnOnce() -> io::Result<String>,
    read: impl Fn(&str) -> io::Result<T>,
) -> io::Result<T> {
    match text(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        found => return read(&found?),
    }
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    make_private_folder(folder)?;
    let made = make()?;
    // Written beside it and moved: nobody reads half of it. Temporary files have mode 0600.
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    writeln!(new, "{}", made.trim_end())?;
    // Else the name may outlive a power cut and its content not.
    new.as_file().sync_all()?;
    if fs::metadata(file).is_ok_and(|found| is_empty(&found)) {
        fs::remove_file(file)?;
    }
    match new.persist_noclobber(file) {
        Ok(_) => read(&made),
        // Another program was quicker.
        Err(error) if error.error.kind() == ErrorKind::AlreadyExists => read(&text(file)?),
        Err(error) => Err(error.error),
    }
}

/// The text of a file of secrets.
///
/// # Errors
/// It cannot be read, is open to others, or is empty, which counts as not there.
pub(super) fn text(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    let metadata: fs::Metadata = file.metadata()?;
    if is_empty(&metadata) {
        return Err(ErrorKind::NotFound.into());
    }
    if let Err(access::TooOpen { mode }) = access::secret(&metadata) {
        return Err(io::Error::other(format!(
            "others may read it (mode {mode:03o}): `chmod 600` it, or remove it for a new one"
        )));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// What a power cut may leave of a file: no secret, and nothing that is lost.
fn is_empty(metadata: &fs::Metadata) -> bool {
    metadata.is_file() && metadata.len() == 0
}
