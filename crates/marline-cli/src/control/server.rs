//! The running side of the control socket.

use super::protocol::{MAX_REQUEST, Outcome, Reply, Request, parse_request};
use super::{ControlSocket, Manage, Problem, Stream};
use marline::carrier::{SocketError, SocketSpec};
use marline::support::accept::PatientListener;
use marline::{Bind, Path};
use marline_apps::live::live_target;
use marline_apps::lru::{Held, Lru};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Most connections at a time; one more ends the one that has asked nothing for the longest.
const MAX_CONNECTIONS: usize = 16;
/// A connection that asks nothing, or does not read its answer, for this long is closed.
const IDLE: Duration = Duration::from_secs(60);

/// What is asked of the whole program.
#[derive(Clone, Debug)]
pub struct Wishes {
    /// Cancelled when it is to stop.
    pub stop: CancellationToken,
    /// It is to read its configuration again, and to say here what was wrong with it.
    reload: mpsc::Sender<Reloaded>,
}

/// A program that reads nothing again.
impl Default for Wishes {
    fn default() -> Self {
        Wishes::new().0
    }
}

/// Takes what came of reading the configuration again.
pub type Reloaded = oneshot::Sender<Result<(), Problem>>;

impl Wishes {
    /// And where the program hears that it is to read its configuration again.
    #[must_use]
    pub fn new() -> (Self, mpsc::Receiver<Reloaded>) {
        let (reload, asked) = mpsc::channel(1);
        let stop = CancellationToken::new();
        (Wishes { stop, reload }, asked)
    }

    async fn reload(&self) -> Result<(), Problem> {
        let (done, answer) = oneshot::channel();
        // A program that is about to stop reads nothing any more.
        let _ = self.reload.send(done).await;
        answer.await.unwrap_or(Ok(()))
    }
}

/// Answers requests at `socket` until the future is dropped.
///
/// Memory is bounded by 16 connections of [`MAX_REQUEST`] bytes and one snapshot each.
pub async fn serve<M: Manage>(socket: ControlSocket, managed: Arc<M>, wishes: Wishes) {
    let lru = Lru::new(MAX_CONNECTIONS);
    let mut listener = PatientListener::new(&socket.listener);
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let stream = listener.accept().await;
        let (managed, wishes) = (Arc::clone(&managed), wishes.clone());
        let end = CancellationToken::new();
        let held = lru.enter(end.clone());
        connections.spawn(async move {
            tokio::select! {
                () = end.cancelled() => {}
                ended = connection(stream, managed.as_ref(), &wishes, held) => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a control connection failed");
                    }
                }
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn connection<M: Manage>(
    stream: Stream,
    managed: &M,
    wishes: &Wishes,
    mut held: Held,
) -> io::Result<()> {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = MAX_REQUEST as u64;
        let Ok(read) = timeout(IDLE, (&mut reader).take(limit).read_until(b'\n', &mut line)).await
        else {
            return Ok(());
        };
        if read? == 0 {
            return Ok(());
        }
        held.active();
        let whole = line.last() == Some(&b'\n');
        let outcome = if whole || line.len() < MAX_REQUEST {
            match parse_request(&line) {
                Ok(request) => answer(request, managed, wishes).await,
                Err(message) => Outcome::Error {
                    message,
                    hint: None,
                },
            }
        } else {
            Outcome::Error {
                message: format!("a request has at most {MAX_REQUEST} bytes"),
                hint: None,
            }
        };
        let mut text = serde_json::to_vec(&Reply::from(outcome))?;
        text.push(b'\n');
        timeout(IDLE, writer.write_all(&text)).await??;
        if !whole {
            return Ok(());
        }
    }
}

/// Carries out one request.
pub(crate) async fn answer<M: Manage>(request: Request, managed: &M, wishes: &Wishes) -> Outcome {
    let result = match request {
        Request::Status => {
            return Outcome::Status {
                status: Box::new(managed.status().await),
            };
        }
        Request::PathsAdd { path } => match path.parse::<Path>() {
            Ok(spec) => {
                let waits = waits(&spec);
                let added = managed.add_path(spec).await;
                if added.is_ok() {
                    return Outcome::Done { waits };
                }
                added
            }
            Err(problem) => Err(Problem {
                message: problem.message,
                hint: problem.hint,
            }),
        },
        Request::PathsRemove { path } => managed.remove_path(&path).await,
        Request::PathsStandby { path, standby } => managed.set_standby(&path, standby).await,
        Request::LiveTarget { live, target } => match live_target(&target) {
            Ok(target) => managed.set_live_target(live.as_deref(), target).await,
            Err(problem) => Err(Problem {
                message: problem.message,
                hint: problem.hint,
            }),
        },
        Request::Record { since_ms, all } => match managed.record(since_ms, all) {
            Ok(part) => return Outcome::Recorded { part },
            Err(problem) => Err(problem),
        },
        Request::Reload => wishes.reload().await,
        Request::Stop => {
            wishes.stop.cancel();
            Ok(())
        }
    };
    match result {
        Ok(()) => Outcome::DONE,
        Err(Problem { message, hint }) => Outcome::Error { message, hint },
    }
}

/// What a path waits for: an interface that this host does not have yet.
fn waits(spec: &Path) -> Option<String> {
    let socket = SocketSpec {
        bind: spec.local.clone(),
        ..SocketSpec::default()
    };
    match (&spec.local, socket.check()) {
        (Bind::Interface(_), Err(error @ SocketError::BadInterface { .. })) => {
            Some(error.to_string())
        }
        _ => None,
    }
}
