//! The Marline that runs here already, by its control socket.

use super::limits::PATIENCE;
use crate::control::client::{AskError, ask};
use crate::control::protocol::{Outcome, Request};
use crate::control::status::{Role, Status};
use crate::control::{Place, is_trusted, usual_paths};
use std::path::{Path, PathBuf};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Whether one runs.
#[derive(Debug)]
pub(super) enum Running {
    /// No control socket is there.
    None,
    /// It says how it is.
    Answers(Box<Status>),
    /// One may run; why it cannot be asked.
    Unclear(String),
}

/// What is at this control socket, or at any that is usual for this role if none was chosen.
pub(super) async fn running(place: Option<&Place>, role: Role) -> Running {
    let sockets = match place {
        None => Vec::new(),
        Some(Place::Chosen(path)) => vec![path.clone()],
        // Nobody knows who put it there where others may write, so it is not believed.
        Some(Place::Usual(_)) => {
            let sockets = usual_paths(role).into_iter();
            let folder = |socket: &PathBuf| socket.parent().is_none_or(is_trusted);
            sockets.filter(folder).collect()
        }
    };
    at(sockets).await
}

async fn at(sockets: Vec<PathBuf>) -> Running {
    let mut asked = JoinSet::new();
    for socket in sockets {
        asked.spawn(async move { of(&socket).await });
    }
    let answers = asked.join_all().await;
    let mut best = Running::None;
    for answer in answers {
        match (&best, &answer) {
            (Running::Answers(_), _) | (_, Running::None) => {}
            (Running::None, _) | (Running::Unclear(_), Running::Answers(_)) => best = answer,
            (Running::Unclear(_), Running::Unclear(_)) => {}
        }
    }
    best
}

async fn of(socket: &Path) -> Running {
    let silent = || AskError::Silent(socket.to_owned());
    let answer = timeout(PATIENCE, ask(socket, Request::Status)).await;
    match answer.unwrap_or_else(|_| Err(silent())) {
        Ok(Outcome::Status { status }) => Running::Answers(status),
        Ok(_) => Running::Unclear(format!("{} gives no status", socket.display())),
        Err(AskError::NotRunning(_)) => Running::None,
        Err(error) => Running::Unclear(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[tokio::test(start_paused = true)]
    async fn who_does_not_answer_is_not_absent() {
        let folder = tempfile::tempdir().unwrap();
        let socket = |name: &str| folder.path().join(name);
        let _listening = UnixListener::bind(socket("silent")).unwrap();
        assert!(matches!(at(vec![socket("none")]).await, Running::None));
        let Running::Unclear(why) = at(vec![socket("none"), socket("silent")]).await else {
            panic!("a silent one counts as none");
        };
        assert!(why.ends_with("silent does not answer"), "{why}");
        let nowhere = running(None, Role::Client).await;
        assert!(matches!(nowhere, Running::None));
    }
}
