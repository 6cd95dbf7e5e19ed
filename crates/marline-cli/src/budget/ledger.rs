//! What each path has carried in a month.
//!
//! ```toml
//! month = "2026-11"
//! [bytes]
//! wwan0 = 1234567
//! ```
//! With `clock = "2026-10"` the clock was behind the month that is counted when it was looked at
//! last. A clock that is set back must not make anybody forget what was used; but one that was
//! ahead once, and is right again, must not make a month last for years. So a month behind the one
//! that is counted begins again, too, once the clock has come to it from an earlier one.
//!
//! Several clients may keep one file, with the same paths or others: each adds what its own have
//! carried since it saved last, and learns of the others' when it has something to add. A file with
//! `.lock` after its name, which stays, keeps them from writing at once.

use super::Month;
use marline_apps::whole::write_whole;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Bytes by path, of one month, and the file that keeps them.
#[derive(Debug)]
pub struct Ledger {
    file: Option<PathBuf>,
    month: Month,
    /// The month that the clock showed last.
    clock: Month,
    used: BTreeMap<String, u64>,
    /// Of these, what is not in the file yet.
    fresh: BTreeMap<String, u64>,
    /// What the carrier of a path had counted when it was last asked.
    seen: BTreeMap<String, u64>,
    /// There is something that the file does not hold.
    changed: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    month: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clock: Option<String>,
    #[serde(default)]
    bytes: BTreeMap<String, u64>,
}

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the usage file {}: {problem}", file.display())]
pub struct LedgerError {
    file: PathBuf,
    problem: String,
}

impl Ledger {
    /// What `file` holds, if it is of the month `now`; nothing when there is no such file. With
    /// `None`, nothing is kept.
    ///
    /// # Errors
    /// The file cannot be read, or is not what this program writes.
    pub fn load(file: Option<PathBuf>, now: Month) -> Result<Self, LedgerError> {
        let mut ledger = Ledger {
            file: None,
            month: now,
            clock: now,
            used: BTreeMap::new(),
            fresh: BTreeMap::new(),
            seen: BTreeMap::new(),
            changed: false,
        };
        if let Some(path) = &file
            && let Some(text) = read(path)?
        {
            ledger.take(path, &text)?;
            ledger.turn(now);
        }
        ledger.file = file;
        Ok(ledger)
    }

    /// Takes what `file` holds.
    fn take(&mut self, file: &Path, text: &str) -> Result<(), LedgerError> {
        let damaged = |problem: &str| error(file, format!("is damaged: {problem}"));
        let stored: Stored = toml::from_str(text).map_err(|problem| damaged(problem.message()))?;
        let month = |text: String| -> Result<Month, LedgerError> {
            text.parse()
                .map_err(|problem: super::month::NoMonth| damaged(&problem.to_string()))
        };
        let clock = stored.clock.map(month).transpose()?;
        self.month = month(stored.month)?;
        self.clock = clock.unwrap_or(self.month);
        self.used = stored.bytes;
        Ok(())
    }

    /// The month that is counted.
    pub fn month(&self) -> Month {
        self.month
    }

    /// What the path has carried this month.
    pub fn used(&self, path: &str) -> u64 {
        self.used.get(path).copied().unwrap_or(0)
    }

    /// Begins a new month with nothing used, if `now`, which the clock shows, is one.
    pub fn turn(&mut self, now: Month) {
        let before = std::mem::replace(&mut self.clock, now);
        self.changed |= before != now;
        if now > self.month || (before < now && now < self.month) {
            self.month = now;
            self.used.clear();
            self.fresh.clear();
            self.changed = true;
        }
    }

    /// Takes down for `account` that the present carrier of `path` has counted `total` bytes since
    /// it came up. Paths over interfaces that fit the same words have one account.
    pub fn count(&mut self, account: &str, path: &str, total: u64) {
        let seen = self.seen.entry(path.to_owned()).or_default();
        // A smaller count is that of another carrier.
        let more = total.checked_sub(*seen).unwrap_or(total);
        *seen = total;
        if more > 0 {
            for sum in [&mut self.used, &mut self.fresh] {
                let sum = sum.entry(account.to_owned()).or_default();
                *sum = sum.saturating_add(more);
            }
            self.changed = true;
        }
    }

