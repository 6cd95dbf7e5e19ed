//! Where a server takes QUIC connections in.

use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use quinn_proto::{ConnectionError, EndpointConfig, ServerConfig, VarInt};

use super::connection::Connection;
use super::demux::{Demux, Siblings, Worker};
use super::packet::longest;
use super::socket::Socket;
use super::steering::Steering;

/// A port of a server, with a socket for each worker, which all its connections share.
#[derive(Debug)]
pub(in crate::carrier) struct ServerEndpoint(Vec<Arc<Demux>>);

impl ServerEndpoint {
    /// Opens a port, whose sockets are read on these workers' threads, numbered from 0; `inbox`
    /// bytes may wait for the task of one connection.
    pub(in crate::carrier) fn open(
        sockets: Vec<(Socket, Worker)>,
        endpoint: &EndpointConfig,
        server: &Arc<ServerConfig>,
        inbox: usize,
    ) -> Self {
        let siblings = Siblings::new(Steering::new(sockets.len()));
        let demuxes = sockets.into_iter().map(|(socket, worker)| {
            let (endpoint, server) = (endpoint.clone(), Arc::clone(server));
            Demux::new(
                socket,
                endpoint,
                server,
                inbox,
                worker,
                Arc::clone(&siblings),
            )
        });
        let demuxes: Vec<_> = demuxes.collect();
        siblings.complete(&demuxes);
        for demux in &demuxes {
            demux.start(longest(endpoint));
        }
        Self(demuxes)
    }

    /// Connections that are not drained.
    #[cfg(test)]
    pub(in crate::carrier) fn open_connections(&self) -> usize {
        self.0.iter().map(|demux| demux.open_connections()).sum()
    }

    /// Packets that came by another socket than their connection's.
    #[cfg(test)]
    pub(in crate::carrier) fn handed_over(&self) -> usize {
        self.0.first().map_or(0, |demux| demux.handed_over())
    }

    /// The next connection that begins. One task may wait for it.
    pub(in crate::carrier) fn poll_incoming(&self, cx: &Context<'_>) -> Poll<Incoming> {
        for demux in &self.0 {
            if let Poll::Ready(incoming) = demux.poll_incoming(cx) {
                return Poll::Ready(Incoming::new(incoming, Arc::clone(demux)));
            }
        }
        Poll::Pending
    }

    /// Closes all connections, and takes no more.
    pub(in crate::carrier) fn close(&self, code: VarInt, reason: &[u8]) {
        for demux in &self.0 {
            demux.close(code, reason);
        }
    }

    /// Waits until all connections are drained.
    pub(in crate::carrier) async fn idle(&self) {
        for demux in &self.0 {
            demux.idle().await;
        }
    }
}

impl Drop for ServerEndpoint {
    fn drop(&mut self) {
        for demux in &self.0 {
            demux.stop_accepting();
        }
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

    /// The worker whose socket it came by, and on whose thread it is best handled.
    pub(in crate::carrier) fn worker(&self) -> &Worker {
        self.demux.worker()
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
