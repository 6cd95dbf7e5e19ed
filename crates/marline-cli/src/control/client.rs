//! The asking side of the control socket.

use super::ControlSocket;
use super::protocol::{Envelope, Outcome, Reply, Request, VERSION};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Largest answer that is read, bytes: a server with many thousand flows fits.
const MAX_REPLY: u64 = 64 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens there.
    #[error("no running marline answers at {}", .0.display())]
    NotRunning(PathBuf),
    /// The socket belongs to somebody else.
    #[error("not allowed to use the control socket {}", .0.display())]
    NotAllowed(PathBuf),
    /// It listens, but does not answer in time.
    #[error("marline at {} does not answer", .0.display())]
    Silent(PathBuf),
    /// What it answered makes no sense.
    #[error("marline at {} answered in a way that this version does not understand: {reason}", path.display())]
    Unintelligible {
        /// The socket.
        path: PathBuf,
        /// What is wrong with the answer.
        reason: String,
    },
    /// Any other failure.
    #[error("cannot talk to marline at {}: {error}", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// Asks the Marline whose control socket is `path`.
///
/// # Errors
/// See [`AskError`]. A request that was understood and refused is an `Ok` [`Outcome::Error`].
pub async fn ask(path: &Path, request: Request) -> Result<Outcome, AskError> {
    match timeout(PATIENCE, exchange(path, request)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(AskError::Silent(path.to_owned())),
    }
}

async fn exchange(path: &Path, request: Request) -> Result<Outcome, AskError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            AskError::NotRunning(path.to_owned())
        }
        io::ErrorKind::PermissionDenied => AskError::NotAllowed(path.to_owned()),
        _ => AskError::Io {
            path: path.to_owned(),
            error,
        },
    };
    let unintelligible = |reason: String| AskError::Unintelligible {
        path: path.to_owned(),
        reason,
    };

    let mut stream = ControlSocket::connect(path).await.map_err(failed)?;
    let mut text = serde_json::to_vec(&Envelope {
        version: VERSION,
        request,
    })
    .map_err(|error| failed(error.into()))?;
    text.push(b'\n');
    stream.write_all(&text).await.map_err(failed)?;
    let mut line = Vec::new();
    BufReader::new(stream)
        .take(MAX_REPLY)
        .read_until(b'\n', &mut line)
        .await
        .map_err(failed)?;
    if line.is_empty() {
        return Err(unintelligible("it closed the connection".to_owned()));
    }
    let reply: Reply =
        serde_json::from_slice(&line).map_err(|error| unintelligible(error.to_string()))?;
    if reply.version != VERSION {
        return Err(unintelligible(format!(
            "it speaks control version {}, this program speaks {VERSION}",
            reply.version
        )));
    }
    Ok(reply.outcome)
}
