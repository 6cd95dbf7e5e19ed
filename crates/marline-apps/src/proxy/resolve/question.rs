//! What is asked of a resolver, and what comes of it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long a name may take, with its time in the queue.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Addresses of a name, with port 0, or why there are none.
pub(super) type Found = Result<Arc<[SocketAddr]>, Failure>;

/// Why there is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// The resolver says so.
    #[error("{0}")]
    Resolver(Arc<str>),
    /// Nobody was asked.
    #[error("it could not be asked for")]
    NotAsked,
    /// It takes too long.
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Silent,
    /// The client's names fill its queue.
    #[error("too many names wait")]
    TooMany,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Question {
    pub(super) name: Arc<str>,
    /// Under which settings of the resolver: who asks under new ones does not wait for what old
    /// ones lead to.
    pub(super) settings: u64,
}
