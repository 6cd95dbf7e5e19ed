//! Signals of a computation: the first asks it to stop, the second ends the program at once.

use crate::cli::CliError;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Becomes true at the first SIGINT or SIGTERM.
pub(super) fn on_signals() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Handlers run in the order in which they were registered: this one sees the flag only
        // when an earlier signal has set it.
        flag::register_conditional_shutdown(signal, 128 + signal, stop.clone())
            .and_then(|_| flag::register(signal, stop.clone()))
            .map_err(|error| CliError::runtime(format!("cannot listen for signals: {error}")))?;
    }
    Ok(stop)
}
