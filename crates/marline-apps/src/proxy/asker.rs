//! A UDP socket whose answers leave from the address that was asked. On a wildcard address the
//! system would choose one by the route back, and a program that asked another one, or a firewall
//! on the way, drops what comes from there.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::net::UdpSocket;

/// Who asked, and at which of this host's addresses; that is `None` where the socket has only one,
/// or the system does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Asker {
    pub(crate) peer: SocketAddr,
    at: Option<IpAddr>,
}

impl From<SocketAddr> for Asker {
    fn from(peer: SocketAddr) -> Self {
        Self { peer, at: None }
    }
}

/// The socket. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct AskedSocket {
    socket: Arc<UdpSocket>,
    /// The system says at which address a datagram came in.
    says: bool,
}

impl AskedSocket {
    pub(crate) fn new(socket: UdpSocket) -> Self {
        let is_wildcard = |address: SocketAddr| address.ip().is_unspecified();
        let wildcard = socket.local_addr().is_ok_and(is_wildcard);
        let says = wildcard
            && system::report(&socket)
                .inspect_err(|error| {
                    tracing::warn!(
                        "answers leave by the route back, not from the address that was asked: {error}"
                    );
                })
                .is_ok();
        Self {
            socket: Arc::new(socket),
            says,
        }
    }

    /// Waits for a datagram. Cancel safe.
    ///
    /// # Errors
    /// Mostly an ICMP error about an answer; others may come.
    pub(crate) async fn recv(&self, buffer: &mut [u8]) -> io::Result<(usize, Asker)> {
        if self.says {
            return system::recv(&self.socket, buffer).await;
        }
        let (length, peer) = self.socket.recv_from(buffer).await?;
        Ok((length, peer.into()))
    }

    /// Sends an answer.
    ///
    /// # Errors
    /// The system does not send it.
    pub(crate) async fn answer(&self, datagram: &[u8], to: Asker) -> io::Result<()> {
        match to.at {
            Some(from) => system::send(&self.socket, datagram, to.peer, from).await,
            None => self.socket.send_to(datagram, to.peer).await.map(drop),
        }
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::io::{self, IoSlice, IoSliceMut};
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};
    use std::os::fd::AsRawFd;

    use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
    use nix::sys::socket::{
        ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg,
        setsockopt, sockopt,
    };
    use tokio::io::Interest;
    use tokio::net::UdpSocket;

    use super::Asker;

