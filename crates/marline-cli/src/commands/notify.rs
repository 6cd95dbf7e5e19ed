//! Reports to a service manager by the protocol of sd_notify(3): that the program serves, reads its
//! configuration again or stops, how it is, and that its event loop turns.
//!
//! Without `NOTIFY_SOCKET` nobody listens, and nothing of this happens.

use crate::control::Manage;
use crate::control::status::{Role, Status};
use crate::platform::{self, Report};
use marline_proto::path::PathState;
use std::sync::Arc;
use std::time::Duration;

/// How often the status line is looked at; it is for people.
const LOOK: Duration = Duration::from_secs(5);

/// Is there a service manager that listens?
fn is_heard() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some_and(|socket| !socket.is_empty())
}

fn send(report: Report<'_>) {
    if is_heard()
        && let Err(error) = platform::report(report)
    {
        tracing::debug!("the service manager is not told: {error}");
    }
}

/// Everything that was asked for is bound: other services may start.
pub(super) fn ready() {
    send(Report::Ready);
}

/// The configuration is read again, until [`ready`].
pub(super) fn reloading() {
    send(Report::Reloading);
}

/// The end has begun.
pub(super) fn stopping() {
    send(Report::Stopping);
    send(Report::Status("stopping"));
}

/// Says how `managed` is, and that this loop turns, as often as a watchdog wants it. Does not end.
pub(super) async fn keep_telling<M: Manage>(managed: Arc<M>) {
    if !is_heard() {
        return std::future::pending().await;
    }
    let watchdog = platform::watchdog();
    // Half of the limit, as sd_watchdog_enabled(3) recommends.
    let period = watchdog.map_or(LOOK, |limit| (limit / 2).min(LOOK));
    let mut said = String::new();
    loop {
        let line = line(&managed.status().await);
        if line != said {
            send(Report::Status(&line));
            said = line;
        }
        if watchdog.is_some() {
            send(Report::Turning);
        }
        tokio::time::sleep(period).await;
    }
}

/// The status in one line.
fn line(status: &Status) -> String {
    let paths = || status.sessions.iter().flat_map(|session| &session.paths);
    let works = |state: &PathState| matches!(state, PathState::Active | PathState::Standby);
    let working = paths().filter(|path| works(&path.state)).count();
    let (all, sessions) = (paths().count(), status.sessions.len());
    match (status.role, status.sessions.first()) {
        (Role::Server, _) => format!("{sessions} sessions, {working} paths"),
        (Role::Client, None) => "no session yet".to_owned(),
        (Role::Client, Some(session)) => {
            format!("{}, {working} of {all} paths work", session.state)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::status::tests::example;

    #[test]
    fn a_line_says_how_many_paths_work() {
        let mut status = example();
        assert_eq!(line(&status), "established, 1 of 2 paths work");
        status.role = Role::Server;
        assert_eq!(line(&status), "1 sessions, 1 paths");
        status.sessions.clear();
        status.role = Role::Client;
        assert_eq!(line(&status), "no session yet");
    }
}
