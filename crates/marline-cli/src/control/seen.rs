//! When a server's clients were seen last, in a file that outlives it.
//!
//! ```toml
//! [seen]
//! "marline-pub:..." = 1790000000
//! ```
//! Seconds since 1970, universal time. Several servers may keep one file: of two times the later
//! holds. It is written rarely, so a crash costs minutes of it.

use super::status::ClientStatus;
use marline::support::lock;
use marline_apps::whole::write_whole;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::sleep;

/// How often it is looked who is there.
const LOOK: Duration = Duration::from_secs(20);
/// How often it is written for those who were known before: nobody asks for the minute of a client
/// that was there all day.
const WRITE: Duration = Duration::from_secs(10 * 60);
/// Clients that are kept: those that were there last. As many as a list has (1 MiB) by far.
const MOST: usize = 16_384;

/// Times of all clients, and the file that keeps them, if there is one.
#[derive(Debug)]
pub struct Seen {
    file: Option<PathBuf>,
    times: Mutex<Times>,
}

#[derive(Debug, Default)]
struct Times {
    seen: BTreeMap<String, u64>,
    /// There is somebody whom the file does not have at all.
    is_new: bool,
    changed: bool,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    #[serde(default)]
    seen: BTreeMap<String, u64>,
}

fn read(file: &Path) -> io::Result<BTreeMap<String, u64>> {
    let text = match std::fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        text => text?,
    };
    let stored: Stored = toml::from_str(&text)
        .map_err(|error| io::Error::other(format!("it is damaged: {}", error.message())))?;
    Ok(stored.seen)
}

impl Seen {
    /// What `file` holds. A damaged one counts as empty; it is reported and replaced.
    pub fn load(file: Option<PathBuf>) -> Self {
        let seen = file.as_deref().map_or_else(|| Ok(BTreeMap::new()), read);
        let seen = seen.unwrap_or_else(|error| {
            let file = file.as_deref().unwrap_or(Path::new(""));
            tracing::warn!(
                "when clients were seen last is not known from {}: {error}; it is written again",
                file.display()
            );
            BTreeMap::new()
        });
        let times = Times {
            seen,
            ..Times::default()
        };
        Seen {
            file,
            times: Mutex::new(times),
        }
    }

    /// Takes note of when these were seen.
    pub fn note(&self, clients: &[ClientStatus]) {
        let mut times = lock(&self.times);
        for client in clients {
            let Some(at) = client.last_seen else {
                continue;
            };
            match times.seen.get_mut(&client.key) {
                Some(known) if *known >= at => {}
                Some(known) => {
                    *known = at;
                    times.changed = true;
                }
                None => {
                    times.seen.insert(client.key.clone(), at);
                    (times.is_new, times.changed) = (true, true);
                }
            }
        }
    }

    /// These, with what is known of their times.
    pub fn fill(&self, mut clients: Vec<ClientStatus>) -> Vec<ClientStatus> {
        let times = lock(&self.times);
        for client in &mut clients {
            client.last_seen = client.last_seen.max(times.seen.get(&client.key).copied());
        }
        clients
    }

    /// Keeps the file as `look` says who is there, for as long as it is polled.
    pub async fn keep(self: Arc<Self>, look: impl AsyncFn() -> Vec<ClientStatus>) {
        let mut waited = Duration::ZERO;
        loop {
            sleep(LOOK).await;
            self.note(&look().await);
            waited += LOOK;
            if waited >= WRITE || lock(&self.times).is_new {
                waited = Duration::ZERO;
                let seen = Arc::clone(&self);
                let _ = tokio::task::spawn_blocking(move || seen.save()).await;
            }
        }
    }

    /// Writes what the file does not hold.
    pub fn save(&self) {
        let Some(file) = &self.file else {
            return;
        };
        let mut times = lock(&self.times);
        if !std::mem::take(&mut times.changed) {
            return;
        }
        times.is_new = false;
        // Of other servers.
        for (key, at) in read(file).unwrap_or_default() {
            let known = times.seen.entry(key).or_default();
            *known = at.max(*known);
        }
        if times.seen.len() > MOST {
            let mut all: Vec<u64> = times.seen.values().copied().collect();
            all.sort_unstable_by(|a, b| b.cmp(a));
            let oldest = all[MOST - 1];
            times.seen.retain(|_, at| *at >= oldest);
        }
        let stored = Stored {
            seen: times.seen.clone(),
        };
        drop(times);
        let text = toml::to_string(&stored).map_err(io::Error::other);
        let written = text.and_then(|text| write_whole(file, text.as_bytes()));
        if let Err(error) = written {
            lock(&self.times).changed = true;
            tracing::warn!(
                "when clients were seen last cannot be kept in {}: {error}",
                file.display()
            );
        }
    }
}

impl Drop for Seen {
    fn drop(&mut self) {
        self.save();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(key: &str, last_seen: Option<u64>) -> ClientStatus {
        ClientStatus {
            key: key.to_owned(),
            name: String::new(),
            last_seen,
        }
    }

    fn known(seen: &Seen, key: &str) -> Option<u64> {
        seen.fill(vec![client(key, None)])[0].last_seen
    }

    #[test]
    fn times_outlive_a_restart_and_the_later_of_two_holds() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/seen.toml");
        let seen = Seen::load(Some(file.clone()));
        seen.note(&[client("a", Some(7)), client("b", None)]);
        seen.note(&[client("a", Some(5))]);
        let other = Seen::load(Some(file.clone()));
        other.note(&[client("a", Some(6)), client("c", Some(9))]);
        drop((seen, other));
        let again = Seen::load(Some(file.clone()));
        assert_eq!(known(&again, "a"), Some(7));
        assert_eq!((known(&again, "b"), known(&again, "c")), (None, Some(9)));
        // Nothing new, nothing written.
        std::fs::remove_file(&file).unwrap();
        again.note(&[client("a", Some(7))]);
        drop(again);
        assert!(!file.exists());
    }

    #[test]
    fn a_damaged_file_is_written_again_and_no_more_are_kept_than_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("seen.toml");
        std::fs::write(&file, "nonsense").unwrap();
        let seen = Seen::load(Some(file.clone()));
        let many = 0..MOST as u64 + 10;
        let many: Vec<_> = many.map(|at| client(&format!("k{at}"), Some(at))).collect();
        seen.note(&many);
        drop(seen);
        let again = Seen::load(Some(file));
        assert_eq!(known(&again, "k9"), None);
        assert_eq!(known(&again, "k10"), Some(10));
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_new_is_written_soon_and_who_stays_rarely() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("seen.toml");
        let seen = Arc::new(Seen::load(Some(file.clone())));
        let at = Arc::new(std::sync::atomic::AtomicU64::new(1));
        let now = Arc::clone(&at);
        let keeping = tokio::spawn(Arc::clone(&seen).keep(async move || {
            let at = now.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            vec![client("a", Some(at))]
        }));
        let stored = || read(&file).unwrap().get("a").copied();
        // A write is on a thread of its own, which virtual time does not wait for.
        let until = async |wanted: u64| {
            while stored() != Some(wanted) {
                std::thread::sleep(Duration::from_millis(1));
                tokio::task::yield_now().await;
            }
        };
        sleep(LOOK + LOOK / 2).await;
        until(1).await;
        sleep(WRITE - LOOK).await;
        assert_eq!(stored(), Some(1));
        sleep(2 * LOOK).await;
        until(WRITE.as_secs() / LOOK.as_secs() + 1).await;
        keeping.abort();
    }
}
