//! What a server has switched on in the system and not yet switched off again, in a file: a process
//! that is killed undoes nothing, but the next one knows of it and does.
//!
//! ```toml
//! boot = "e7ab9d3c-…"
//! network = 4026531840
//! on = ["/proc/sys/net/ipv4/ip_forward"]
//! process = 4711
//! started = 182736
//! ```
//! With the boot and the network namespace all that is gone, so the file counts in its own only.
//! While the process that wrote it lives, it will undo that itself.

use crate::whole::write_whole;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const NETWORK: &str = "/proc/self/ns/net";

/// Kernel settings that are on because this program, or one before it, switched them on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Remains {
    /// `None` when nothing is remembered.
    file: Option<PathBuf>,
    stored: Stored,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    boot: String,
    /// The namespace's number.
    network: u64,
    #[serde(default)]
    on: Vec<String>,
    /// Who will switch them off again, if it lives.
    #[serde(default)]
    process: u32,
    /// When that process was started, by which it is distinguished from a later one of the same
    /// number.
    #[serde(default)]
    started: u64,
}

impl Remains {
    /// What is remembered beside the tunnel's state file; without one, nothing is.
    pub(super) fn beside(state: Option<&Path>) -> Self {
        let Some(state) = state else {
            return Remains::default();
        };
        let mut name = OsString::from(state);
        name.push(".undo");
        match Stored::here() {
            Ok(here) => Remains::load(name.into(), here),
            Err(error) => {
                tracing::debug!(%error, "what is switched on is not remembered");
                Remains::default()
            }
        }
    }

