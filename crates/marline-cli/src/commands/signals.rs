//! Signals of a long-running subcommand.

use super::CliError;
use crate::platform::{self, Asked};
use std::time::{Duration, Instant};

/// Signals this soon after the first are the same request: `timeout`, and a shell that ends a
/// pipeline, signal a process and then its whole group.
pub(super) const SAME_WISH: Duration = Duration::from_millis(500);

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    /// SIGINT, SIGTERM: stop gracefully; a second one, at once.
    Stop,
    /// SIGHUP: read the configuration again.
    Reload,
}

/// The signals that are listened to.
#[derive(Debug)]
pub(super) struct Signals {
    system: platform::Signals,
    /// When a stop was asked for first.
    stopped: Option<Instant>,
}

impl Signals {
    pub(super) fn new() -> Result<Self, CliError> {
        let system = platform::Signals::new()
            .map_err(|error| CliError::runtime(format!("cannot listen for signals: {error}")))?;
        Ok(Signals {
            system,
            stopped: None,
        })
    }

    /// The next signal. Cancel safe.
    pub(super) async fn next(&mut self) -> Signal {
        loop {
            if self.system.next().await == Asked::Reload {
                return Signal::Reload;
            }
            match self.stopped {
                Some(first) if first.elapsed() < SAME_WISH => {}
                _ => {
                    self.stopped.get_or_insert_with(Instant::now);
                    return Signal::Stop;
                }
            }
        }
    }

    /// The next signal to stop. Cancel safe.
    pub(super) async fn stop(&mut self) {
        while self.next().await != Signal::Stop {}
    }
}
