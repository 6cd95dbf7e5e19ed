//! What names stood for last, kept across restarts.
//!
//! A client that starts where no resolver answers dials what is kept. Whoever has such an address
//! now must prove the server's key, so what is kept may be old, or wrong, and only costs a few
//! packets. So nothing about the file is an error: what cannot be read is not there, what cannot be
//! written is not kept. It has the form of hosts(5), an address and a name a line, the first
//! address first; several clients may keep one file.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::support::lock;

/// Names that are kept, others' in the same file among them.
const MOST: usize = 64;
/// Addresses of one name: as many as are dialled.
const MAX_ADDRESSES: usize = 16;
/// Most bytes of a file that are read: more than all that is ever written.
const MAX_BYTES: u64 = (MOST * MAX_ADDRESSES * (46 + 255)) as u64;
/// From one writing to the next at least, so that names whose addresses alternate do not wear out a
/// router's flash.
const WRITE_AGAIN: Duration = Duration::from_secs(60);
const HEAD: &str =
    "# Written by marline: what names stood for last, for starts without a resolver.\n";

type Names = BTreeMap<String, Vec<IpAddr>>;

/// Names and their last addresses. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    file: Option<PathBuf>,
    /// What the file held at the start, and what was found since.
    names: Names,
    /// What was found since.
    found: Names,
    /// There is something that the file does not hold.
    changed: bool,
    written: Option<Instant>,
}

impl Kept {
    /// What `file` holds. Without one, what is found is known until the end.
    pub(super) fn load(file: Option<PathBuf>) -> Self {
        let names = file.as_deref().map(read).unwrap_or_default();
        Self(Arc::new(Mutex::new(Inner {
            file,
            names,
            ..Inner::default()
        })))
    }

    /// What `name` stood for last; nothing if it was never found.
    pub(super) fn get(&self, name: &str) -> Vec<IpAddr> {
        lock(&self.0).names.get(name).cloned().unwrap_or_default()
    }

    /// Notes what `name` stands for. Returns what there is to write, if it is time for that.
    pub(super) fn learn(&self, name: &str, found: &[IpAddr]) -> Option<Writing> {
        let mut inner = lock(&self.0);
        let inner = &mut *inner;
        let found = &found[..found.len().min(MAX_ADDRESSES)];
        let before = inner.names.insert(name.to_owned(), found.to_vec());
        inner.found.insert(name.to_owned(), found.to_vec());
        while inner.found.len() > MOST {
            inner.found.pop_first();
        }
        // Servers of names change the order each time.
        let sorted = |ips: &[IpAddr]| {
            let mut ips = ips.to_vec();
            ips.sort_unstable();
            ips
        };
        inner.changed |= before.is_none_or(|before| sorted(&before) != sorted(found));
        let file = inner.file.clone().filter(|_| inner.changed)?;
        if inner.written.is_some_and(|at| at.elapsed() < WRITE_AGAIN) {
            return None;
        }
        inner.written = Some(Instant::now());
        inner.changed = false;
        let names = inner.found.clone();
        Some(Writing { file, names })
    }
}

/// What is to be written, and where.
#[derive(Debug)]
pub(super) struct Writing {
    file: PathBuf,
    names: Names,
}

impl Writing {
    /// Writes it, and what others have kept there. It blocks.
    pub(super) fn write(self) {
        if let Err(error) = self.tried() {
            let file = self.file.display();
            tracing::debug!("the server's addresses cannot be kept in {file}: {error}");
        }
    }

    fn tried(&self) -> io::Result<()> {
        let mut names = self.names.clone();
        for (name, ips) in read(&self.file) {
            if names.len() < MOST {
                names.entry(name).or_insert(ips);
            }
        }
        let mut text = HEAD.to_owned();
        for (name, ips) in &names {
            for ip in ips {
                text.push_str(&format!("{ip} {name}\n"));
            }
        }
        replace(&self.file, text.as_bytes())
    }
}

/// Writes a file so that a crash leaves the old or the new bytes; its folder is made when there is
/// none.
fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    /// Of this program, so that two writers have files of their own.
    static WRITINGS: AtomicU64 = AtomicU64::new(0);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let number = WRITINGS.fetch_add(1, Ordering::Relaxed);
    let mut beside = file.as_os_str().to_owned();
    beside.push(format!(".{}-{number}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = (|| {
        // One that is there is of a program that was killed, and had our number.
        let mut new = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&beside)?;
        new.write_all(bytes)?;
        new.sync_all()?;
        fs::rename(&beside, file)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}

