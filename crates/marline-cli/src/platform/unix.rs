use super::{Asked, Descriptors, Report};
use nix::unistd::User;
use rustix::process::{Resource, Rlimit, getegid, geteuid, getgroups, getrlimit, setrlimit};
use rustix::termios::tcgetwinsize;
use sd_notify::NotifyState;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::Path;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A terminal can be asked by this.
pub trait Terminal: AsFd {}

impl<T: AsFd> Terminal for T {}

/// The signals that a program of its own accord ends or reloads by.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// Listens from now on.
    ///
    /// # Errors
    /// The system does not let the program.
    pub fn new() -> io::Result<Self> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The next one. Cancel safe.
    pub async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.terminate.recv() => Asked::Stop,
            _ = self.hangup.recv() => Asked::Reload,
        }
    }
}

/// Columns of a terminal.
pub fn terminal_width(terminal: &impl Terminal) -> Option<usize> {
    let size = tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col))
}

/// Makes a folder, and those above it, which nobody else may look into.
///
/// # Errors
/// What the system said.
pub fn make_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Who may read and write a file, as chmod(2) has it.
///
/// # Errors
/// What the system said.
pub fn set_mode(file: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(file, Permissions::from_mode(mode))
}

/// The user's number.
pub fn user() -> u32 {
    geteuid().as_raw()
}

/// The numbers of the user's groups.
pub fn groups() -> Vec<u32> {
    let further = getgroups().unwrap_or_default();
    let groups = [getegid()].into_iter().chain(further);
    groups.map(|group| group.as_raw()).collect()
}

/// This host's name.
pub fn host_name() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

/// How many descriptors the process may have open.
pub fn descriptors() -> Descriptors {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    Descriptors {
        now: current,
        most: maximum,
    }
}

/// Raises that as far as the process may itself.
///
/// # Errors
/// What the system said.
pub fn raise_descriptors() -> io::Result<()> {
    let Descriptors { most, .. } = descriptors();
    let raised = Rlimit {
        current: most,
        maximum: most,
    };
    Ok(setrlimit(Resource::Nofile, raised)?)
}

/// Gives a file to a user and the group of that user; false where there is no such user.
///
/// # Errors
/// What the system said.
pub fn give(file: &Path, user: &str) -> io::Result<bool> {
    let Some(found) = User::from_name(user)? else {
        return Ok(false);
    };
    chown(file, Some(found.uid.as_raw()), Some(found.gid.as_raw()))?;
    Ok(true)
}

/// Reports to the service manager that started this process, if one did.
///
/// # Errors
/// It does not listen.
pub fn report(report: Report<'_>) -> io::Result<()> {
    match report {
        Report::Ready => sd_notify::notify(&[NotifyState::Ready]),
        Report::Reloading => {
            let now = NotifyState::monotonic_usec_now()?;
            sd_notify::notify(&[NotifyState::Reloading, now])
        }
        Report::Stopping => sd_notify::notify(&[NotifyState::Stopping]),
        Report::Status(line) => sd_notify::notify(&[NotifyState::Status(line)]),
        Report::Turning => sd_notify::notify(&[NotifyState::Watchdog]),
    }
}

/// How long the service manager lets the event loop stand still, if it looks at that.
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}
