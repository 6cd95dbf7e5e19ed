//! A session whose paths have budgets.

use super::{Ledger, Month};
use crate::control::status::{BudgetStatus, PathStatus};
use crate::control::{Manage, Problem, Status};
use marline_proto::path::PathState;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::{MissedTickBehavior, interval};

/// How often the paths' counters are read; a budget may be exceeded by what a path carries in that
/// time.
const LOOK: Duration = Duration::from_millis(500);
/// Readings between two writes of the file: a crash forgets at most what was carried in that time.
const SAVE: u32 = 20;
/// Why a path stands by that has used its budget up.
const OVER: &str = "over its budget of the month";
/// Bytes of IPv6, UDP and QUIC headers around a datagram of a path, which the operator who bills
/// for them counts too.
const HEADERS: u64 = 76;

/// A session, and what its paths may carry in a month.
#[derive(Debug)]
pub struct Metered<M> {
    session: M,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    ledger: Ledger,
    limits: BTreeMap<String, Limit>,
}

#[derive(Debug, Clone, Copy)]
struct Limit {
    bytes: u64,
    /// The path stands by, whatever it has carried.
    standby: bool,
    /// It stands by because of what it has carried.
    over: bool,
}

/// Whose budget a path spends: further interfaces that fit `wwan*` have paths `wwan*#2` and so on.
pub(crate) fn account(path: &str) -> &str {
    path.split('#').next().unwrap_or(path)
}

/// What these datagrams are with their headers.
pub(crate) const fn carried(packets: u64, bytes: u64) -> u64 {
    bytes + packets * HEADERS
}

impl State {
    fn limit(&mut self, path: &marline::Path) {
        if let Some(bytes) = path.budget {
            let limit = Limit {
                bytes,
                standby: path.standby,
                over: false,
            };
            self.limits.insert(path.name.clone(), limit);
        }
    }

    /// Takes down what the paths have carried by `now`; returns those that are to stand by, or to
    /// come back, with why.
    fn look(&mut self, now: Month, paths: &[PathStatus]) -> Vec<(String, bool)> {
        self.ledger.turn(now);
        for path in paths {
            // Without budgets nothing needs to be kept.
            let account = account(&path.name);
            if self.limits.contains_key(account) {
                let packets = path.sent_packets + path.received_packets;
                let total = carried(packets, path.sent_bytes + path.received_bytes);
                self.ledger.count(account, &path.name, total);
            }
        }
        let mut changes = Vec::new();
        for (name, limit) in &mut self.limits {
            let over = self.ledger.used(name) >= limit.bytes;
            if over != limit.over {
                limit.over = over;
                if !limit.standby {
                    changes.push((name.clone(), over));
                }
            }
        }
        changes
    }
}

