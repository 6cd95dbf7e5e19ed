//! Whose a file is.

use super::CliError;
use nix::unistd::User;
use std::os::unix::fs::chown;
use std::path::Path;

/// Gives `file` to `user` and the group of that user; false where there is no such user.
///
/// # Errors
/// What the system said.
pub(super) fn give(file: &Path, user: &str) -> Result<bool, CliError> {
    let failed = |error: String| {
        CliError::runtime(format!("cannot give {} to {user}: {error}", file.display()))
    };
    let found = User::from_name(user).map_err(|error| failed(error.to_string()))?;
    let Some(found) = found else {
        return Ok(false);
    };
    chown(file, Some(found.uid.as_raw()), Some(found.gid.as_raw()))
        .map_err(|error| failed(error.to_string()))?;
    Ok(true)
}
