//! Keeps the leases in their file. One task writes it, off the runtime's thread, when something has
//! changed; whatever changes meanwhile goes with the next write.
//!
//! A client is given a number that is not in the file only after it has been written there:
//! whenever the server ends after that, the client has the same addresses of the next one. Who
//! asked longest ago matters only once the pool is full, and is written later.

use super::leases::{Change, Fixed, Leases, LeasesError};
use super::pool::Pool;
use marline::identity::PublicKey;
use marline::support::lock;
use marline::support::seldom::Seldom;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

/// From the end of one write to the next.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a changed order may wait.
const ORDER: Duration = Duration::from_secs(60);
/// After a write that failed.
const AGAIN: Duration = Duration::from_secs(10);
/// How long a client waits for its number to be written; half of what it waits for an offer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Leases, and the file that keeps them.
#[derive(Debug)]
pub(super) struct LeaseFile {
    /// `None` when they are not kept.
    file: Option<PathBuf>,
    state: Mutex<State>,
    changed: Notify,
    /// The newest revision that a write has been tried of.
    tried: watch::Sender<u64>,
    /// The revision that the file holds; locked while it is written, so that no older one comes
    /// after a newer.
    stored: Mutex<u64>,
    failures: Seldom,
    recoveries: Seldom,
}

#[derive(Debug, Default)]
struct State {
    leases: Leases,
    /// Numbers that the operator gave.
    fixed: Fixed,
    /// Counts changes.
    revision: u64,
    /// The revisions by which clients got numbers that the file does not hold.
    unwritten: HashMap<PublicKey, u64>,
    /// There are numbers that no write has been tried of.
    numbers: bool,
    /// Since when the order has been another one than the file's.
    order: Option<Instant>,
    /// When the last write failed, until one does not.
    failed: Option<Instant>,
}

/// Leases as they were at some time, to be written.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    leases: Leases,
    revision: u64,
}

/// Writes what has not been written when it is dropped.
#[derive(Debug)]
pub(super) struct LastWrite(pub(super) Arc<LeaseFile>);

impl LeaseFile {
    /// With what `file` holds; without one, leases are as old as the server.
    ///
    /// # Errors
    /// The file cannot be read, or is not what this program writes.
    pub(super) fn load(file: Option<PathBuf>) -> Result<Self, LeasesError> {
        let leases = file.as_deref().map(Leases::load).transpose()?;
        Ok(LeaseFile {
            file,
            state: Mutex::new(State {
                leases: leases.unwrap_or_default(),
                ..State::default()
            }),
            changed: Notify::new(),
            tried: watch::Sender::default(),
            stored: Mutex::default(),
            failures: Seldom::default(),
            recoveries: Seldom::default(),
        })
    }

    /// The number of the client `key`, as [`Leases::take`] has it. It may be promised once
    /// [`is_kept`](Self::is_kept) says so.
    pub(super) fn take(
        &self,
        pool: &Pool,
        key: PublicKey,
        present: impl Fn(&PublicKey) -> bool,
    ) -> Option<u32> {
        let mut state = lock(&self.state);
        let State { leases, fixed, .. } = &mut *state;
        let (number, change) = leases.take(pool, key, present, fixed)?;
        if change == Change::Nothing || self.file.is_none() {
            return Some(number);
        }
        state.revision += 1;
        match change {
            Change::Number => {
                let revision = state.revision;
                state.unwritten.insert(key, revision);
                state.numbers = true;
            }
            Change::Order | Change::Nothing => {
                state.order.get_or_insert_with(Instant::now);
            }
        }
        self.changed.notify_one();
        Some(number)
    }

    /// Gives these clients these numbers, when they ask next.
    pub(super) fn fix(&self, fixed: Fixed) {
        lock(&self.state).fixed = fixed;
    }

    /// Waits until the number of the client `key` is in the file, or could not be written, which is
    /// in the log; for a few seconds at most.
    pub(super) async fn is_kept(&self, key: &PublicKey) {
        let Some(revision) = lock(&self.state).unwritten.get(key).copied() else {
            return;
        };
        let mut tried = self.tried.subscribe();
        let written = tried.wait_for(|tried| *tried >= revision);
        if timeout(PATIENCE, written).await.is_err() {
            self.failures.say(|left_out| {
                tracing::error!(
                    "{} takes longer than {} s to write; a client is given addresses that may be others after a \
                     restart{left_out}",
                    self.shown(),
                    PATIENCE.as_secs()
                );
            });
        }
    }

