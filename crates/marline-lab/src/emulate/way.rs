use super::Direction;
use super::device::Device;
use super::socket;
use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

/// Where a packet goes when it has passed the link.
#[derive(Clone, Debug)]
pub(super) enum Way {
    /// To the target, by a client's socket.
    Up(Arc<UdpSocket>, SocketAddr),
    /// To a client, by the socket that listens.
    Down(Arc<UdpSocket>, SocketAddr),
    /// Into the device at the end of this direction.
    Device(Direction, Arc<Device>),
}

impl Way {
    pub(super) const fn direction(&self) -> Direction {
        match self {
            Way::Up(..) => Direction::Up,
            Way::Down(..) => Direction::Down,
            Way::Device(direction, _) => *direction,
        }
    }

    /// Bytes that a packet has on the link beside those that are handed over here: packets of
    /// devices are whole.
    pub(super) const fn header_bytes(&self) -> u32 {
        match self {
            Way::Up(_, to) | Way::Down(_, to) => socket::header_bytes(*to),
            Way::Device(..) => 0,
        }
    }

    pub(super) fn send(&self, packet: &[u8]) -> io::Result<usize> {
        match self {
            Way::Up(socket, _) => socket.send(packet),
            Way::Down(socket, client) => socket.send_to(packet, client),
            Way::Device(_, device) => device.send(packet),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Up(_, to) | Way::Down(_, to) => to.fmt(f),
            Way::Device(_, device) => f.pad(device.name()),
        }
    }
}
