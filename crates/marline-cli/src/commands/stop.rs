//! Signals of a computation: the first asks it to stop, the second ends the program at once.

use super::signals::SAME_WISH;
use crate::commands::CliError;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Becomes true at the first SIGINT, SIGTERM or SIGHUP. The next one ends the program at once.
pub(super) fn on_signals() -> Result<Arc<AtomicBool>, CliError> {
    let cannot = |error| CliError::runtime(format!("cannot listen for signals: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(cannot)?;
    let stop = Arc::new(AtomicBool::new(false));
    let wish = Arc::clone(&stop);
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            let mut first = None;
            for signal in signals.forever() {
                wish.store(true, Ordering::SeqCst);
                if first.get_or_insert_with(Instant::now).elapsed() > SAME_WISH {
                    low_level::exit(128 + signal);
                }
            }
        })
        .map_err(cannot)?;
    Ok(stop)
}