    /// Has every change written by `write`, which is never called twice at once, for as long as it
    /// is polled.
    pub(super) async fn keep<W: Future<Output = io::Result<()>>>(
        &self,
        write: impl Fn(Snapshot) -> W,
    ) {
        let mut rested = Instant::now();
        loop {
            let due = async {
                match self.due() {
                    Some(due) => sleep_until(due.max(rested)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = due => {}
                () = self.changed.notified() => continue,
            }
            let snapshot = self.snapshot();
            let revision = snapshot.revision;
            let result = write(snapshot).await;
            self.written(revision, result);
            rested = Instant::now() + PAUSE;
        }
    }

    /// Writes a snapshot to the file, in a thread that may wait.
    pub(super) async fn write(self: Arc<Self>, snapshot: Snapshot) -> io::Result<()> {
        let written = tokio::task::spawn_blocking(move || self.store(&snapshot));
        written
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    fn store(&self, snapshot: &Snapshot) -> io::Result<()> {
        let mut stored = lock(&self.stored);
        if let Some(file) = &self.file
            && *stored < snapshot.revision
        {
            snapshot.leases.store(file)?;
            *stored = snapshot.revision;
        }
        Ok(())
    }

    /// When the next write is.
    fn due(&self) -> Option<Instant> {
        let state = lock(&self.state);
        let order = state.order.map(|since| since + ORDER);
        let again = state.failed.map(|failed| failed + AGAIN);
        match state.numbers {
            true => Some(Instant::now()),
            false => again.or(order),
        }
    }

    fn snapshot(&self) -> Snapshot {
        let mut state = lock(&self.state);
        (state.numbers, state.order) = (false, None);
        Snapshot {
            leases: state.leases.clone(),
            revision: state.revision,
        }
    }

    fn written(&self, revision: u64, result: io::Result<()>) {
        let mut state = lock(&self.state);
        let failed_before = match &result {
            Ok(()) => {
                state.unwritten.retain(|_, unwritten| *unwritten > revision);
                state.failed.take()
            }
            Err(_) => state.failed.replace(Instant::now()),
        };
        drop(state);
        self.tried.send_replace(revision);
        match result {
            Err(error) if failed_before.is_none() => self.failures.say(|left_out| {
                tracing::error!(
                    "cannot keep the tunnel's leases in {}: {error}; clients may get other addresses after a \
                     restart{left_out}",
                    self.shown()
                );
            }),
            Ok(()) if failed_before.is_some() => self.recoveries.say(|left_out| {
                tracing::info!("the tunnel's leases are kept in {} again{left_out}", self.shown());
            }),
            _ => {}
        }
    }

    fn shown(&self) -> std::path::Display<'_> {
        let file = self.file.as_deref();
        file.unwrap_or(std::path::Path::new("no file")).display()
    }
}

impl Drop for LastWrite {
    fn drop(&mut self) {
        let snapshot = self.0.snapshot();
        let (revision, result) = (snapshot.revision, self.0.store(&snapshot));
        self.0.written(revision, result);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use tokio::task::JoinHandle;
    use tokio::time::{advance, sleep};

    fn key(number: u8) -> PublicKey {
        PublicKey::from_bytes([number; 32])
    }

    fn pool() -> Pool {
        "10.77.0.0/24".parse().unwrap()
    }

    /// A disk that takes a tenth of a second for a write, and may be full.
    #[derive(Debug, Default)]
    struct Disk {
        full: AtomicBool,
        /// Writes that are under way, and those that were begun.
        busy: AtomicUsize,
        begun: AtomicUsize,
        holds: Mutex<Leases>,
    }

    impl Disk {
        async fn write(self: Arc<Self>, snapshot: Snapshot) -> io::Result<()> {
            assert_eq!(self.busy.fetch_add(1, Ordering::SeqCst), 0, "two at once");
            self.begun.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_millis(100)).await;
            self.busy.fetch_sub(1, Ordering::SeqCst);
            if self.full.load(Ordering::SeqCst) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            *lock(&self.holds) = snapshot.leases;
            Ok(())
        }

        fn begun(&self) -> usize {
            self.begun.load(Ordering::SeqCst)
        }

        fn number(&self, key: PublicKey) -> Option<(u32, Change)> {
            let mut holds = lock(&self.holds).clone();
            holds.take(&pool(), key, |_| true, &Fixed::new())
        }
    }

    fn begin() -> (Arc<LeaseFile>, Arc<Disk>, JoinHandle<()>) {
        let file = LeaseFile::load(Some("/nonexistent/leases.toml".into())).unwrap();
        let (file, disk) = (Arc::new(file), Arc::<Disk>::default());
        let (its_file, its_disk) = (Arc::clone(&file), Arc::clone(&disk));
        let task = tokio::spawn(async move {
            its_file
                .keep(|snapshot| Arc::clone(&its_disk).write(snapshot))
                .await;
        });
        (file, disk, task)
    }

    fn take(file: &LeaseFile, number: u8) -> u32 {
        file.take(&pool(), key(number), |_| false).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_number_is_in_the_file_before_it_is_promised() {
        let (file, disk, _task) = begin();
        for number in 1..=3 {
            let given = take(&file, number);
            file.is_kept(&key(number)).await;
            // As after a crash at this moment.
            assert_eq!(disk.number(key(number)), Some((given, Change::Nothing)));
        }
        assert_eq!(disk.begun(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_in_a_loop_causes_no_writes() {
        let (file, disk, _task) = begin();
        for number in [1, 2] {
            take(&file, number);
            file.is_kept(&key(number)).await;
        }
        let begun = disk.begun();
        // Each asks after the other: only the order changes.
        let before = Instant::now();
        for _ in 0..10_000 {
            for number in [1, 2] {
                take(&file, number);
                file.is_kept(&key(number)).await;
            }
        }
        assert_eq!(before.elapsed(), Duration::ZERO, "nobody waits");
        sleep(ORDER / 2).await;
        assert_eq!(disk.begun(), begun);
        sleep(ORDER).await;
        assert_eq!(disk.begun(), begun + 1, "once a minute at most");
    }

    #[tokio::test(start_paused = true)]
    async fn many_new_clients_share_a_write() {
        let (file, disk, _task) = begin();
        for round in 0..10 {
            for number in 0..20 {
                take(&file, 20 * round + number);
            }
            sleep(Duration::from_millis(50)).await;
        }
        sleep(2 * PAUSE).await;
        assert_eq!(disk.begun(), 2, "half a second's");
        assert_eq!(disk.number(key(199)), Some((201, Change::Nothing)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_disk_stops_nobody_and_is_tried_again_now_and_then() {
        let (file, disk, _task) = begin();
        disk.full.store(true, Ordering::SeqCst);
        let before = Instant::now();
        take(&file, 1);
        file.is_kept(&key(1)).await;
        assert!(before.elapsed() < PAUSE, "the failure is known at once");
        assert!(lock(&file.state).failed.is_some());
        sleep(Duration::from_secs(60)).await;
        let begun = disk.begun();
        assert!((5..=7).contains(&begun), "{begun} writes in a minute");
        disk.full.store(false, Ordering::SeqCst);
        sleep(2 * AGAIN).await;
        assert!(lock(&file.state).failed.is_none());
        assert_eq!(disk.number(key(1)), Some((2, Change::Nothing)));
        sleep(10 * ORDER).await;
        assert!(disk.begun() <= begun + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_disk_that_hangs_is_not_waited_for_for_ever() {
        let file = LeaseFile::load(Some("/nonexistent/leases.toml".into())).unwrap();
        take(&file, 1);
        let before = Instant::now();
        file.is_kept(&key(1)).await;
        assert!(before.elapsed() <= PATIENCE + Duration::from_millis(1));
    }

    #[tokio::test]
    async fn what_is_not_written_is_in_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("leases.toml");
        let file = Arc::new(LeaseFile::load(Some(path.clone())).unwrap());
        let last = LastWrite(Arc::clone(&file));
        let number = take(&file, 1);
        let older = file.snapshot();
        take(&file, 2);
        take(&file, 1);
        drop(last);
        let holds = |path: &Path| Leases::load(path).unwrap();
        let mut stored = holds(&path);
        assert_eq!(
            stored.take(&pool(), key(1), |_| true, &Fixed::new()),
            Some((number, Change::Nothing))
        );
        // A write that was under way and ends later than the last.
        file.clone().write(older).await.unwrap();
        assert_eq!(holds(&path), stored);
        // Without changes the file is left alone.
        std::fs::remove_file(&path).unwrap();
        drop(LastWrite(file));
        assert!(!path.exists());
    }

    #[tokio::test(start_paused = true)]
    async fn leases_that_are_not_kept_are_given_at_once() {
        let file = LeaseFile::load(None).unwrap();
        assert_eq!(take(&file, 1), 2);
        file.is_kept(&key(1)).await;
        advance(ORDER).await;
        assert_eq!(file.due(), None);
    }
}
