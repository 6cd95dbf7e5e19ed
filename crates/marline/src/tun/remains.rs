//! What a server has switched on in the system and not yet switched off again, in a file: a process that is killed undoes
//! nothing, but the next one knows of it and does.
//!
//! ```toml
//! boot = "e7ab9d3c-…"
//! network = 4026531840
//! on = ["/proc/sys/net/ipv4/ip_forward"]
//! ```
//! With the boot and the network namespace all that is gone, so the file counts in its own only.

use super::write_whole;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
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
}

impl Remains {
    /// What is remembered beside the tunnel's state file; without one, nothing is.
    pub(super) fn beside(state: Option<&Path>) -> Self {
        let Some(state) = state else {
            return Remains::default();
        };
        let mut name = OsString::from(state);
        name.push(".undo");
        match here() {
            Ok(here) => Remains::load(name.into(), here),
            Err(error) => {
                tracing::debug!(%error, "what is switched on is not remembered");
                Remains::default()
            }
        }
    }

    fn load(file: PathBuf, here: Stored) -> Self {
        let stored = match fs::read_to_string(&file) {
            Ok(text) => toml::from_str::<Stored>(&text).unwrap_or_else(|error| {
                let (file, why) = (file.display(), error.message());
                tracing::warn!(
                    "{file} is damaged, and what it told of an earlier run is lost: {why}"
                );
                here.clone()
            }),
            Err(_) => here.clone(),
        };
        let is_ours = (&stored.boot, stored.network) == (&here.boot, here.network);
        Remains {
            file: Some(file),
            stored: if is_ours { stored } else { here },
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

    /// Remembers that this setting is about to be switched on. What cannot be kept is logged: it matters only if this
    /// process is killed.
    pub(super) fn add(&mut self, setting: &str) {
        let Some(file) = &self.file else { return };
        if self.holds(setting) {
            return;
        }
        self.stored.on.push(setting.to_owned());
        let text = toml::to_string(&self.stored).map_err(io::Error::other);
        if let Err(error) = text.and_then(|text| write_whole(file, text.as_bytes())) {
            let file = file.display();
            tracing::warn!(
                "cannot write {file}: {error}; if this process is killed, {setting} stays on"
            );
        }
    }
}

/// This boot and this network namespace, with nothing switched on.
fn here() -> io::Result<Stored> {
    Ok(Stored {
        boot: fs::read_to_string(BOOT)?.trim().to_owned(),
        network: fs::metadata(NETWORK)?.ino(),
        on: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTING: &str = "/proc/sys/net/ipv4/ip_forward";

    fn at(boot: &str, network: u64) -> Stored {
        Stored {
            boot: boot.to_owned(),
            network,
            on: Vec::new(),
        }
    }

    #[test]
    fn what_was_switched_on_is_known_again_in_the_same_boot_and_network_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/tunnel.toml.undo");
        let load = |here| Remains::load(file.clone(), here);
        let mut first = load(at("a", 7));
        assert!(!first.holds(SETTING));
        first.add(SETTING);
        assert!(load(at("a", 7)).holds(SETTING));
        assert!(!load(at("a", 7)).holds("/proc/sys/net/ipv6/conf/all/forwarding"));
        assert!(!load(at("b", 7)).holds(SETTING), "it was started anew");
        assert!(!load(at("a", 8)).holds(SETTING), "another network");
    }

    #[test]
    fn a_damaged_file_is_no_obstacle_and_is_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("undo");
        fs::write(&file, "on = 3").unwrap();
        let mut remains = Remains::load(file.clone(), at("a", 7));
        assert!(!remains.holds(SETTING));
        remains.add(SETTING);
        assert!(Remains::load(file, at("a", 7)).holds(SETTING));
    }

    #[test]
    fn without_a_state_file_nothing_is_remembered() {
        let mut remains = Remains::beside(None);
        remains.add(SETTING);
        assert!(remains.file().is_none() && !remains.holds(SETTING));
    }
}