    /// Adds what others have written meanwhile, and writes the file, if there is one and something
    /// to write. Where another client is writing it just now, nothing happens; then the answer is
    /// false.
    ///
    /// # Errors
    /// It cannot be read or written. What this client has counted is kept for the next time.
    pub fn save(&mut self, now: Month) -> Result<bool, LedgerError> {
        self.turn(now);
        let Some(file) = self.file.clone().filter(|_| self.changed) else {
            return Ok(true);
        };
        let failed = |problem: io::Error| error(&file, format!("cannot be written: {problem}"));
        let Some(_held) = hold(&file).map_err(failed)? else {
            return Ok(false);
        };
        // A file that is gone has nothing to add.
        if file.exists() {
            let others = Ledger::load(Some(file.clone()), now)?;
            // Should they differ about the month, one of them has seen a clock that was wrong: all
            // go by the file.
            (self.month, self.clock, self.used) = (others.month, others.clock, others.used);
            for (path, bytes) in &self.fresh {
                let sum = self.used.entry(path.clone()).or_default();
                *sum = sum.saturating_add(*bytes);
            }
        }
        let stored = Stored {
            month: self.month.to_string(),
            clock: (self.clock != self.month).then(|| self.clock.to_string()),
            bytes: self.used.clone(),
        };
        let text = toml::to_string(&stored).map_err(|problem| error(&file, problem.to_string()))?;
        write_whole(&file, text.as_bytes()).map_err(failed)?;
        self.fresh.clear();
        self.changed = false;
        Ok(true)
    }
}

fn error(file: &Path, problem: String) -> LedgerError {
    LedgerError {
        file: file.to_owned(),
        problem,
    }
}

fn read(file: &Path) -> Result<Option<String>, LedgerError> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(problem) => Err(error(file, format!("cannot be read: {problem}"))),
    }
}

