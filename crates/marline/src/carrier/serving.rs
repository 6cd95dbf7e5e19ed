//! The sockets of a server's ports.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use socket2::{Domain, Socket, Type};
use tokio::net::TcpListener;

use super::Bind;
use super::socket::{bind, control_congestion, set_buffers};
use super::socket_error::SocketError;

/// Opens the UDP sockets of a server's workers, all at one port. With `dual` an unspecified IPv6
/// address takes IPv4 too.
pub(super) fn udp(
    address: SocketAddr,
    dual: bool,
    buffer: usize,
    count: usize,
) -> Result<Vec<UdpSocket>, SocketError> {
    // Bound alone, so that a port that another program has is refused, and none is that of another
    // server by chance where the system chooses.
    let first = serving(Type::DGRAM, address, dual, false)?;
    let io = |source| SocketError::Io {
        bind: Bind::Address(address.ip()),
        source,
    };
    let mut all = vec![first];
    if count > 1 {
        share_port(&all[0]).map_err(io)?;
        let bound: UdpSocket = all[0].try_clone().map_err(io)?.into();
        let address = bound.local_addr().map_err(io)?;
        for _ in 1..count {
            all.push(serving(Type::DGRAM, address, dual, true)?);
        }
    }
    let sized = all.into_iter().map(|socket| {
        set_buffers(&socket, buffer);
        socket.into()
    });
    Ok(sized.collect())
}

/// Others may be bound to its port, too, by this user; packets are shared out among them.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn share_port(_: &Socket) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Opens the TCP socket, whose connections have this congestion control.
pub(super) fn tcp(
    address: SocketAddr,
    dual: bool,
    congestion: Option<&str>,
) -> Result<TcpListener, SocketError> {
    /// Connections that the kernel keeps until they are taken in.
    const BACKLOG: i32 = 128;
    let socket = serving(Type::STREAM, address, dual, false)?;
    control_congestion(&socket, congestion)?;
    socket
        .listen(BACKLOG)
        .and_then(|()| socket.set_nonblocking(true))
        .and_then(|()| TcpListener::from_std(socket.into()))
        .map_err(|source| SocketError::Io {
            bind: Bind::Address(address.ip()),
            source,
        })
}

fn serving(
    kind: Type,
    address: SocketAddr,
    dual: bool,
    shared: bool,
) -> Result<Socket, SocketError> {
    let shown = Bind::Address(address.ip());
    let io = |source| SocketError::Io {
        bind: shown.clone(),
        source,
    };
    let socket = Socket::new(Domain::for_address(address), kind, None).map_err(io)?;
    if address.is_ipv6() {
        socket.set_only_v6(!dual).map_err(io)?;
    }
    if shared {
        share_port(&socket).map_err(io)?;
    }
    // A server that starts again finds old connections of its own, which are no reason to refuse.
    #[cfg(unix)]
    if kind == Type::STREAM {
        socket.set_reuse_address(true).map_err(io)?;
    }
    match bind(&socket, address, &shown) {
        // It may come: a host's network can be later than its programs.
        Err(SocketError::NotLocal { .. }) if bind_early(&socket, address).is_ok() => {}
        bound => bound?,
    }
    Ok(socket)
}

/// Binds to an address that this host does not have yet.
#[cfg(target_os = "linux")]
fn bind_early(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    match address {
        SocketAddr::V4(_) => socket.set_freebind_v4(true)?,
        SocketAddr::V6(_) => socket.set_freebind_v6(true)?,
    }
    socket.bind(&address.into())
}

#[cfg(not(target_os = "linux"))]
fn bind_early(_: &Socket, _: SocketAddr) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kernel buffer (bytes), which does not matter here.
    const BUFFER: usize = 1 << 20;

    fn refused(address: SocketAddr, count: usize) -> bool {
        matches!(
            udp(address, false, BUFFER, count),
            Err(SocketError::Busy { address: busy, .. }) if busy == address
        )
    }

    #[test]
    fn a_port_that_somebody_has_is_busy() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(refused(taken.local_addr().unwrap(), 1));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn workers_share_a_port_with_each_other_and_with_no_other_server() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let ours = udp(any, false, BUFFER, 3).unwrap();
        let ports = ours.iter().map(|socket| socket.local_addr().unwrap());
        let ports: Vec<SocketAddr> = ports.collect();
        assert!(ports.len() == 3 && ports.iter().all(|port| *port == ports[0]));
        assert!(refused(ports[0], 3) && refused(ports[0], 1));
        // What comes is shared out by where it comes from, and the same place leads to one socket.
        let peers: Vec<UdpSocket> = (0..64).map(|_| UdpSocket::bind(any).unwrap()).collect();
        for _ in 0..2 {
            for peer in &peers {
                peer.send_to(b"hello", ports[0]).unwrap();
            }
        }
        let mut buffer = [0; 16];
        let mut came = Vec::new();
        for socket in &ours {
            socket.set_nonblocking(true).unwrap();
            let mut from = Vec::new();
            while let Ok((_, peer)) = socket.recv_from(&mut buffer) {
                from.push(peer);
            }
            // By chance in (2/3)^64 of runs.
            assert!(!from.is_empty());
            from.sort();
            assert!(from.chunks(2).all(|pair| pair[0] == pair[1]));
            came.push(from.len());
        }
        assert_eq!(came.iter().sum::<usize>(), 2 * peers.len());
    }
}
