use super::{DeviceError, Direction};
use marline_link::ConfigError;
use std::io;
use std::net::SocketAddr;

/// Why an emulator could not be started, or its link not be changed.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// A parameter of one of the links is out of range.
    #[error("{direction} link: {source}")]
    Config {
        /// Which link.
        direction: Direction,
        /// What is wrong with it.
        source: ConfigError,
    },
    /// The address to listen on cannot be used.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The target cannot be reached from here.
    #[error("cannot send to {addr}: {source}")]
    Target {
        /// The target.
        addr: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// A network device cannot be had.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The system refused a pipe or a thread.
    #[error("cannot start the emulator's thread: {0}")]
    Thread(io::Error),
}
