//! Logs: tracing to standard error, filtered by `--log` or `MARLINE_LOG`.

use super::CliError;
use super::line::Logs;
use std::io::{self, IsTerminal};
use tracing_subscriber::EnvFilter;

/// Starts logging to standard error.
///
/// # Errors
/// When `filter` is not a list of tracing directives. The text is that of `tracing_subscriber::EnvFilter`.
pub(super) fn start(filter: &str) -> Result<(), CliError> {
    let parsed = EnvFilter::try_new(filter).map_err(|error| {
        CliError::usage(format!("--log {filter}: {error}"))
            .hint("use error, warn, info, debug or trace, or a list such as `info,marline=debug`")
    })?;
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(|| Logs)
        .with_ansi(!plain && io::stderr().is_terminal())
        .with_target(false)
        .try_init()
        .map_err(|error| CliError::runtime(format!("cannot start logging: {error}")))
}
