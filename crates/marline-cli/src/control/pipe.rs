//! Windows: named pipes in place of sockets. By the rights that a pipe has by default only its
//! user, administrators and the system write to it, so that nobody else can ask; the network cannot
//! either. The pipe's name is held by whoever makes it first, as long as the program runs.

use super::status::Role;
use marline::support::accept::Listening;
use marline::support::lock;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient, ServerOptions};
use tokio::time::sleep;

pub use tokio::net::windows::named_pipe::NamedPipeServer as Stream;

/// What the names of all pipes of this host begin with.
const PIPES: &str = r"\\.\pipe\";
/// `ERROR_PIPE_BUSY`: the pipe's end that waited has just been taken, and the next one is not yet
/// there.
const BUSY: i32 = 231;
/// How long a client waits then: the next end is there within microseconds, and nobody notices
/// this. A choice, not tuned.
const SOON: Duration = Duration::from_millis(20);

/// Where the pipe is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// There, because somebody said so.
    Chosen(PathBuf),
    /// There, because it is the usual place of this user.
    Usual(PathBuf),
}

/// Where this user's pipe is unless somebody chooses.
pub fn usual_path(role: Role) -> PathBuf {
    let user = std::env::var("USERNAME").unwrap_or_default();
    let role = match role {
        Role::Client => "client",
        Role::Server => "server",
    };
    PathBuf::from(format!("{PIPES}marline-{user}-{role}"))
}

/// Where this user's pipe may be: there is one place.
pub fn usual_paths(role: Role) -> Vec<PathBuf> {
    vec![usual_path(role)]
}

/// None: there are no services yet.
pub fn service_sockets(_: Role) -> Vec<PathBuf> {
    Vec::new()
}

/// Pipes lie in no folder that somebody could write to.
pub fn is_trusted(_: &Path) -> bool {
    true
}

/// Why the pipe could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// There is one already.
    #[error("another instance is running: it has the control pipe {}", .0.display())]
    InUse(PathBuf),
    /// The name is not that of a pipe.
    #[error("{} is not the name of a pipe", .0.display())]
    NotAPipe(PathBuf),
    /// Any other failure.
    #[error("cannot make the control pipe {}: {error}", path.display())]
    Io {
        /// The pipe.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl BindError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            BindError::InUse(_) => {
                r"stop it, or give this one a pipe of its own: `--control \\.\pipe\NAME`"
            }
            BindError::NotAPipe(_) => r"`--control \\.\pipe\NAME`, or `--control off`",
            BindError::Io { .. } => {
                r"choose another one with `--control \\.\pipe\NAME`, or `--control off`"
            }
        }
    }
}

type Taken = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

/// The ends of a pipe that wait for clients, one at a time.
pub(super) struct Ends {
    path: PathBuf,
    /// The one that waits now; `None` after the system refused to make it.
    waiting: Mutex<Option<Taken>>,
}

impl std::fmt::Debug for Ends {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ends")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Ends {
    /// A further end that waits.
    fn another(&self) -> io::Result<Taken> {
        let end = ServerOptions::new().create(&self.path);
        // Somebody else has the name: not a client that was gone, after which the next one is due.
        Ok(taken(end.map_err(io::Error::other)?))
    }
}

/// When a client comes to this end.
fn taken(end: Stream) -> Taken {
    Box::pin(async move {
        end.connect().await?;
        Ok(end)
    })
}

impl Listening for Ends {
    type Taken = Stream;

    fn number(_: &Stream) -> i32 {
        0
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<io::Result<Stream>> {
        let mut waiting = lock(&self.waiting);
        let mut end = match waiting.take() {
            Some(end) => end,
            None => self.another()?,
        };
        let Poll::Ready(next) = end.as_mut().poll(cx) else {
            *waiting = Some(end);
            return Poll::Pending;
        };
        // Before the one that was taken can end: the name must not be free in between.
        *waiting = self.another().ok();
        Poll::Ready(next)
    }
}

/// Has a program made this pipe?
fn is_there(path: &Path) -> bool {
    match ClientOptions::new().open(path) {
        Ok(_) => true,
        Err(error) => error.raw_os_error() == Some(BUSY),
    }
}

/// An open control pipe.
#[derive(Debug)]
pub struct ControlSocket {
    pub(super) listener: Ends,
}

impl ControlSocket {
    /// Makes the pipe at `place`.
    ///
    /// # Errors
    /// See [`BindError`].
    pub async fn open(place: &Place) -> Result<Option<Self>, BindError> {
        let (Place::Chosen(path) | Place::Usual(path)) = place;
        if !path.to_string_lossy().starts_with(PIPES) {
            return Err(BindError::NotAPipe(path.clone()));
        }
        // Asked for as well: wine 8 lets a second program be the first one.
        if is_there(path) {
            return Err(BindError::InUse(path.clone()));
        }
        let first = ServerOptions::new().first_pipe_instance(true).create(path);
        let first = first.map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => BindError::InUse(path.clone()),
            _ => BindError::Io {
                path: path.clone(),
                error,
            },
        })?;
        Ok(Some(ControlSocket {
            listener: Ends {
                path: path.clone(),
                waiting: Mutex::new(Some(taken(first))),
            },
        }))
    }

    /// A connection to the pipe at `path`.
    ///
    /// # Errors
    /// What the system said.
    pub async fn connect(path: &Path) -> io::Result<NamedPipeClient> {
        loop {
            match ClientOptions::new().open(path) {
                Err(error) if error.raw_os_error() == Some(BUSY) => sleep(SOON).await,
                opened => return opened,
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.listener.path
    }
}
