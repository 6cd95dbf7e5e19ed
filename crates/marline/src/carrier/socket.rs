use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpSocket;

use super::bind::{Bind, SocketHandle};
use super::socket_error::SocketError;
#[cfg(target_os = "linux")]
use crate::interfaces::Routes;
use crate::interfaces::{Selector, addresses};

/// How to open the socket of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketSpec {
    /// What it is bound to.
    pub bind: Bind,
    /// Its port; 0, the default, lets the system choose.
    pub port: u16,
    /// Kernel buffer to ask for in each direction (bytes), default 4 MiB. The system may grant
    /// less (`net.core.rmem_max`), which is no error.
    pub buffer: usize,
    /// Mark of what it sends (`SO_MARK`), by which a firewall or a routing rule knows it. Needs
    /// root or CAP_NET_ADMIN; Linux. Default none.
    pub mark: Option<u32>,
}

impl Default for SocketSpec {
    fn default() -> Self {
        Self {
            bind: Bind::Any,
            port: 0,
            buffer: 4 << 20,
            mark: None,
        }
    }
}

/// Where a path's packets leave this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Egress {
    /// The source address that the routing table picks.
    pub source: IpAddr,
    /// The number that the system gave the interface that the socket is bound to. A modem that was
    /// plugged in again has another one, and a socket bound to the old one sends nothing any more.
    pub device: Option<u32>,
}

/// A socket, and the source address that the routing table picks for it.
#[derive(Debug)]
pub(super) struct PathSocket {
    pub(super) socket: UdpSocket,
    pub(super) source: IpAddr,
}

