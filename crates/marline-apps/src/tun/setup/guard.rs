//! A process that outlives this one and undoes what it did to the system, if this one is killed.
//!
//! It reads commands as they become necessary, and runs them, the last one first, when its input
//! ends: with this process, however that ended. What is undone in good order is forgotten before.
//! While it lives it holds a name that the next run waits for, so that nothing of that one is
//! undone.

use std::io::{self, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
#[cfg(target_os = "linux")]
use std::{
    thread,
    time::{Duration, Instant},
};

/// Signals that end a whole group or service are not for it: its work begins then. A watchdog of
/// systemd's sends SIGABRT to all of a service.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT ABRT TERM
cd /
undo=
while read -r line; do
    case $line in
        forget) undo= ;;
        *) undo="$line
$undo" ;;
    esac
done
eval "$undo" >/dev/null 2>&1
"#;
#[cfg(target_os = "linux")]
/// How long the guard of a process that was killed is waited for: some commands of some
/// milliseconds each.
const EARLIER: Duration = Duration::from_secs(5);
#[cfg(target_os = "linux")]
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// The process, as long as there is something to undo.
#[derive(Debug)]
pub(super) struct Guard {
    child: Child,
    input: Option<ChildStdin>,
}

impl Guard {
    /// Begins to guard what is done for this device, when the guard of an earlier run is done.
    ///
    /// # Errors
    /// There is no shell, or the earlier guard does not end.
    pub(super) fn start(device: &str) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT]);
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.stdout(name(device)?);
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        Ok(Guard { child, input })
    }

    /// Has this command of a shell run first, unless it is forgotten.
    pub(super) fn add(&mut self, command: &str) {
        self.say(command);
    }

    fn say(&mut self, line: &str) {
        let said = self.input.as_mut().map(|input| writeln!(input, "{line}"));
        if let Some(Err(error)) = said {
            tracing::warn!("if this process is killed, `{line}` is not done: {error}");
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.say("forget");
        self.input = None;
        let _ = self.child.wait();
    }
}

/// Something that only one process of this network has at a time, and that is free when it ends.
#[cfg(target_os = "linux")]
fn name(device: &str) -> io::Result<Stdio> {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    let name = SocketAddr::from_abstract_name(named(device))?;
    let begun = Instant::now();
    loop {
        match UnixDatagram::bind_addr(&name) {
            Ok(socket) => return Ok(std::os::fd::OwnedFd::from(socket).into()),
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(error),
            Err(error) if begun.elapsed() >= EARLIER => return Err(error),
            Err(_) => thread::sleep(LOOK),
        }
    }
}

/// Has a process set this device up that still runs, or is what it did being undone?
#[cfg(target_os = "linux")]
pub(super) fn is_guarded(device: &str) -> bool {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    let name = SocketAddr::from_abstract_name(named(device));
    let bound = name.and_then(|name| UnixDatagram::bind_addr(&name));
    bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_guarded(_device: &str) -> bool {
    false
}

#[cfg(target_os = "linux")]
fn named(device: &str) -> String {
    format!("marline-undo-{device}")
}

#[cfg(not(target_os = "linux"))]
fn name(_device: &str) -> io::Result<Stdio> {
    Ok(Stdio::null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// What two commands leave in a file when a guard's input ends, or is dropped if `forget`.
    fn left(device: &str, forget: bool) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("done");
        let mut guard = Guard::start(device).unwrap();
        for word in ["first", "second"] {
            guard.add(&format!("echo {word} >> '{}'", file.display()));
        }
        if forget {
            drop(guard);
        } else {
            guard.input = None;
            guard.child.wait().unwrap();
        }
        fs::read_to_string(&file).unwrap_or_default()
    }

    #[test]
    fn what_is_not_forgotten_is_undone_from_the_last_to_the_first() {
        assert_eq!(left("guard-a", false), "second\nfirst\n");
        assert_eq!(left("guard-a", true), "");
    }

    #[test]
    fn no_signal_that_ends_a_service_keeps_it_from_its_work() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("done");
        let mut guard = Guard::start("guard-c").unwrap();
        guard.add(&format!("echo done > '{}'", file.display()));
        for signal in ["HUP", "INT", "QUIT", "ABRT", "TERM"] {
            guard.add(&format!("kill -{signal} $$"));
        }
        guard.input = None;
        guard.child.wait().unwrap();
        assert!(file.exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_next_run_waits_for_the_guard_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("done");
        let mut first = Guard::start("guard-b").unwrap();
        first.add(&format!("sleep 0.3; touch '{}'", file.display()));
        first.input = None;
        let second = Guard::start("guard-b").unwrap();
        assert!(file.exists());
        drop(second);
    }
}
