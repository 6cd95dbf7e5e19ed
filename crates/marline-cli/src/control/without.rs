//! A system without Unix sockets: a program that runs is not asked and not changed.

use super::status::Role;
use marline::support::accept::Listening;
use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::task::{Context, Poll};
pub use tokio::net::TcpStream as Stream;

/// Where a socket would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// There, because somebody said so.
    Chosen(PathBuf),
    /// There, because it is the usual place.
    Usual(PathBuf),
}

/// Where a socket would be made unless somebody chooses.
pub fn usual_path(role: Role) -> PathBuf {
    PathBuf::from(match role {
        Role::Client => "client.sock",
        Role::Server => "server.sock",
    })
}

/// Nowhere.
pub fn usual_paths(_: Role) -> Vec<PathBuf> {
    Vec::new()
}

/// None.
pub fn service_sockets(_: Role) -> Vec<PathBuf> {
    Vec::new()
}

/// Nothing is.
pub fn is_trusted(_: &Path) -> bool {
    false
}

/// Why the control socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// There are none.
    #[error("this system has no control sockets")]
    Unsupported,
}

impl BindError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "leave `--control` out"
    }
}

/// Who would listen.
#[derive(Debug)]
pub struct Nobody(Infallible);

impl Listening for Nobody {
    type Taken = Stream;

    fn number(_: &Stream) -> i32 {
        0
    }

    fn poll_next(&self, _: &mut Context<'_>) -> Poll<io::Result<Stream>> {
        match self.0 {}
    }
}

/// Never open.
#[derive(Debug)]
pub struct ControlSocket {
    pub(super) listener: Nobody,
}

impl ControlSocket {
    /// None at the usual place.
    ///
    /// # Errors
    /// Another place was chosen.
    pub async fn open(place: &Place) -> Result<Option<Self>, BindError> {
        match place {
            Place::Chosen(_) => Err(BindError::Unsupported),
            Place::Usual(_) => Ok(None),
        }
    }

    /// Reaches nobody.
    ///
    /// # Errors
    /// Always.
    pub async fn connect(_: &Path) -> io::Result<Stream> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            BindError::Unsupported,
        ))
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        match self.listener.0 {}
    }
}
