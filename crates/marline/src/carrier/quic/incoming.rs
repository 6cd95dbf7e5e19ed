//! A connection that has begun at a server, before anybody has looked at it.

use std::net::SocketAddr;
use std::sync::Arc;

use quinn_proto::{ConnectionError, ServerConfig};

use super::connection::Connection;
use super::port::Port;

/// A connection that begins; it is refused when this is dropped.
#[derive(Debug)]
pub(in crate::carrier) struct Incoming {
    begun: Option<quinn_proto::Incoming>,
    remote: SocketAddr,
    validated: bool,
    port: Arc<Port>,
}

impl Incoming {
    pub(super) fn new(begun: quinn_proto::Incoming, port: Arc<Port>) -> Self {
        Self {
            remote: begun.remote_address(),
            validated: begun.remote_address_validated(),
            begun: Some(begun),
            port,
        }
    }

    /// Where it comes from, as the socket shows it.
    pub(in crate::carrier) const fn remote_address(&self) -> SocketAddr {
        self.remote
    }

    /// It has proved that it receives what is sent there.
    pub(in crate::carrier) const fn remote_address_validated(&self) -> bool {
        self.validated
    }

    /// Takes it in, with a configuration of its own.
    ///
    /// # Errors
    /// It has ended already, or is none.
    pub(in crate::carrier) fn accept(
        mut self,
        config: ServerConfig,
    ) -> Result<Connection, ConnectionError> {
        match self.begun.take() {
            Some(begun) => self.port.accept(begun, config),
            // Only what consumes it takes it out.
            None => Err(ConnectionError::Reset),
        }
    }

    /// Has it prove that it receives what is sent to its address (RFC 9000 section 8.1.2).
    pub(in crate::carrier) fn retry(mut self) {
        if let Some(begun) = self.begun.take() {
            self.port.retry(begun);
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(begun) = self.begun.take() {
            self.port.refuse(begun);
        }
    }
}
