use super::program::Program;
use super::skip::skipped;
use super::until;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fmt;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// A network namespace; gone with its interfaces when this is dropped.
#[derive(Debug)]
pub(crate) struct Namespace(String);

/// Runs `ip`.
pub(super) fn ip(words: &str) -> Result<String, String> {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.map_err(|error| format!("`ip` cannot be run: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!(
            "`ip {words}`: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// Moves this thread into the namespace of that name.
pub(crate) fn enter(name: &str) {
    let file = File::open(format!("/run/netns/{name}")).expect("the namespace");
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .expect("root may enter a namespace");
}

impl Namespace {
    /// One whose name ends with `part`. `None`, and a word of it, where this machine does not let
    /// us.
    pub(crate) fn new(part: &str) -> Option<Namespace> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let left_out = |why: &str| {
            skipped(&format!("{why} (docs/TESTING.md says what tunnels need)"));
            None
        };
        if !rustix::process::geteuid().is_root() {
            return left_out("network namespaces need root");
        }
        if !Path::new("/dev/net/tun").exists() {
            return left_out("there is no /dev/net/tun");
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("marline-{}-{number}-{part}", std::process::id());
        match ip(&format!("netns add {name}")) {
            Ok(_) => Some(Namespace(name)),
            Err(why) => left_out(&why),
        }
    }

    /// Changes a setting.
    pub(crate) fn set(&self, name: &str, value: &str) {
        let file = format!("/proc/sys/{name}");
        self.inside(|| std::fs::write(&file, value).expect("a setting"));
    }

    /// Reads a setting.
    pub(crate) fn setting(&self, name: &str) -> String {
        let file = format!("/proc/sys/{name}");
        let value = self.inside(|| std::fs::read_to_string(&file).expect("a setting"));
        value.trim().to_owned()
    }

    /// Runs `ip` there; `None` when it fails.
    pub(crate) fn ip(&self, words: &str) -> Option<String> {
        ip(&format!("-n {self} {words}")).ok()
    }

    /// Waits until a device is not there any more.
    pub(crate) fn device_is_gone(&self, device: &str) {
        until("the device to be gone", || {
            let there = self.ip(&format!("link show {device}"));
            there.is_none().then_some(())
        });
    }

    /// Runs `work` in a thread that is there; sockets that it opens stay there.
    pub(crate) fn inside<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                enter(&self.0);
                work()
            });
            thread.join().expect("the work in the namespace")
        })
    }

    /// Starts the program there.
    pub(crate) fn start(&self, name: &str, folder: &Path, words: &[&str]) -> Program {
        Program::start_within(&["ip", "netns", "exec", &self.0], name, folder, words)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = ip(&format!("netns del {self}"));
    }
}
