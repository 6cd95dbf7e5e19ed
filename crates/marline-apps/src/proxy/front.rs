//! The listening side of a client: the SOCKS5 proxy and all forwards, bound first and served later,
//! so that a busy port is an error before anything is dialled.

use super::socks5::SocksOptions;
use super::{AsObjects, Forward, Protocol, Tasks, Tunnel, socks5, tcp, udp};
use marline_proto::wire::FlowKind;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use tokio::net::{TcpListener, UdpSocket};

/// Bound and not yet served.
#[derive(Debug)]
pub struct Front {
    socks: Option<(TcpListener, SocksOptions)>,
    tcp: Vec<(TcpListener, Forward)>,
    udp: Vec<(UdpSocket, Forward)>,
    objects: AsObjects,
}

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen at {address}: {error}")]
pub struct ListenError {
    /// The key that asks for it.
    pub key: &'static str,
    /// The address.
    pub address: SocketAddr,
    /// What the system said.
    pub error: io::Error,
}

impl Front {
    /// Binds everything that is asked for: a SOCKS5 proxy, and forwards; `objects` are connections
    /// that forwards carry as objects.
    ///
    /// # Errors
    /// The first address that cannot be listened on.
    pub async fn bind(
        socks: Option<(SocketAddr, SocksOptions)>,
        forwards: &[Forward],
        objects: AsObjects,
    ) -> Result<Self, ListenError> {
        let mut front = Front {
            socks: None,
            tcp: Vec::new(),
            udp: Vec::new(),
            objects,
        };
        if let Some((address, options)) = socks {
            front.socks = Some((listen_tcp("socks", address).await?, options));
        }
        for forward in forwards {
            let (key, address) = ("forward", forward.listen);
            match forward.target.protocol() {
                Protocol::Tcp => {
                    front
                        .tcp
                        .push((listen_tcp(key, address).await?, forward.clone()));
                }
                Protocol::Udp => {
                    let socket = UdpSocket::bind(address)
                        .await
                        .map_err(|error| ListenError {
                            key,
                            address,
                            error,
                        })?;
                    front.udp.push((socket, forward.clone()));
                }
            }
        }
        Ok(front)
    }

    /// Serves everything over `tunnel`, as tasks.
    pub fn serve<T: Tunnel>(self, tunnel: &T, tasks: &Tasks) {
        if let Some((listener, options)) = self.socks {
            tracing::info!("SOCKS5 proxy at {}", shown(listener.local_addr()));
            if options.login.is_none() {
                warn_of_strangers(listener.local_addr(), "the server's network");
            }
            tasks.spawn(socks5::serve(
                listener,
                tunnel.clone(),
                options,
                tasks.clone(),
            ));
        }
        for (listener, forward) in self.tcp {
            tracing::info!(
                "{} is carried to {}",
                shown(listener.local_addr()),
                forward.target
            );
            warn_of_strangers(listener.local_addr(), &forward.target);
            let mut options = forward.options();
            // A scheduler that was chosen for streams need not serve objects.
            if options.scheduler.is_none() && self.objects.applies(forward.target.port()) {
                options.kind = FlowKind::Objects;
            }
            tasks.spawn(tcp::forward(
                listener,
                tunnel.clone(),
                options,
                tasks.clone(),
            ));
        }
        for (socket, forward) in self.udp {
            tracing::info!(
                "{} is carried to {}",
                shown(socket.local_addr()),
                forward.target
            );
            warn_of_strangers(socket.local_addr(), &forward.target);
            tasks.spawn(udp::forward(
                socket,
                tunnel.clone(),
                forward.options(),
                tasks.clone(),
            ));
        }
    }
}

/// Whether others than programs of this host may reach what listens there.
pub fn stranger(address: SocketAddr) -> bool {
    !address.ip().to_canonical().is_loopback()
}

/// Listens on `address` for TCP; `key` is the one that asks for it.
///
/// # Errors
/// When the system refuses.
pub async fn listen_tcp(
    key: &'static str,
    address: SocketAddr,
) -> Result<TcpListener, ListenError> {
    TcpListener::bind(address)
        .await
        .map_err(|error| ListenError {
            key,
            address,
            error,
        })
}

/// Warns of an address that others than this host's programs may reach, and so `what` behind the
/// server.
fn warn_of_strangers(address: io::Result<SocketAddr>, what: impl fmt::Display) {
    if let Some(address) = address.ok().filter(|address| stranger(*address)) {
        tracing::warn!("every host that reaches {address} may use {what} without a password");
    }
}

fn shown(address: io::Result<SocketAddr>) -> impl fmt::Display {
    address.map_or_else(|error| error.to_string(), |address| address.to_string())
}
