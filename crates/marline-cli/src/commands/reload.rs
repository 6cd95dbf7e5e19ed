//! What the reload of a configuration says at both ends, by SIGHUP.

use super::CliError;
use crate::config::{ConfigError, Raw, changed_keys};
use marline_base::text::Problem;
use std::path::Path;

/// Says that the new configuration is wrong, and that the old one holds.
pub(super) fn refused(error: ConfigError) -> Problem {
    let error = CliError::from(error);
    tracing::error!(
        "the configuration was not reloaded, everything stays as it was: {}",
        error.in_one()
    );
    Problem::new(error.in_one())
}

/// Keys whose values in `new` are not those with which the program was started, and which a reload
/// does not apply.
pub(super) fn waiting<R: Raw>(running: &R, new: &R, applied: &[&str]) -> Vec<String> {
    let mut keys = changed_keys(running, new);
    keys.retain(|key| !applied.contains(&key.as_str()));
    keys
}

/// Says that these keys, if any, of the configuration `file` wait for a restart.
pub(super) fn need_restart(file: &Path, keys: &[String]) {
    if !keys.is_empty() {
        tracing::warn!(
            "changed in {}, takes a restart: {}",
            file.display(),
            keys.join(", ")
        );
    }
}
