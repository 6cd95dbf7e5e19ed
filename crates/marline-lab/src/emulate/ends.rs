use super::Direction;
use super::clients::{Clients, NoUpstream};
use super::device::Device;
use super::port::{Origin, Port};
use super::way::Way;
use marline_base::Instant;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

/// What lies at the two ends of a link.
#[derive(Debug)]
pub(super) enum Ends {
    /// A socket for clients, and sockets of theirs to the target.
    Udp {
        listen: Arc<UdpSocket>,
        clients: Clients,
    },
    /// Two devices: what comes out of the first goes up.
    Devices([Arc<Device>; 2]),
}

/// Why a packet has no way.
#[derive(Debug)]
pub(super) struct NoWay {
    pub(super) from: SocketAddr,
    pub(super) target: SocketAddr,
    pub(super) why: NoUpstream,
}

impl Ends {
    /// Where a packet goes that came at `now`.
    pub(super) fn way(&mut self, origin: Origin, now: Instant) -> Result<Way, NoWay> {
        match (self, origin) {
            (Ends::Udp { clients, .. }, Origin::Client(from)) => {
                let target = clients.target();
                match clients.upstream(from, now) {
                    Ok(upstream) => Ok(Way::Up(upstream, target)),
                    Err(why) => Err(NoWay { from, target, why }),
                }
            }
            (Ends::Udp { listen, clients }, Origin::Target(client)) => {
                clients.answered(client, now);
                Ok(Way::Down(Arc::clone(listen), client))
            }
            (Ends::Devices([near, far]), Origin::Kernel(direction)) => {
                let into = match direction {
                    Direction::Up => far,
                    Direction::Down => near,
                };
                Ok(Way::Device(direction, Arc::clone(into)))
            }
            (ends, origin) => unreachable!("{origin:?} is not behind {ends:?}"),
        }
    }

    /// What packets come out of.
    pub(super) fn ports(&self) -> Vec<Port> {
        match self {
            Ends::Udp { listen, clients } => {
                let upstreams = clients.sockets().into_iter();
                let upstreams = upstreams.map(|(client, socket)| Port::Upstream(client, socket));
                let listen = Port::Listen(Arc::clone(listen));
                std::iter::once(listen).chain(upstreams).collect()
            }
            Ends::Devices([near, far]) => vec![
                Port::Device(Direction::Up, Arc::clone(near)),
                Port::Device(Direction::Down, Arc::clone(far)),
            ],
        }
    }

    /// Changes with every change of [`ports`](Self::ports).
    pub(super) fn generation(&self) -> u64 {
        self.clients().map_or(0, Clients::generation)
    }

    pub(super) fn clients(&self) -> Option<&Clients> {
        match self {
            Ends::Udp { clients, .. } => Some(clients),
            Ends::Devices(_) => None,
        }
    }

    pub(super) fn clients_mut(&mut self) -> Option<&mut Clients> {
        match self {
            Ends::Udp { clients, .. } => Some(clients),
            Ends::Devices(_) => None,
        }
    }
}