    /// Has the system say at which address a datagram came in.
    pub(super) fn report(socket: &UdpSocket) -> io::Result<()> {
        match socket.local_addr()? {
            SocketAddr::V4(_) => setsockopt(socket, sockopt::Ipv4PacketInfo, &true)?,
            SocketAddr::V6(_) => setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true)?,
        }
        Ok(())
    }

    pub(super) async fn recv(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, Asker)> {
        let read = || {
            let mut control = nix::cmsg_space!(in6_pktinfo, in_pktinfo);
            let mut parts = [IoSliceMut::new(buffer)];
            let message = recvmsg::<SockaddrStorage>(
                socket.as_raw_fd(),
                &mut parts,
                Some(&mut control),
                MsgFlags::empty(),
            )?;
            let odd = || io::Error::from(io::ErrorKind::InvalidData);
            let peer = message.address.as_ref().and_then(peer).ok_or_else(odd)?;
            let at = message.cmsgs()?.find_map(|control| match control {
                // As it was in the packet: what was sent to all is answered by the route back.
                ControlMessageOwned::Ipv4PacketInfo(info) => {
                    let asked = Ipv4Addr::from_bits(u32::from_be(info.ipi_addr.s_addr));
                    let own = Ipv4Addr::from_bits(u32::from_be(info.ipi_spec_dst.s_addr));
                    (asked == own).then_some(IpAddr::V4(own))
                }
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    let asked = std::net::Ipv6Addr::from(info.ipi6_addr.s6_addr);
                    (!asked.is_multicast()).then_some(IpAddr::V6(asked))
                }
                _ => None,
            });
            Ok((message.bytes, Asker { peer, at }))
        };
        socket.async_io(Interest::READABLE, read).await
    }

    pub(super) async fn send(
        socket: &UdpSocket,
        datagram: &[u8],
        peer: SocketAddr,
        from: IpAddr,
    ) -> io::Result<()> {
        let write = || {
            let parts = [IoSlice::new(datagram)];
            let to = SockaddrStorage::from(peer);
            let (fd, none) = (socket.as_raw_fd(), MsgFlags::empty());
            match from {
                IpAddr::V4(from) => {
                    let info = in_pktinfo {
                        ipi_ifindex: 0,
                        ipi_spec_dst: in_addr {
                            s_addr: from.to_bits().to_be(),
                        },
                        ipi_addr: in_addr { s_addr: 0 },
                    };
                    sendmsg(
                        fd,
                        &parts,
                        &[ControlMessage::Ipv4PacketInfo(&info)],
                        none,
                        Some(&to),
                    )
                }
                IpAddr::V6(from) => {
                    let info = in6_pktinfo {
                        ipi6_addr: in6_addr {
                            s6_addr: from.octets(),
                        },
                        ipi6_ifindex: 0,
                    };
                    sendmsg(
                        fd,
                        &parts,
                        &[ControlMessage::Ipv6PacketInfo(&info)],
                        none,
                        Some(&to),
                    )
                }
            }?;
            Ok(())
        };
        socket.async_io(Interest::WRITABLE, write).await
    }

    fn peer(address: &SockaddrStorage) -> Option<SocketAddr> {
        let v4 = address
            .as_sockaddr_in()
            .map(|v4| SocketAddr::V4((*v4).into()));
        v4.or_else(|| {
            address
                .as_sockaddr_in6()
                .map(|v6| SocketAddr::V6((*v6).into()))
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;
    use std::net::{IpAddr, SocketAddr};

    use tokio::net::UdpSocket;

    use super::Asker;

    pub(super) fn report(_: &UdpSocket) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) async fn recv(_: &UdpSocket, _: &mut [u8]) -> io::Result<(usize, Asker)> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) async fn send(
        socket: &UdpSocket,
        datagram: &[u8],
        peer: SocketAddr,
        _: IpAddr,
    ) -> io::Result<()> {
        socket.send_to(datagram, peer).await.map(drop)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// What a program hears that asks `asked` behind `listen`, and from where.
    async fn answered(listen: &str, asked: &str) -> SocketAddr {
        let socket = AskedSocket::new(UdpSocket::bind(listen).await.unwrap());
        let port = socket.socket.local_addr().unwrap().port();
        let any = match asked.parse::<IpAddr>().unwrap() {
            IpAddr::V4(_) => "0.0.0.0:0",
            IpAddr::V6(_) => "[::]:0",
        };
        let program = UdpSocket::bind(any).await.unwrap();
        let to = SocketAddr::new(asked.parse().unwrap(), port);
        program.send_to(b"question", to).await.unwrap();
        let mut buffer = [0; 64];
        let (length, asker) = socket.recv(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"question");
        socket.answer(b"answer", asker).await.unwrap();
        let (length, from) = program.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"answer");
        from
    }

    #[tokio::test]
    async fn answers_come_from_the_address_that_was_asked() {
        // All of 127.0.0.0/8 is this host's, and the route back would have it be 127.0.0.1.
        for (listen, asked) in [
            ("0.0.0.0:0", "127.0.0.9"),
            ("127.0.0.7:0", "127.0.0.7"),
            ("[::]:0", "127.0.0.9"),
        ] {
            let from = answered(listen, asked).await.ip();
            assert_eq!(from.to_string(), asked, "{listen}");
        }
        if UdpSocket::bind("[::1]:0").await.is_ok() {
            assert!(answered("[::]:0", "::1").await.ip().is_loopback());
        }
    }
}
