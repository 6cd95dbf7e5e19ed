//! Where the kernel shows itself: procfs and sysfs. A test makes both up.

use marline::interfaces::Sysfs;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Longest file that is read, bytes; what is looked for is in the first lines.
const MAX_FILE: u64 = 64 << 10;

#[derive(Debug, Clone)]
pub(super) struct System {
    pub(super) proc: PathBuf,
    pub(super) sysfs: Sysfs,
}

impl System {
    /// That of this host, with sysfs there.
    pub(super) fn with(sysfs: Sysfs) -> Self {
        Self {
            proc: PathBuf::from("/proc"),
            sysfs,
        }
    }

    /// A file below procfs, without the white space around it; `None` if it cannot be read.
    pub(super) fn proc(&self, path: &str) -> Option<String> {
        read(&self.proc.join(path))
    }

    /// A number below procfs.
    pub(super) fn proc_number(&self, path: &str) -> Option<u64> {
        self.proc(path)?.parse().ok()
    }

    /// Is there such a file, readable or not?
    pub(super) fn has_proc(&self, path: &str) -> bool {
        self.proc.join(path).exists()
    }
}

fn read(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::fs;

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
            sysfs: Sysfs::at(folder.path().join("sys")),
        };
        (folder, system)
    }

    #[test]
    fn odd_contents_are_nothing() {
        let (_folder, system) = made(&[("proc/odd", "\u{0}12x"), ("proc/seven", "7\n")]);
        assert_eq!(system.proc_number("seven"), Some(7));
        assert_eq!(system.proc_number("odd"), None);
        assert_eq!(system.proc("none"), None);
        assert!(system.has_proc("odd") && !system.has_proc("none"));
    }
}
