use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Asked for each socket's buffers; the system may give less. The default of 208 KiB overflows
/// when the thread is kept from running for some milliseconds.
const BUFFER: usize = 4 << 20;

/// A socket for datagrams that never blocks.
pub(super) fn bind(addr: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
    // A small buffer is no reason to fail.
    let _ = socket.set_recv_buffer_size(BUFFER);
    let _ = socket.set_send_buffer_size(BUFFER);
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    Ok(socket.into())
}

/// A socket that exchanges datagrams with `target` only.
pub(super) fn connect(target: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match target.ip() {
        IpAddr::V4(ip) if ip.is_loopback() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(ip) if ip.is_loopback() => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = bind(SocketAddr::new(any, 0))?;
    socket.connect(target)?;
    Ok(socket)
}

/// Bytes of IP and UDP headers before a datagram that goes to `addr`.
pub(super) const fn header_bytes(addr: SocketAddr) -> u32 {
    match addr {
        SocketAddr::V4(_) => 20 + 8,
        SocketAddr::V6(_) => 40 + 8,
    }
}