impl SocketSpec {
    /// Checks that this host has the interface or the source address now.
    ///
    /// # Errors
    /// It has not, with a list of those that it has.
    pub fn check(&self) -> Result<(), SocketError> {
        let known = addresses();
        match &self.bind {
            Bind::Any | Bind::Network(_) => Ok(()),
            Bind::Matching(selector) => Err(none_fits(selector)),
            Bind::Interface(name) if known.iter().any(|(known, _)| known == name) => Ok(()),
            Bind::Interface(name) => {
                // An interface without any address is not in the list, but may be bound to.
                let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP));
                let socket = socket.map_err(|source| self.io(source))?;
                match bind_device(&socket, name)? {
                    true => Ok(()),
                    false => Err(bad_interface(name)),
                }
            }
            Bind::Address(ip) if known.iter().any(|(_, known)| known == ip) => Ok(()),
            // All of 127.0.0.0/8 is this host's, though only one of them is listed.
            Bind::Address(ip) if ip.is_loopback() => Ok(()),
            Bind::Address(ip) => Err(SocketError::NotLocal {
                address: *ip,
                known: known.into_iter().map(|(_, ip)| ip).collect(),
            }),
        }
    }

    /// Where the packets of a socket to `remote` would leave, were it opened now. As long as this
    /// stays the same, one that is open works as well as a new one.
    ///
    /// # Errors
    /// It could not be opened.
    pub fn egress(&self, remote: SocketAddr) -> Result<Egress, SocketError> {
        Ok(Egress {
            source: self.source(remote)?,
            device: self.device(remote),
        })
    }

    /// The number of the interface that a socket to `remote` would be bound to; `None` when there
    /// is no such interface, or sockets are not bound to one.
    pub fn device(&self, remote: SocketAddr) -> Option<u32> {
        match &self.bind {
            Bind::Interface(name) => device(name),
            Bind::Address(ip) => owner(*ip, remote).map(|(_, number)| number),
            Bind::Any | Bind::Matching(_) | Bind::Network(_) => None,
        }
    }

    /// Opens and binds a socket that can send to `remote`.
    pub(super) fn open(&self, remote: SocketAddr) -> Result<PathSocket, SocketError> {
        let socket = self.opened(Type::DGRAM, remote)?;
        set_buffers(&socket, self.buffer);
        let source = self.source(remote)?;
        let socket = socket.into();
        Ok(PathSocket { socket, source })
    }

    /// A UDP socket that sends to `remote` alone, and receives from there alone; for small
    /// messages.
    pub(crate) fn connected(&self, remote: SocketAddr) -> Result<UdpSocket, SocketError> {
        let (socket, _) = self.bound(Type::DGRAM, remote, self.port)?;
        socket
            .connect(&remote.into())
            .map_err(|source| self.no_route(remote, source))?;
        socket.set_nonblocking(true).map_err(|e| self.io(e))?;
        Ok(socket.into())
    }

    /// Opens and binds a TCP socket that can be connected to `remote`, with a congestion control.
    pub(crate) fn open_tcp(
        &self,
        remote: SocketAddr,
        congestion: Option<&str>,
    ) -> Result<TcpSocket, SocketError> {
        let socket = self.opened(Type::STREAM, remote)?;
        control_congestion(&socket, congestion)?;
        self.source(remote)?;
        socket.set_nonblocking(true).map_err(|e| self.io(e))?;
        Ok(TcpSocket::from_std_stream(socket.into()))
    }

    /// The source address that the routing table picks for `remote`.
    pub(super) fn source(&self, remote: SocketAddr) -> Result<IpAddr, SocketError> {
        // A UDP socket, bound alike and connected, asks the routing table without sending: no route
        // is an error now instead of silence until the time-out.
        let (probe, _) = self.bound(Type::DGRAM, remote, 0)?;
        let source = probe
            .connect(&remote.into())
            .and_then(|()| probe.local_addr())
            .map_err(|source| self.no_route(remote, source))?;
        Ok(source
            .as_socket()
            .map_or_else(|| unspecified(remote), |a| a.ip()))
    }

    fn no_route(&self, remote: SocketAddr, source: io::Error) -> SocketError {
        SocketError::NoRoute {
            remote,
            bind: self.bind.clone(),
            source,
        }
    }

    fn io(&self, source: io::Error) -> SocketError {
        SocketError::Io {
            bind: self.bind.clone(),
            source,
        }
    }

    fn opened(&self, kind: Type, remote: SocketAddr) -> Result<Socket, SocketError> {
        let (socket, fallback) = self.bound(kind, remote, self.port)?;
        if let (Some(ip), bind) = (fallback, &self.bind) {
            tracing::info!(
                "{bind}: binding to its address {ip}, since this system does not let this program \
                 bind to the interface itself"
            );
        }
        Ok(socket)
    }

    /// A bound socket, and the interface's address where that had to stand for the interface.
    fn bound(
        &self,
        kind: Type,
        remote: SocketAddr,
        port: u16,
    ) -> Result<(Socket, Option<IpAddr>), SocketError> {
        let socket = Socket::new(Domain::for_address(remote), kind, None);
        let socket = socket.map_err(|source| self.io(source))?;
        #[cfg(target_os = "linux")]
        if let Some(mark) = self.mark {
            socket.set_mark(mark).map_err(|source| self.io(source))?;
        }
        let mut fallback = None;
        let ip = match &self.bind {
            Bind::Any => unspecified(remote),
            Bind::Network(network) => {
                let bound = network.bind(handle(&socket));
                bound.map_err(|source| self.io(source))?;
                unspecified(remote)
            }
            Bind::Address(ip) if ip.is_ipv4() == remote.is_ipv4() => {
                // Where this is not allowed, the routing table decides.
                if let Some((name, _)) = owner(*ip, remote) {
                    bind_device(&socket, &name)?;
                }
                *ip
            }
            Bind::Address(ip) => {
                return Err(SocketError::Family {
                    source_ip: *ip,
                    remote,
                });
            }
            Bind::Matching(selector) => return Err(none_fits(selector)),
            Bind::Interface(name) => {
                if !bind_device(&socket, name)? {
                    fallback = Some(interface_address(name, remote)?);
                }
                fallback.unwrap_or_else(|| unspecified(remote))
            }
        };
        bind(&socket, SocketAddr::new(ip, port), &self.bind)?;
        Ok((socket, fallback))
    }
}

#[cfg(unix)]
fn handle(socket: &Socket) -> SocketHandle<'_> {
    std::os::fd::AsFd::as_fd(socket)
}

#[cfg(windows)]
fn handle(socket: &Socket) -> SocketHandle<'_> {
    std::os::windows::io::AsSocket::as_socket(socket)
}

/// Has the kernel use this congestion control for a TCP socket; without a name, the system's.
#[cfg(target_os = "linux")]
pub(super) fn control_congestion(socket: &Socket, name: Option<&str>) -> Result<(), SocketError> {
    let Some(name) = name else {
        return Ok(());
    };
    let set = socket.set_tcp_congestion(name.as_bytes());
    set.map_err(|source| SocketError::Congestion {
        name: name.to_owned(),
        known: congestion_controls(),
        source,
    })
}

