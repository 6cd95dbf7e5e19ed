//! Where a connection's packets come from and go to.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quinn_proto::{
    ClientConfig, ConnectError, ConnectionEvent, ConnectionHandle, DatagramEvent, Endpoint,
    EndpointConfig, EndpointEvent,
};

use super::batch::{Batch, Packet};
use super::clock;
use super::demux::Demux;
use super::packet::{handle, longest};
use super::socket::Socket;

/// The socket of a connection, and the endpoint that knows whose packets are whose.
pub(super) enum Underlay {
    /// Its own.
    Own(Box<Own>),
    /// A server's, which all its connections share.
    Shared(Arc<Demux>),
}

impl Underlay {
    pub(super) fn socket(&self) -> &Arc<Socket> {
        match self {
            Self::Own(own) => &own.socket,
            Self::Shared(demux) => demux.socket(),
        }
    }
}

/// The socket and the endpoint of one connection that was dialled.
pub(super) struct Own {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    socket: Arc<Socket>,
    /// The socket before that, from which packets are taken until one comes by the new one.
    previous: Option<Arc<Socket>>,
    batch: Batch,
    /// The batch came by the previous socket.
    late: bool,
}

impl Own {
    pub(super) fn dial(
        socket: Socket,
        config: EndpointConfig,
        client: ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<(Self, ConnectionHandle, quinn_proto::Connection), ConnectError> {
        let longest = longest(&config);
        let mut endpoint = Endpoint::new(Arc::new(config), None, !socket.may_fragment(), None);
        let (handle, proto) = endpoint.connect(clock::now(), client, remote, server_name)?;
        let own = Self {
            endpoint,
            handle,
            batch: socket.batch(longest),
            socket: Arc::new(socket),
            previous: None,
            late: false,
        };
        Ok((own, handle, proto))
    }

    /// Goes on over another socket.
    pub(super) fn rebind(&mut self, socket: Socket) {
        let old = std::mem::replace(&mut self.socket, Arc::new(socket));
        self.previous = Some(old);
    }

    /// The next packet, which may be none of the connection's.
    ///
    /// # Errors
    /// The socket's.
    pub(super) fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<ConnectionEvent>>> {
        loop {
            if let Some(packet) = self.batch.pop() {
                return Poll::Ready(Ok(self.handle(packet)));
            }
            if let Some(previous) = &self.previous {
                match previous.poll_recv(cx, &mut self.batch) {
                    Poll::Ready(Ok(())) => {
                        self.late = true;
                        continue;
                    }
                    Poll::Ready(Err(_)) => self.previous = None,
                    Poll::Pending => {}
                }
            }
            ready!(self.socket.poll_recv(cx, &mut self.batch))?;
            self.late = false;
        }
    }

    fn handle(&mut self, packet: Packet) -> Option<ConnectionEvent> {
        let mut response = Vec::new();
        match handle(&mut self.endpoint, packet, &mut response)? {
            DatagramEvent::ConnectionEvent(_, event) => {
                if !self.late {
                    self.previous = None;
                }
                Some(event)
            }
            DatagramEvent::Response(transmit) => {
                // Whoever it is for asks again if it is lost.
                let _ = self.socket.send(&transmit, &response);
                None
            }
            // There are none without a configuration for servers.
            DatagramEvent::NewConnection(incoming) => {
                self.endpoint.ignore(incoming);
                None
            }
        }
    }

    pub(super) fn handle_event(&mut self, event: EndpointEvent) -> Option<ConnectionEvent> {
        self.endpoint.handle_event(self.handle, event)
    }
}
