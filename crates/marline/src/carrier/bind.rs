use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

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
    /// A network that the application binds sockets to itself.
    Network(Network),
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any interface"),
            Self::Interface(name) => write!(f, "interface {name}"),
            Self::Matching(selector) => write!(f, "an interface that fits {selector}"),
            Self::Address(ip) => write!(f, "source address {ip}"),
            Self::Network(network) => write!(f, "network {}", network.name()),
        }
    }
}

/// A socket that is lent to the application.
#[cfg(unix)]
pub type SocketHandle<'a> = std::os::fd::BorrowedFd<'a>;
/// A socket that is lent to the application.
#[cfg(windows)]
pub type SocketHandle<'a> = std::os::windows::io::BorrowedSocket<'a>;

/// A network that the application binds sockets to, where the system has no interfaces to name: on
/// Android, `android_setsocknetwork` with the network that a `NetworkRequest` gave.
///
/// Networks of one name are the same.
///
/// ```
/// use marline::carrier::Network;
///
/// let wifi = Network::new("wifi", |_socket| Ok(()));
/// let path = marline::Path::network(wifi);
/// assert_eq!(path.local.to_string(), "network wifi");
/// ```
#[derive(Clone)]
pub struct Network {
    name: Arc<str>,
    bind: Arc<Binding>,
}

type Binding = dyn Fn(SocketHandle<'_>) -> io::Result<()> + Send + Sync;

impl Network {
    /// A network of this name. `bind` is called for each socket before it has an address, also for
    /// those that only ask the routing table; its error is the path's.
    pub fn new(
        name: impl Into<Arc<str>>,
        bind: impl Fn(SocketHandle<'_>) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            bind: Arc::new(bind),
        }
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn bind(&self, socket: SocketHandle<'_>) -> io::Result<()> {
        (self.bind)(socket)
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Network").field(&self.name).finish()
    }
}

impl PartialEq for Network {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Network {}

impl PartialOrd for Network {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Network {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(&other.name)
    }
}

impl Hash for Network {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
