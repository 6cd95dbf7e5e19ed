//! Whose a file is.

use super::CliError;
use crate::platform;
use std::path::Path;

/// Gives `file` to `user` and the group of that user; false where there is no such user.
///
/// # Errors
/// What the system said.
pub(super) fn give(file: &Path, user: &str) -> Result<bool, CliError> {
    platform::give(file, user).map_err(|error| {
        CliError::runtime(format!("cannot give {} to {user}: {error}", file.display()))
    })
}