impl<M: Manage> Metered<M> {
    /// A session with these paths; `ledger` knows what they have carried before.
    pub fn new(session: M, paths: &[marline::Path], ledger: Ledger) -> Self {
        let mut state = State {
            ledger,
            limits: BTreeMap::new(),
        };
        paths.iter().for_each(|path| state.limit(path));
        Metered {
            session,
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the path that is called `name`, which may be its number.
    async fn name_of(&self, name: &str) -> String {
        let sessions = self.session.status().await.sessions;
        let paths = || sessions.iter().flat_map(|session| &session.paths);
        let number = name.parse().ok();
        if paths().any(|path| path.name == name) {
            return name.to_owned();
        }
        let found = paths().find(|path| Some(path.id) == number);
        found.map_or(name, |path| &path.name).to_owned()
    }

    /// Watches the paths. Never completes; must be run for budgets to hold.
    pub async fn watch(&self) {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut since_save = 0;
        loop {
            looks.tick().await;
            if self.state().limits.is_empty() {
                continue;
            }
            self.look(Month::now()).await;
            since_save += 1;
            if since_save >= SAVE {
                since_save = 0;
                self.save(Month::now(), Duration::ZERO);
            }
        }
    }

    /// Looks at the paths once.
    async fn look(&self, now: Month) {
        let sessions = self.session.status().await.sessions;
        let paths: Vec<PathStatus> = sessions.into_iter().flat_map(|s| s.paths).collect();
        let changes = self.state().look(now, &paths);
        for (name, over) in changes {
            match over {
                true => tracing::warn!("path {name} has used its budget of {now} up: it stands by"),
                false => tracing::info!("path {name} is within its budget of {now} again"),
            }
            // Gone meanwhile, it needs no change.
            let _ = self.session.set_standby(&name, over).await;
        }
    }

    /// Keeps what was counted. Waits for at most this time, blocking, while another client writes
    /// the file.
    pub fn save(&self, now: Month, patience: Duration) {
        let began = Instant::now();
        loop {
            let saved = self.state().ledger.save(now);
            match saved {
                Ok(true) => return,
                Ok(false) if began.elapsed() < patience => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Ok(false) => return,
                Err(error) => {
                    tracing::error!("{error}; what paths carried is forgotten at the end");
                    return;
                }
            }
        }
    }
}

impl<M: Manage> Manage for Metered<M> {
    async fn status(&self) -> Status {
        let mut status = self.session.status().await;
        let state = self.state();
        for path in status.sessions.iter_mut().flat_map(|s| &mut s.paths) {
            let account = account(&path.name);
            let limit = state.limits.get(account);
            if path.state == PathState::Standby
                && limit.is_some_and(|limit| limit.over && !limit.standby)
            {
                path.reason = OVER.to_owned();
            }
            path.budget = limit.map(|limit| BudgetStatus {
                month: state.ledger.month().to_string(),
                limit_bytes: limit.bytes,
                used_bytes: state.ledger.used(account),
            });
        }
        status
    }

    async fn add_path(&self, path: marline::Path) -> Result<(), Problem> {
        self.session.add_path(path.clone()).await?;
        self.state().limit(&path);
        Ok(())
    }

    async fn remove_path(&self, name: &str) -> Result<(), Problem> {
        let full = self.name_of(name).await;
        self.session.remove_path(name).await?;
        self.state().limits.remove(&full);
        Ok(())
    }

    /// A path over its budget that the user calls back is used until the end of the month.
    async fn set_standby(&self, name: &str, standby: bool) -> Result<(), Problem> {
        let full = self.name_of(name).await;
        self.session.set_standby(name, standby).await?;
        if let Some(limit) = self.state().limits.get_mut(&full) {
            limit.standby = standby;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::status::tests::example;
    use std::path::Path;

    /// A session with one path, which notes what is asked of it.
    struct Session {
        status: Mutex<Status>,
        asked: Mutex<Vec<(String, bool)>>,
    }

    impl Session {
        fn new() -> Self {
            let mut status = example();
            let paths = &mut status.sessions[0].paths;
            paths.truncate(1);
            paths[0].name = "wwan0".to_owned();
            Session {
                status: Mutex::new(status),
                asked: Mutex::default(),
            }
        }

        fn carried(&self, bytes: u64) {
            let path = &mut self.status.lock().unwrap().sessions[0].paths[0];
            (path.sent_packets, path.received_packets) = (0, 1);
            (path.sent_bytes, path.received_bytes) = (0, bytes - HEADERS);
        }

        fn asked(&self) -> Vec<(String, bool)> {
            std::mem::take(&mut self.asked.lock().unwrap())
        }
    }

    impl Manage for Session {
        async fn status(&self) -> Status {
            self.status.lock().unwrap().clone()
        }
        async fn add_path(&self, _: marline::Path) -> Result<(), Problem> {
            Ok(())
        }
        async fn remove_path(&self, _: &str) -> Result<(), Problem> {
            Ok(())
        }
        async fn set_standby(&self, name: &str, standby: bool) -> Result<(), Problem> {
            self.asked.lock().unwrap().push((name.to_owned(), standby));
            Ok(())
        }
    }

    fn month(text: &str) -> Month {
        text.parse().unwrap()
    }

    fn metered(file: &Path, path: &str) -> Metered<Session> {
        let ledger = Ledger::load(Some(file.to_owned()), month("2026-11")).unwrap();
        Metered::new(Session::new(), &[path.parse().unwrap()], ledger)
    }

    #[tokio::test]
    async fn a_path_over_its_budget_stands_by_until_the_next_month() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("usage.toml");
        let metered = metered(&file, "wwan0,budget=1MB");
        let rests = || [("wwan0".to_owned(), true)];
        metered.session.carried(999_999);
        metered.look(month("2026-11")).await;
        assert_eq!(metered.session.asked(), []);
        metered.session.carried(1_000_000);
        metered.look(month("2026-11")).await;
        assert_eq!(metered.session.asked(), rests());
        metered.session.carried(1_100_000);
        metered.look(month("2026-11")).await;
        assert_eq!(metered.session.asked(), []);
        let shown = metered.status().await.sessions[0].paths[0].budget.clone();
        let shown = shown.unwrap();
        assert_eq!(
            (shown.limit_bytes, shown.used_bytes),
            (1_000_000, 1_100_000)
        );
        assert_eq!(shown.month, "2026-11");
        metered.look(month("2026-12")).await;
        assert_eq!(metered.session.asked(), [("wwan0".to_owned(), false)]);

        // After a restart in the same month it does not begin again.
        metered.session.carried(1_100_000 + 999_000);
        metered.look(month("2026-12")).await;
        metered.save(month("2026-12"), Duration::ZERO);
        let ledger = Ledger::load(Some(file), month("2026-12")).unwrap();
        let again = Metered::new(
            Session::new(),
            &["wwan0,budget=1MB".parse().unwrap()],
            ledger,
        );
        again.session.carried(1_000);
        again.look(month("2026-12")).await;
        assert_eq!(again.session.asked(), rests());
    }

    #[tokio::test]
    async fn interfaces_that_fit_the_same_words_share_a_budget() {
        let folder = tempfile::tempdir().unwrap();
        let metered = metered(&folder.path().join("usage.toml"), "wwan*,budget=1MB");
        {
            let mut status = metered.session.status.lock().unwrap();
            let paths = &mut status.sessions[0].paths;
            paths.push(paths[0].clone());
            paths[0].name = "wwan*".into();
            paths[1].name = "wwan*#2".into();
            for path in paths {
                (path.sent_packets, path.received_packets) = (0, 0);
                (path.sent_bytes, path.received_bytes) = (0, 500_000);
            }
        }
        metered.look(month("2026-11")).await;
        assert_eq!(metered.session.asked(), [("wwan*".to_owned(), true)]);
        let shown = metered.status().await.sessions[0].paths[1].budget.clone();
        assert_eq!(shown.unwrap().used_bytes, 1_000_000);
    }

    #[tokio::test]
    async fn who_decides_for_himself_is_not_overruled() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("usage.toml");
        // It stands by anyway.
        let resting = metered(&file, "wwan0,standby,budget=1MB");
        resting.session.carried(2_000_000);
        resting.look(month("2026-11")).await;
        resting.look(month("2026-12")).await;
        assert_eq!(resting.session.asked(), []);
        // Called back although it is over.
        let called = metered(&file, "wwan0,budget=1MB");
        called.session.carried(2_000_000);
        called.look(month("2026-11")).await;
        called.set_standby("wwan0", false).await.unwrap();
        called.session.asked();
        called.look(month("2026-11")).await;
        assert_eq!(called.session.asked(), []);
        // Put on standby by its number while it is over its budget, it stands by in the next month,
        // too.
        let id = called.status().await.sessions[0].paths[0].id.to_string();
        called.set_standby(&id, true).await.unwrap();
        called.session.asked();
        called.look(month("2026-12")).await;
        assert_eq!(called.session.asked(), []);
        // A path without a budget, or that is gone, has none.
        called.remove_path(&id).await.unwrap();
        assert_eq!(called.status().await.sessions[0].paths[0].budget, None);
    }
}
