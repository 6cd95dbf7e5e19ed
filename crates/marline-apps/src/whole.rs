//! Files that a crash leaves whole.

use std::io::{self, Write};
use std::path::Path;

/// Writes a file so that after a crash it holds the old or the new bytes; its folder is made when
/// there is none.
///
/// # Errors
/// What the system said.
pub fn write_whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = folder_of(file);
    std::fs::create_dir_all(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(bytes)?;
    new.as_file().sync_all()?;
    new.persist(file)?;
    Ok(())
}

/// The folder that a file is in.
pub(crate) fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}
