//! Windows: permissions of files are inherited from the user's own folders, sockets are not
//! limited by number, and there is no signal to reload.

use super::{Asked, Descriptors, Report};
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::signal::windows::{CtrlBreak, CtrlC, ctrl_break, ctrl_c};

/// A terminal can be asked by this.
pub trait Terminal {}

impl<T> Terminal for T {}

/// The keys that end a program.
#[derive(Debug)]
pub struct Signals {
    interrupt: CtrlC,
    terminate: CtrlBreak,
}

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    /// The system does not let the program.
    pub fn new() -> io::Result<Self> {
        Ok(Signals {
            interrupt: ctrl_c()?,
            terminate: ctrl_break()?,
        })
    }

    /// The next one. Cancel safe.
    pub async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.terminate.recv() => Asked::Stop,
        }
    }
}

/// Columns of a terminal, as far as its shell says.
pub fn terminal_width(_: &impl Terminal) -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok()
}

/// Makes a folder, and those above it.
///
/// # Errors
/// What the system said.
pub fn make_private_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Does nothing.
///
/// # Errors
/// None.
pub fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

/// Users have no number.
pub fn user() -> u32 {
    0
}

/// Groups have no number.
pub fn groups() -> Vec<u32> {
    Vec::new()
}

/// This host's name.
pub fn host_name() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

/// Any number.
pub fn descriptors() -> Descriptors {
    Descriptors {
        now: None,
        most: None,
    }
}

/// Nothing is to be raised.
///
/// # Errors
/// None.
pub fn raise_descriptors() -> io::Result<()> {
    Ok(())
}

/// Files are their user's own.
///
/// # Errors
/// None.
pub fn give(_: &Path, _: &str) -> io::Result<bool> {
    Ok(false)
}

/// Nobody listens.
///
/// # Errors
/// None.
pub fn report(_: Report<'_>) -> io::Result<()> {
    Ok(())
}

/// Nobody looks.
pub fn watchdog() -> Option<Duration> {
    None
}