    fn load(file: PathBuf, here: Stored) -> Self {
        let shown = file.display();
        let stored = match fs::read_to_string(&file) {
            Ok(text) => toml::from_str::<Stored>(&text).unwrap_or_else(|error| {
                let why = error.message();
                tracing::warn!(
                    "{shown} is damaged, and what it told of an earlier run is lost: {why}"
                );
                here.clone()
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => here.clone(),
            Err(error) => {
                tracing::warn!(
                    "cannot read {shown}: {error}; it is left alone, and if this process is killed, what it \
                     switches on stays on"
                );
                return Remains::default();
            }
        };
        if stored.boot == here.boot && stored.is_of_another_that_lives(&here) {
            tracing::warn!(
                "{shown} belongs to a server that runs, process {}; give this one a --tun-state of its own, or, if it \
                 is killed, what it switches on stays on",
                stored.process
            );
            return Remains::default();
        }
        let is_ours = (&stored.boot, stored.network) == (&here.boot, here.network);
        let mut remains = Remains {
            stored: if is_ours { stored } else { here.clone() },
            file: Some(file),
        };
        remains.forget_what_is_off();
        remains.stored.process = here.process;
        remains.stored.started = here.started;
        remains
    }

    /// Somebody has switched it off since: if it is on again, somebody else wants it on.
    fn forget_what_is_off(&mut self) {
        let Some(file) = &self.file else { return };
        if !self.stored.on.iter().any(|setting| is_off(setting)) {
            return;
        }
        self.stored.on.retain(|setting| !is_off(setting));
        if !self.stored.on.is_empty() {
            self.keep();
        } else if let Err(error) = fs::remove_file(file) {
            tracing::warn!(
                "cannot remove {}, which is outdated: {error}",
                file.display()
            );
        }
    }

    /// The file, to be removed when nothing is left.
    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Was this setting switched on by an earlier run that could not undo it?
    pub(super) fn holds(&self, setting: &str) -> bool {
        self.stored.on.iter().any(|on| on == setting)
    }

    /// Notes for other processes that this one will switch off what an earlier one could not.
    pub(super) fn take_over(&self) {
        if !self.stored.on.is_empty() {
            self.keep();
        }
    }

    /// Remembers that this setting is about to be switched on.
    pub(super) fn add(&mut self, setting: &str) {
        if self.file.is_some() && !self.holds(setting) {
            self.stored.on.push(setting.to_owned());
            self.keep();
        }
    }

    /// Writes the file. What cannot be kept is logged: it matters only if this process is killed.
    fn keep(&self) {
        let Some(file) = &self.file else { return };
        let text = toml::to_string(&self.stored).map_err(io::Error::other);
        if let Err(error) = text.and_then(|text| write_whole(file, text.as_bytes())) {
            let (file, on) = (file.display(), self.stored.on.join(" and "));
            tracing::warn!(
                "cannot write {file}: {error}; if this process is killed, {on} cannot be switched off after it"
            );
        }
    }
}

impl Stored {
    /// This boot, this network namespace and this process, with nothing switched on.
    fn here() -> io::Result<Self> {
        let process = std::process::id();
        Ok(Stored {
            boot: fs::read_to_string(BOOT)?.trim().to_owned(),
            network: number(&fs::metadata(NETWORK)?),
            on: Vec::new(),
            process,
            started: started(process).unwrap_or_default(),
        })
    }

    fn is_of_another_that_lives(&self, here: &Stored) -> bool {
        self.process != here.process && started(self.process) == Some(self.started)
    }
}

#[cfg(unix)]
fn number(meta: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}

/// There is no such file here.
#[cfg(not(unix))]
fn number(_: &fs::Metadata) -> u64 {
    0
}

/// When the process was started, in ticks of the kernel's clock; `None` if it has ended.
fn started(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // Its name, in brackets, may have blanks and brackets of its own. Fields 3 and 22 of
    // proc_pid_stat(5).
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let is_dead = matches!(fields.next()?, "Z" | "X");
    fields.nth(18)?.parse().ok().filter(|_| !is_dead)
}

fn is_off(setting: &str) -> bool {
    match fs::read_to_string(setting) {
        Ok(value) => value.trim() == "0",
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn at(boot: &str, network: u64) -> Stored {
        Stored {
            boot: boot.to_owned(),
            network,
            ..Stored::default()
        }
    }

    /// A file like those of the kernel, that is on.
    fn setting(folder: &TempDir, name: &str) -> String {
        let file = folder.path().join(name);
        fs::write(&file, "1\n").unwrap();
        file.to_str().unwrap().to_owned()
    }

    #[test]
    fn what_was_switched_on_is_known_again_in_the_same_boot_and_network_only() {
        let folder = tempfile::tempdir().unwrap();
        let (four, six) = (setting(&folder, "4"), setting(&folder, "6"));
        let file = folder.path().join("new/tunnel.toml.undo");
        let load = |here| Remains::load(file.clone(), here);
        let mut first = load(at("a", 7));
        assert!(!first.holds(&four));
        first.add(&four);
        assert!(load(at("a", 7)).holds(&four));
        assert!(!load(at("a", 7)).holds(&six));
        assert!(!load(at("b", 7)).holds(&four), "it was started anew");
        assert!(!load(at("a", 8)).holds(&four), "another network");
    }

    #[test]
    fn what_is_off_is_forgotten_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let (four, six) = (setting(&folder, "4"), setting(&folder, "6"));
        let file = folder.path().join("undo");
        let load = || Remains::load(file.clone(), at("a", 7));
        let mut first = load();
        first.add(&four);
        first.add(&six);
        fs::write(&four, "0\n").unwrap();
        let next = load();
        assert!(!next.holds(&four) && next.holds(&six));
        // Somebody else needs it.
        fs::write(&four, "1\n").unwrap();
        let next = load();
        assert!(!next.holds(&four) && next.holds(&six));
        fs::write(&six, "0\n").unwrap();
        assert!(!load().holds(&six));
        assert!(!file.exists(), "it has nothing more to say");
    }

    #[test]
    fn the_note_of_a_process_that_lives_is_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let four = setting(&folder, "4");
        let file = folder.path().join("undo");
        let process = std::process::id();
        let living = Stored {
            process,
            started: started(process).unwrap(),
            ..at("a", 7)
        };
        Remains::load(file.clone(), living.clone()).add(&four);
        let mut other = Remains::load(file.clone(), at("a", 7));
        other.add("/other");
        assert_eq!(other, Remains::default());
        assert!(Remains::load(file.clone(), living.clone()).holds(&four));
        assert!(!fs::read_to_string(&file).unwrap().contains("/other"));

        // Its number went to a later process; then somebody who lives takes it over.
        let ended = Stored {
            started: living.started + 1,
            ..living.clone()
        };
        let text = Stored {
            on: vec![four.clone()],
            ..ended
        };
        fs::write(&file, toml::to_string(&text).unwrap()).unwrap();
        assert!(Remains::load(file.clone(), at("a", 7)).holds(&four));
        let next = Remains::load(file.clone(), living);
        assert!(next.holds(&four));
        next.take_over();
        assert_eq!(Remains::load(file, at("a", 7)), Remains::default());
    }

    #[test]
    fn a_damaged_file_is_no_obstacle_and_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let four = setting(&folder, "4");
        let file = folder.path().join("undo");
        fs::write(&file, "on = 3").unwrap();
        let mut remains = Remains::load(file.clone(), at("a", 7));
        assert!(!remains.holds(&four));
        remains.add(&four);
        assert!(Remains::load(file, at("a", 7)).holds(&four));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("undo");
        fs::create_dir(&file).unwrap();
        let remains = Remains::load(file, at("a", 7));
        assert_eq!(remains, Remains::default());
    }

    #[test]
    fn without_a_state_file_nothing_is_remembered() {
        let mut remains = Remains::beside(None);
        remains.add("/proc/sys/net/ipv4/ip_forward");
        assert_eq!(remains, Remains::default());
    }
}