/// Nobody else writes `file` until what is returned is dropped; `None` if somebody does. What is
/// locked is a file beside it: `file` itself is replaced whenever it is written.
fn hold(file: &Path) -> io::Result<Option<File>> {
    let mut name = file.as_os_str().to_owned();
    name.push(".lock");
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = File::options();
    let held = options
        .create(true)
        .truncate(false)
        .write(true)
        .open(name)?;
    match held.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        // Where a file system has no locks, clients must not share the file.
        Err(TryLockError::Error(_)) | Ok(()) => Ok(Some(held)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOVEMBER: &str = "2026-11";
    const DECEMBER: &str = "2026-12";

    fn month(text: &str) -> Month {
        text.parse().unwrap()
    }

    #[test]
    fn carriers_come_and_go_and_the_sum_stays() {
        let mut ledger = Ledger::load(None, month(NOVEMBER)).unwrap();
        for (total, used) in [
            (100, 100),
            (250, 250),
            (0, 250),
            (30, 280),
            (20, 300),
            (20, 300),
        ] {
            ledger.count("wwan0", "wwan0", total);
            assert_eq!(ledger.used("wwan0"), used, "{total}");
        }
        ledger.count("eth0", "eth0", 7);
        assert_eq!((ledger.used("eth0"), ledger.used("wlan0")), (7, 0));
    }

    #[test]
    fn what_was_used_outlives_the_program_but_not_the_month() {
        let folder = tempfile::tempdir().unwrap();
        let file = Some(folder.path().join("state/usage.toml"));
        let mut ledger = Ledger::load(file.clone(), month(NOVEMBER)).unwrap();
        ledger.count("wwan0", "wwan0", 1000);
        ledger.save(month(NOVEMBER)).unwrap();
        let mut ledger = Ledger::load(file.clone(), month(NOVEMBER)).unwrap();
        assert_eq!(ledger.used("wwan0"), 1000);
        ledger.count("wwan0", "wwan0", 10);
        assert_eq!(ledger.used("wwan0"), 1010);
        ledger.save(month(NOVEMBER)).unwrap();

        // While it runs, and while it does not.
        ledger.turn(month(DECEMBER));
        assert_eq!((ledger.used("wwan0"), ledger.month()), (0, month(DECEMBER)));
        ledger.count("wwan0", "wwan0", 15);
        assert_eq!(ledger.used("wwan0"), 5);
        let asleep = Ledger::load(file.clone(), month(DECEMBER)).unwrap();
        assert_eq!(asleep.used("wwan0"), 0);

        // A clock that is set back forgets nothing.
        ledger.save(month(DECEMBER)).unwrap();
        let mut back = Ledger::load(file, month(NOVEMBER)).unwrap();
        back.turn(month(NOVEMBER));
        assert_eq!((back.used("wwan0"), back.month()), (5, month(DECEMBER)));
    }

    #[test]
    fn a_clock_that_was_ahead_once_makes_no_month_last_for_years() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("usage.toml");
        let file = Some(path.clone());
        let mut ledger = Ledger::load(file.clone(), month("2099-05")).unwrap();
        ledger.count("wwan0", "wwan0", 10);
        ledger.turn(month(NOVEMBER));
        ledger.count("wwan0", "wwan0", 15);
        assert_eq!(ledger.used("wwan0"), 15);
        ledger.save(month(NOVEMBER)).unwrap();
        // Also across restarts; the clock of a host without a battery begins in 1970.
        let mut ledger = Ledger::load(file.clone(), month(NOVEMBER)).unwrap();
        assert_eq!(ledger.used("wwan0"), 15);
        ledger.save(month(NOVEMBER)).unwrap();
        let mut ledger = Ledger::load(file, month(DECEMBER)).unwrap();
        assert_eq!((ledger.used("wwan0"), ledger.month()), (0, month(DECEMBER)));
        ledger.count("wwan0", "wwan0", 7);
        for shown in ["1970-01", DECEMBER] {
            ledger.turn(month(shown));
            assert_eq!((ledger.used("wwan0"), ledger.month()), (7, month(DECEMBER)));
        }
        ledger.save(month(DECEMBER)).unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(!text.contains("clock"), "{text}");
    }

    #[test]
    fn clients_that_keep_one_file_add_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = Some(folder.path().join("usage.toml"));
        let mut clients = [(); 2].map(|()| Ledger::load(file.clone(), month(NOVEMBER)).unwrap());
        // Each saves 1, 2, 3 ... bytes more of a path that both have, and of its own.
        for total in 1..=10 {
            for (client, own) in clients.iter_mut().zip(["eth0", "wlan0"]) {
                client.count("wwan0", "wwan0", total);
                client.count(own, own, 2 * total);
                assert!(client.save(month(NOVEMBER)).unwrap());
            }
        }
        let used = |now: &str| {
            let kept = Ledger::load(file.clone(), month(now)).unwrap();
            ["wwan0", "eth0", "wlan0"].map(|path| kept.used(path))
        };
        assert_eq!(used(NOVEMBER), [20, 20, 20]);
        // Each knows of the other's, as of when it saved last.
        assert_eq!(
            [&clients[0], &clients[1]].map(|c| c.used("wwan0")),
            [19, 20]
        );
        // One enters the new month first. The other has not looked at the clock since, and has
        // something of the old month to say, of which nothing comes into the new one.
        clients[1].count("wwan0", "wwan0", 14);
        clients[0].turn(month(DECEMBER));
        clients[0].count("wwan0", "wwan0", 13);
        clients[0].save(month(DECEMBER)).unwrap();
        clients[1].save(month(DECEMBER)).unwrap();
        clients[1].count("wwan0", "wwan0", 15);
        clients[1].save(month(DECEMBER)).unwrap();
        assert_eq!(used(DECEMBER), [3 + 1, 0, 0]);
        // One who saw a wrong clock goes by the file.
        clients[0].turn(month("2099-05"));
        clients[0].turn(month(DECEMBER));
        clients[0].count("wwan0", "wwan0", 20);
        clients[0].save(month(DECEMBER)).unwrap();
        assert_eq!(used(DECEMBER), [4 + 7, 0, 0]);
        assert_eq!(clients[0].month(), month(DECEMBER));
        // A file that somebody removed is written whole.
        std::fs::remove_file(file.as_ref().unwrap()).unwrap();
        clients[0].count("wwan0", "wwan0", 21);
        clients[0].save(month(DECEMBER)).unwrap();
        assert_eq!(used(DECEMBER), [4 + 8, 0, 0]);
    }

    #[test]
    fn nobody_waits_for_a_client_that_is_writing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("usage.toml");
        let mut client = Ledger::load(Some(file.clone()), month(NOVEMBER)).unwrap();
        client.count("wwan0", "wwan0", 5);
        let held = hold(&file).unwrap();
        assert!(held.is_some() && hold(&file).unwrap().is_none());
        assert!(!client.save(month(NOVEMBER)).unwrap());
        assert!(!file.exists());
        drop(held);
        assert!(client.save(month(NOVEMBER)).unwrap());
        let kept = Ledger::load(Some(file), month(NOVEMBER)).unwrap();
        assert_eq!(kept.used("wwan0"), 5);
    }

    #[test]
    fn a_damaged_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("usage.toml");
        for text in ["x", "month = \"2026\"", "month = \"2026-11\"\nother = 1\n"] {
            std::fs::write(&file, text).unwrap();
            let error = Ledger::load(Some(file.clone()), month(NOVEMBER)).unwrap_err();
            let error = error.to_string();
            assert!(error.contains("usage.toml: is damaged: "), "{error}");
        }
    }
}
