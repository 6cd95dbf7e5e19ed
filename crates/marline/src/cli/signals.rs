//! Signals of a long-running subcommand.

use super::CliError;
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

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
    interrupt: Stream,
    terminate: Stream,
    hangup: Stream,
}

impl Signals {
    pub(super) fn new() -> Result<Self, CliError> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| CliError::runtime(format!("cannot listen for signals: {error}")))
        };
        Ok(Signals {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// The next signal. Cancel safe.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Stop,
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.hangup.recv() => Signal::Reload,
        }
    }

    /// The next signal to stop. Cancel safe.
    pub(super) async fn stop(&mut self) {
        while self.next().await != Signal::Stop {}
    }
}
