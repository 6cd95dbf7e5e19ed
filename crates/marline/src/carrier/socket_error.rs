use std::io;
use std::net::{IpAddr, SocketAddr};

use super::bind::Bind;
use crate::interfaces::Selector;

/// Why a socket could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// There is no interface of this name.
    #[error("there is no network interface `{name}`; there are {}", known.join(", "))]
    BadInterface {
        /// The name asked for.
        name: String,
        /// The names of the interfaces that have an address.
        known: Vec<String>,
    },
    /// No interface fits, or those that do have no address yet or are other paths'.
    #[error("no free network interface with an address fits `{selector}`; there are {}", known.join(", "))]
    NoneFits {
        /// What was asked for.
        selector: Box<Selector>,
        /// The names of the interfaces that have an address.
        known: Vec<String>,
    },
    /// The interface has no address of the family that the remote address needs.
    #[error(
        "interface `{name}` has no {} address to reach {remote} from",
        if remote.is_ipv4() { "IPv4" } else { "IPv6" }
    )]
    NoAddress {
        /// The interface.
        name: String,
        /// Where the path leads.
        remote: SocketAddr,
    },
    /// The address is none of this host's.
    #[error("{address} is no address of this host; it has {}", join(known))]
    NotLocal {
        /// The address asked for.
        address: IpAddr,
        /// The addresses that there are.
        known: Vec<IpAddr>,
    },
    /// Source and remote address are of different families.
    #[error("source address {source_ip} cannot reach {remote}: one is IPv4, the other IPv6")]
    Family {
        /// The address asked for.
        source_ip: IpAddr,
        /// Where the path leads.
        remote: SocketAddr,
    },
    /// The port is taken.
    #[error(
        "{protocol} {address} is in use by another program; choose another port or stop that one"
    )]
    Busy {
        /// `UDP` or `TCP`.
        protocol: &'static str,
        /// The address asked for.
        address: SocketAddr,
    },
    /// The system knows no way to the remote address.
    #[error("there is no route to {remote} by {bind}: {source}")]
    NoRoute {
        /// Where the path leads.
        remote: SocketAddr,
        /// What the socket is bound to.
        bind: Bind,
        /// What the operating system says.
        source: io::Error,
    },
    /// The system's TCP has no such congestion control, or this user may not choose it.
    #[error(
        "no TCP congestion control `{name}` can be had: {source}; {}",
        controls(known)
    )]
    Congestion {
        /// The name asked for.
        name: String,
        /// Those that the system has, as far as it reports them.
        known: Vec<String>,
        /// What the operating system says.
        source: io::Error,
    },
    /// The carrier shares its socket with others, as a server's do, or is a TCP connection.
    #[error("only a QUIC carrier that was dialled has a socket of its own to be rebound")]
    Shared,
    /// Anything else.
    #[error("socket on {bind}: {source}")]
    Io {
        /// What the socket is bound to.
        bind: Bind,
        /// What the operating system says.
        source: io::Error,
    },
}

fn join(addresses: &[IpAddr]) -> String {
    let texts: Vec<_> = addresses.iter().map(IpAddr::to_string).collect();
    texts.join(", ")
}

fn controls(known: &[String]) -> String {
    match known {
        [] => "see net.ipv4.tcp_available_congestion_control".to_owned(),
        known => format!("there are {}", known.join(", ")),
    }
}