/// Names of the congestion controls that this system's TCP has, as `tcp-cc` takes them; empty where
/// the system does not report it.
#[cfg(target_os = "linux")]
pub(super) fn congestion_controls() -> Vec<String> {
    let list = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let list = list.unwrap_or_default();
    list.split_whitespace().map(str::to_owned).collect()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn control_congestion(_: &Socket, name: Option<&str>) -> Result<(), SocketError> {
    match name {
        None => Ok(()),
        Some(name) => Err(SocketError::Congestion {
            name: name.to_owned(),
            known: Vec::new(),
            source: io::ErrorKind::Unsupported.into(),
        }),
    }
}

pub(super) fn bind(socket: &Socket, address: SocketAddr, shown: &Bind) -> Result<(), SocketError> {
    socket
        .bind(&address.into())
        .map_err(|source| match source.kind() {
            io::ErrorKind::AddrInUse => SocketError::Busy {
                protocol: match socket.r#type() {
                    Ok(Type::STREAM) => "TCP",
                    _ => "UDP",
                },
                address,
            },
            io::ErrorKind::AddrNotAvailable => SocketError::NotLocal {
                address: address.ip(),
                known: addresses().into_iter().map(|(_, ip)| ip).collect(),
            },
            _ => SocketError::Io {
                bind: shown.clone(),
                source,
            },
        })
}

const fn unspecified(like: SocketAddr) -> IpAddr {
    match like {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    }
}

/// Best effort: the system's limit may be lower, and a small buffer loses more under bursts.
pub(super) fn set_buffers(socket: &Socket, bytes: usize) {
    let result = socket
        .set_recv_buffer_size(bytes)
        .and_then(|()| socket.set_send_buffer_size(bytes));
    if let Err(error) = result {
        tracing::debug!("socket buffers of {bytes} bytes: {error}");
    }
}

/// Binds to the interface itself; false when this system or user cannot.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
fn bind_device(socket: &Socket, name: &str) -> Result<bool, SocketError> {
    let Err(source) = socket.bind_device(Some(name.as_bytes())) else {
        return Ok(true);
    };
    match source.kind() {
        io::ErrorKind::PermissionDenied => Ok(false),
        // ENODEV, which has no kind of its own, and names too long for an interface.
        _ if !addresses().iter().any(|(known, _)| known == name) => Err(bad_interface(name)),
        _ => Err(SocketError::Io {
            bind: Bind::Interface(name.to_owned()),
            source,
        }),
    }
}

#[cfg(not(any(target_os = "android", target_os = "fuchsia", target_os = "linux")))]
fn bind_device(_: &Socket, _: &str) -> Result<bool, SocketError> {
    Ok(false)
}

/// An address of the interface in the family of `remote`, a routable one if it has any.
fn interface_address(name: &str, remote: SocketAddr) -> Result<IpAddr, SocketError> {
    let all = addresses();
    if !all.iter().any(|(known, _)| known == name) {
        return Err(bad_interface(name));
    }
    all.into_iter()
        .filter(|(known, ip)| known == name && ip.is_ipv4() == remote.is_ipv4())
        .map(|(_, ip)| ip)
        .min_by_key(|ip| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local()))
        .ok_or_else(|| SocketError::NoAddress {
            name: name.to_owned(),
            remote,
        })
}

/// The interface that has this address, by name and number, if a route leads to `remote` from
/// there. A source address alone does not choose a route: with one default route two paths would
/// leave by the same link.
fn owner(ip: IpAddr, remote: SocketAddr) -> Option<(String, u32)> {
    let mut owners = addresses().into_iter().filter(|(_, known)| *known == ip);
    let (name, _) = owners.next()?;
    if owners.next().is_some() || remote.ip().is_loopback() {
        return None;
    }
    let number = device(&name)?;
    leads_there(number, remote.ip()).then_some((name, number))
}

/// Does a route lead to `remote` by the interface of this number? Not where the system does not
/// say.
#[cfg(target_os = "linux")]
fn leads_there(device: u32, remote: IpAddr) -> bool {
    let route = Routes::open().and_then(|mut routes| routes.to(remote, Some(device)));
    route.is_ok_and(|found| found.is_some())
}

