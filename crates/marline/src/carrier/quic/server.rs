//! Where a server takes QUIC connections in.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use quinn_proto::{ConnectionError, EndpointConfig, ServerConfig, VarInt};

use super::connection::Connection;
use super::demux::Demux;
use super::socket::Socket;

/// One socket of a server, which all its connections share.
#[derive(Debug)]
pub(in crate::carrier) struct ServerEndpoint(Arc<Demux>);

impl ServerEndpoint {
    /// Opens a port; `inbox` bytes may wait for the task of one connection. Needs a tokio runtime.
    pub(in crate::carrier) fn open(
        socket: Socket,
        endpoint: EndpointConfig,
        server: ServerConfig,
        inbox: usize,
    ) -> Self {
        Self(Demux::open(socket, endpoint, server, inbox))
    }

    pub(in crate::carrier) fn local_addr(&self) -> SocketAddr {
        self.0.socket().local_addr()
    }

    /// Connections that are not drained.
    #[cfg(test)]
    pub(in crate::carrier) fn open_connections(&self) -> usize {
        self.0.open_connections()
    }

    /// The next connection that begins. One task may wait for it.
    pub(in crate::carrier) fn poll_incoming(&self, cx: &Context<'_>) -> Poll<Incoming> {
        let incoming = self.0.poll_incoming(cx);
        incoming.map(|incoming| Incoming::new(incoming, Arc::clone(&self.0)))
    }

    /// Closes all connections, and takes no more.
    pub(in crate::carrier) fn close(&self, code: VarInt, reason: &[u8]) {
        self.0.close(code, reason);
    }

    /// Waits until all connections are drained.
    pub(in crate::carrier) async fn idle(&self) {
        self.0.idle().await;
    }
}

impl Drop for ServerEndpoint {
    fn drop(&mut self) {
        self.0.stop_accepting();
    }
}

/// A connection that begins; it is refused when this is dropped.
#[derive(Debug)]
pub(in crate::carrier) struct Incoming {
    incoming: Option<quinn_proto::Incoming>,
    remote: SocketAddr,
    validated: bool,
    demux: Arc<Demux>,
}

impl Incoming {
    fn new(incoming: quinn_proto::Incoming, demux: Arc<Demux>) -> Self {
        Self {
            remote: incoming.remote_address(),
            validated: incoming.remote_address_validated(),
            incoming: Some(incoming),
            demux,
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
        match self.incoming.take() {
            Some(incoming) => {
                let accepted = self.demux.accept(incoming, config)?;
                Ok(Connection::accepted(accepted, &self.demux))
            }
            // Only what consumes it takes it out.
            None => Err(ConnectionError::Reset),
        }
    }

    /// Has it prove that it receives what is sent to its address (RFC 9000 section 8.1.2).
    pub(in crate::carrier) fn retry(mut self) {
        if let Some(incoming) = self.incoming.take() {
            self.demux.retry(incoming);
        }
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(incoming) = self.incoming.take() {
            self.demux.refuse(incoming);
        }
    }
}
