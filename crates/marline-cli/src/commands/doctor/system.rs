//! Where the kernel tells of itself: procfs and sysfs, at roots that a test may choose.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

/// Longest file that is read, bytes; what is looked for is in the first lines.
const MAX_FILE: u64 = 64 << 10;

#[derive(Debug, Clone)]
pub(super) struct System {
    pub(super) proc: PathBuf,
    pub(super) sys: PathBuf,
}

impl System {
    /// A file below procfs, without the white space around it; `None` if it cannot be read.
    pub(super) fn proc(&self, path: &str) -> Option<String> {
        read(self.proc.join(path))
    }

    /// A number below procfs.
    pub(super) fn proc_number(&self, path: &str) -> Option<u64> {
        self.proc(path)?.parse().ok()
    }

    /// An attribute of a network interface; `None` if it cannot be read.
    pub(super) fn of_device(&self, device: &str, attribute: &str) -> Option<String> {
        if !is_a_name(device) {
            return None;
        }
        read(self.sys.join("class/net").join(device).join(attribute))
    }

    /// Is there an interface of this name?
    pub(super) fn has_device(&self, device: &str) -> bool {
        is_a_name(device) && self.sys.join("class/net").join(device).exists()
    }

    /// The names of all interfaces, in order.
    pub(super) fn devices(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.sys.join("class/net")) else {
            return Vec::new();
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

/// An interface's name is no way out of its folder.
fn is_a_name(device: &str) -> bool {
    !device.is_empty() && !device.contains('/') && device != "." && device != ".."
}

fn read(path: PathBuf) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A made tree with these files; a name that begins with `proc/` or `sys/` says where.
    pub(in super::super) fn made(files: &[(&str, &str)]) -> (tempfile::TempDir, System) {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let system = System {
            proc: folder.path().join("proc"),
            sys: folder.path().join("sys"),
        };
        (folder, system)
    }

    #[test]
    fn odd_names_and_contents_are_nothing() {
        let (_folder, system) = made(&[
            ("sys/class/net/eth0/mtu", "1500\n"),
            ("sys/secret", "x"),
            ("proc/odd", "\u{0}12x"),
        ]);
        assert_eq!(system.of_device("eth0", "mtu").as_deref(), Some("1500"));
        assert_eq!(system.devices(), ["eth0"]);
        for name in ["", ".", "..", "../..", "eth0/../eth0", "none"] {
            assert!(!system.has_device(name), "{name}");
            assert_eq!(system.of_device(name, "mtu"), None, "{name}");
        }
        assert_eq!(system.proc_number("odd"), None);
        assert_eq!(system.proc("none"), None);
    }
}