/// The names that a file holds; lines that are damaged, and what is beyond the limits, are left
/// out.
fn read(file: &Path) -> Names {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(file) {
        // What was read before an error counts.
        let _ = file.take(MAX_BYTES).read_to_end(&mut bytes);
    }
    let mut names = Names::new();
    for line in String::from_utf8_lossy(&bytes).lines() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let [ip, name] = words[..] else { continue };
        let Ok(ip) = ip.parse::<IpAddr>() else {
            continue;
        };
        if names.len() >= MOST && !names.contains_key(name) {
            continue;
        }
        let ips = names.entry(name.to_owned()).or_default();
        if ips.len() < MAX_ADDRESSES && !ips.contains(&ip) {
            ips.push(ip);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn what_was_found_last_is_known_after_a_restart_and_others_names_stay() {
        let folder = tempfile::tempdir().unwrap();
        // Its folder is made.
        let file = folder.path().join("state/addresses");
        let first = Kept::load(Some(file.clone()));
        assert!(first.get("server.example").is_empty());
        let found = [ip(2), ip(1), "2001:db8::1".parse().unwrap()];
        first.learn("server.example", &found).unwrap().write();
        let other = Kept::load(Some(file.clone()));
        assert_eq!(other.get("server.example"), found);
        other.learn("other.example", &[ip(9)]).unwrap().write();
        let third = Kept::load(Some(file.clone()));
        assert_eq!(third.get("server.example"), found);
        assert_eq!(third.get("other.example"), [ip(9)]);
        third.learn("server.example", &[ip(3)]).unwrap().write();
        assert_eq!(
            Kept::load(Some(file.clone())).get("server.example"),
            [ip(3)]
        );
        let names = fs::read_dir(file.parent().unwrap()).unwrap().count();
        assert_eq!(names, 1, "nothing is left beside the file");
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_not_changed_is_not_written_and_what_changes_all_the_time_is_seldom() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept::load(Some(folder.path().join("addresses")));
        assert!(kept.learn("a.example", &[ip(1), ip(2)]).is_some());
        tokio::time::advance(2 * WRITE_AGAIN).await;
        assert!(kept.learn("a.example", &[ip(2), ip(1)]).is_none());
        assert!(kept.learn("a.example", &[ip(3)]).is_some());
        assert!(kept.learn("a.example", &[ip(4)]).is_none());
        assert_eq!(kept.get("a.example"), [ip(4)]);
        tokio::time::advance(WRITE_AGAIN).await;
        // What was held back is written with the next answer.
        assert!(kept.learn("a.example", &[ip(4)]).is_some());
        // Without a file, nothing is.
        let kept = Kept::load(None);
        assert!(kept.learn("a.example", &[ip(1)]).is_none());
        assert_eq!(kept.get("a.example"), [ip(1)]);
    }

    #[test]
    fn a_damaged_file_costs_only_what_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("addresses");
        let text = b"\xff\xfe\0 nonsense\n192.0.2.1\n192.0.2.1 a.example more\nno.ip a.example\n\
            192.0.2.7 a.example # good\n192.0.2.7 a.example\n192.0.2.8 a.exa";
        fs::write(&file, text).unwrap();
        let kept = Kept::load(Some(file.clone()));
        assert_eq!(kept.get("a.example"), [ip(7)]);
        // One that is far too long is read in part.
        let many: String = (0..100_000)
            .map(|n| format!("192.0.2.1 n{n}.example\n"))
            .collect();
        fs::write(&file, many).unwrap();
        assert_eq!(read(&file).len(), MOST);
        fs::write(&file, "192.0.2.1 a.example\n".repeat(999_999)).unwrap();
        assert_eq!(read(&file)["a.example"], [ip(1)]);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("no-folder");
        fs::write(&file, "").unwrap();
        let kept = Kept::load(Some(file.join("addresses")));
        kept.learn("a.example", &[ip(1)]).unwrap().write();
        assert_eq!(kept.get("a.example"), [ip(1)]);
        // Nor is a folder in its place.
        let kept = Kept::load(Some(folder.path().to_owned()));
        kept.learn("a.example", &[ip(1)]).unwrap().write();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
