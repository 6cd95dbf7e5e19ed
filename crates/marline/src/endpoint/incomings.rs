//! The accepting end of a session.

use marline_proto::FlowInfo;

use super::{Accepted, Closed, Session};
use crate::identity::PublicKey;

/// The accepting end of a session, which a server hands out. Dropping it resets the flows that the
/// client opens later; accepted ones live on.
#[derive(Debug)]
pub struct Incomings {
    handle: Session,
    peer: PublicKey,
}

impl Incomings {
    /// Of this session with `peer`; nobody else should accept its flows.
    pub fn new(handle: Session, peer: PublicKey) -> Self {
        Self { handle, peer }
    }

    /// The session.
    pub fn handle(&self) -> &Session {
        &self.handle
    }

    /// The client's key.
    pub fn peer(&self) -> PublicKey {
        self.peer
    }

    /// The next flow that the client opens, with what it was opened for. Cancel safe.
    ///
    /// # Errors
    /// The session is over.
    pub async fn accept(&mut self) -> Result<(FlowInfo, Accepted), Closed> {
        self.handle.accept().await
    }
}

impl Drop for Incomings {
    fn drop(&mut self) {
        self.handle.refuse_flows();
    }
}
