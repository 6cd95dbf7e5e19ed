use super::Direction;
use super::device::Device;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// What packets come out of. It is read without holding the relay up.
#[derive(Clone, Debug)]
pub(super) enum Port {
    /// Where all clients send to.
    Listen(Arc<UdpSocket>),
    /// The socket of this client, at which the target answers.
    Upstream(SocketAddr, Arc<UdpSocket>),
    /// What comes out of it travels in this direction.
    Device(Direction, Arc<Device>),
}

/// Who sent a packet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    /// A client.
    Client(SocketAddr),
    /// The target, to this client.
    Target(SocketAddr),
    /// The kernel, in this direction.
    Kernel(Direction),
}

impl Port {
    /// Takes a packet, and never waits for one; returns its length.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Origin)> {
        match self {
            Port::Listen(socket) => {
                let (length, from) = socket.recv_from(buffer)?;
                Ok((length, Origin::Client(from)))
            }
            Port::Upstream(client, socket) => {
                let length = socket.recv(buffer)?;
                Ok((length, Origin::Target(*client)))
            }
            Port::Device(direction, device) => {
                let length = device.receive(buffer)?;
                Ok((length, Origin::Kernel(*direction)))
            }
        }
    }

    /// Whether nothing can come any more after this error. Sockets live on: what they report is the
    /// target's refusal of an earlier datagram (ICMP), and a link does not care who listens behind
    /// it. Devices can be taken away.
    pub(super) fn is_gone(&self, error: &io::Error) -> bool {
        let passing = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
        matches!(self, Port::Device(..)) && !passing
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Port::Listen(socket) | Port::Upstream(_, socket) => socket.as_fd(),
            Port::Device(_, device) => device.as_fd(),
        }
    }
}
