//! What systems do differently: signals, permissions of files, terminals, limits. The program knows
//! of no system but here and in `control`, whose sockets only Unix has.

#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
use elsewhere as system;
#[cfg(unix)]
use unix as system;

pub use system::{
    Signals, descriptors, give, groups, host_name, make_private_folder, raise_descriptors, report,
    set_mode, terminal_width, user, watchdog,
};

use std::io::IsTerminal;

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// SIGINT or SIGTERM; CTRL-C or CTRL-BREAK: stop.
    Stop,
    /// SIGHUP: read the configuration again.
    Reload,
}

/// Descriptors that this process may have open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// Now; `None` is any number.
    pub now: Option<u64>,
    /// How far the process may raise that itself.
    pub most: Option<u64>,
}

/// What a service manager learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report<'a> {
    /// It serves.
    Ready,
    /// It reads its configuration again.
    Reloading,
    /// The end has begun.
    Stopping,
    /// How it is, in a line.
    Status(&'a str),
    /// Its event loop turns.
    Turning,
}

/// Columns of the terminal that standard output or standard error is; `None` where it is none.
pub fn width_of(terminal: &(impl IsTerminal + system::Terminal)) -> Option<usize> {
    terminal
        .is_terminal()
        .then(|| terminal_width(terminal))
        .flatten()
}
