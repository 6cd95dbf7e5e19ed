//! The sockets of a published port, one for each address that the server publishes at.

use crate::destination::ServerPort;
use crate::proxy::Protocol;
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpListener, UdpSocket};
use tokio::time::sleep;

/// Where ports are published if nobody says: at every address.
const EVERYWHERE: [IpAddr; 2] = [
    IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    IpAddr::V4(Ipv4Addr::UNSPECIFIED),
];
/// Connections that wait to be accepted: what the kernel bounds by itself (`somaxconn` of
/// listen(2)), no more than the standard library asks for.
const BACKLOG: i32 = 128;
/// How often a port that is in use is tried again, and after how long: the datagram socket of the
/// session before is closed when its last flow has ended, which takes some turns of the runtime.
const TRIES: u32 = 20;
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// One of them.
#[derive(Debug)]
pub(super) enum Listening {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

/// Listens at each of `addresses`, or everywhere if there are none; with where the first one is.
///
/// # Errors
/// That of the first address which cannot be had.
pub(super) async fn listen(
    port: ServerPort,
    addresses: &[IpAddr],
) -> io::Result<(Vec<Listening>, SocketAddr)> {
    let mut tries = 1;
    loop {
        match listen_once(port, addresses) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries < TRIES => {
                tries += 1;
                sleep(TRY_AGAIN).await;
            }
            result => return result,
        }
    }
}

fn listen_once(port: ServerPort, addresses: &[IpAddr]) -> io::Result<(Vec<Listening>, SocketAddr)> {
    let (wanted, chosen) = match addresses {
        [] => (&EVERYWHERE[..], false),
        chosen => (chosen, true),
    };
    let mut sockets = Vec::new();
    let mut first = None;
    let mut missing = None;
    for ip in wanted {
        let address = SocketAddr::new(*ip, port.number.get());
        match bind(port.protocol, address) {
            Ok(socket) => {
                sockets.push(socket);
                first.get_or_insert(address);
            }
            // This host has no addresses of that family.
            Err(error) if !chosen && is_missing(&error) => missing = Some(error),
            Err(error) => return Err(error),
        }
    }
    match (first, missing) {
        (Some(first), _) => Ok((sockets, first)),
        (None, Some(error)) => Err(error),
        (None, None) => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}

fn is_missing(error: &io::Error) -> bool {
    let missing = [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL].map(Errno::raw_os_error);
    error
        .raw_os_error()
        .is_some_and(|code| missing.contains(&code))
}

fn bind(protocol: Protocol, address: SocketAddr) -> io::Result<Listening> {
    let kind = match protocol {
        Protocol::Tcp => Type::STREAM,
        Protocol::Udp => Type::DGRAM,
    };
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    if address.is_ipv6() {
        // The IPv4 one beside it has a socket of its own.
        socket.set_only_v6(true)?;
    }
    if protocol == Protocol::Tcp {
        // Connections of the session before may still wait for their ends.
        socket.set_reuse_address(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(match protocol {
        Protocol::Tcp => {
            socket.listen(BACKLOG)?;
            Listening::Tcp(TcpListener::from_std(socket.into())?)
        }
        Protocol::Udp => Listening::Udp(UdpSocket::from_std(socket.into())?),
    })
}
