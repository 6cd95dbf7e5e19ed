use std::fmt;
use std::net::IpAddr;

use crate::interfaces::Selector;

/// What a path's socket is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bind {
    /// Nothing: the routing table decides.
    #[default]
    Any,
    /// A network interface by its name, whatever addresses it has or gets.
    Interface(String),
    /// Each network interface that fits. A client makes a path for each; no socket can be bound to
    /// all of them.
    Matching(Box<Selector>),
    /// A source address. Packets leave by the interface that has it if a route leads to the server
    /// from there, whatever other routes the routing table prefers; else as the table says, which
    /// may be by another path's interface.
    Address(IpAddr),
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any interface"),
            Self::Interface(name) => write!(f, "interface {name}"),
            Self::Matching(selector) => write!(f, "an interface that fits {selector}"),
            Self::Address(ip) => write!(f, "source address {ip}"),
        }
    }
}