#[cfg(not(target_os = "linux"))]
fn leads_there(_: u32, _: IpAddr) -> bool {
    false
}

/// Is this an address of this host now?
pub(crate) fn is_local(address: IpAddr) -> bool {
    addresses().iter().any(|(_, known)| *known == address)
}

/// The number of an interface; `None` where there is none of that name, or the system has no
/// numbers.
#[cfg(target_os = "linux")]
pub(crate) fn device(name: &str) -> Option<u32> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).ok()?;
    rustix::net::netdevice::name_to_index(&socket, name).ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn device(_: &str) -> Option<u32> {
    None
}

fn bad_interface(name: &str) -> SocketError {
    SocketError::BadInterface {
        name: name.to_owned(),
        known: names(),
    }
}

fn none_fits(selector: &Selector) -> SocketError {
    SocketError::NoneFits {
        selector: Box::new(selector.clone()),
        known: names(),
    }
}

/// The names of the interfaces that have an address, in order.
fn names() -> Vec<String> {
    let names: BTreeSet<_> = addresses().into_iter().map(|(name, _)| name).collect();
    names.into_iter().collect()
}

/// The names of the interfaces from which others than this link's hosts can be reached.
pub(crate) fn routable() -> BTreeSet<String> {
    let routable = |ip: &IpAddr| match ip {
        IpAddr::V4(ip) => !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    };
    let all = addresses().into_iter();
    all.filter(|(_, ip)| routable(ip))
        .map(|(name, _)| name)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::carrier::Network;

    const REMOTE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9);

    fn spec(bind: Bind) -> SocketSpec {
        SocketSpec {
            bind,
            ..SocketSpec::default()
        }
    }

    /// The loopback interface, whatever it is called here.
    fn loopback() -> String {
        let all = addresses();
        all.into_iter()
            .find(|(_, ip)| *ip == IpAddr::V4(Ipv4Addr::LOCALHOST))
            .expect("this host has a loopback interface")
            .0
    }

    #[test]
    fn a_socket_is_bound_as_told() {
        for bind in [
            Bind::Any,
            Bind::Address(Ipv4Addr::LOCALHOST.into()),
            Bind::Interface(loopback()),
        ] {
            let path = spec(bind).open(REMOTE).unwrap();
            assert_eq!(path.source, IpAddr::V4(Ipv4Addr::LOCALHOST));
            assert_ne!(path.socket.local_addr().unwrap().port(), 0);
        }
    }

    #[test]
    fn an_application_binds_the_sockets_of_its_networks() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicUsize, Ordering};

        let bound = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&bound);
        let network = Network::new("wifi", move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let path = spec(Bind::Network(network)).open(REMOTE).unwrap();
        assert_eq!(path.source, IpAddr::V4(Ipv4Addr::LOCALHOST));
        // The socket, and the one that asks for its route.
        assert_eq!(bound.load(Ordering::Relaxed), 2);
        let gone = Network::new("gone", |_| Err(io::ErrorKind::NetworkUnreachable.into()));
        let error = spec(Bind::Network(gone)).open(REMOTE).unwrap_err();
        assert!(error.to_string().contains("network gone"), "{error}");
    }

    #[test]
    fn the_fallback_finds_the_address_of_the_interface() {
        assert_eq!(
            interface_address(&loopback(), REMOTE).unwrap(),
            IpAddr::V4(Ipv4Addr::LOCALHOST)
        );
        assert!(matches!(
            interface_address("no-such-if", REMOTE),
            Err(SocketError::BadInterface { .. })
        ));
    }

    #[test]
    fn an_unknown_interface_is_answered_with_those_that_exist() {
        let name = "no-such-if".to_owned();
        let error = spec(Bind::Interface(name)).open(REMOTE).unwrap_err();
        let SocketError::BadInterface { known, .. } = &error else {
            panic!("{error}");
        };
        assert!(known.contains(&loopback()), "{error}");
    }

    #[test]
    fn foreign_addresses_and_other_families_are_told_apart() {
        let documentation = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
        assert!(matches!(
            spec(Bind::Address(documentation)).open(REMOTE),
            Err(SocketError::NotLocal { address, known })
                if address == documentation && known.contains(&REMOTE.ip())
        ));
        assert!(matches!(
            spec(Bind::Address(Ipv6Addr::LOCALHOST.into())).open(REMOTE),
            Err(SocketError::Family { .. })
        ));
    }
}
