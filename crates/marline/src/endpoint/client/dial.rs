//! One path's way to the server: look names up, and let all addresses race.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::error::{FailureKind, PathFailure};
use super::nat64::{self, Prefix};
use super::{ClientOptions, Shared};
use crate::Path;
use crate::carrier::{Bind, Dial, DialError, Dialled, Egress, SocketSpec, device};
use crate::identity::{Host, HostPort};
use crate::interfaces::addresses;

/// Head start of an address over the next one (RFC 8305 section 5 recommends 250 ms).
const HEAD_START: Duration = Duration::from_millis(250);
/// Most addresses that are tried.
const MAX_ADDRESSES: usize = 16;
/// How long a connection may take to come up.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Public addresses that stand for those of a server whose name was never found. Nothing is sent
/// there: the routing table is asked.
const ANYWHERE: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(1, 0, 0, 1)), 9),
    SocketAddr::new(
        IpAddr::V6(Ipv6Addr::new(0x2606, 0x4700, 0, 0, 0, 0, 0, 1)),
        9,
    ),
];

/// The socket of a path.
pub(super) fn socket(spec: &Path) -> SocketSpec {
    SocketSpec {
        bind: spec.local.clone(),
        ..SocketSpec::default()
    }
}

/// The same, as what is sent has to be marked.
fn marked(spec: &Path, options: &ClientOptions) -> SocketSpec {
    SocketSpec {
        mark: options.mark,
        ..socket(spec)
    }
}

/// Connects by the first address that answers. What the server's names stood for last is dialled
/// at once, what they stand for now beside it as soon as that is known. `favourite` is the address
/// that answered last time.
///
/// # Errors
/// When none does: the failure that says most.
pub(super) async fn dial(
    shared: Arc<Shared>,
    spec: Path,
    favourite: Option<SocketAddr>,
) -> Result<(Dialled, SocketAddr), PathFailure> {
    let client = shared.options.identity.public_key();
    if let Err(error) = socket(&spec).check() {
        return Err(PathFailure::of(&error.into(), client));
    }
    let mut race = Race {
        shared: &shared,
        spec: &spec,
        favourite,
        dials: JoinSet::new(),
        dialled: Vec::new(),
    };
    race.join(known(&shared, &spec));
    let mut resolving = pin!(resolve(&shared, &spec));
    // Those that the names stand for now, once that is known.
    let mut current: Option<Vec<SocketAddr>> = None;
    let mut failures = Vec::new();
    loop {
        tokio::select! {
            Some(done) = race.dials.join_next() => match done {
                Ok((remote, Ok(dialled))) => return Ok((dialled, remote)),
                Ok((remote, Err(error))) => {
                    failures.push((Some(remote), PathFailure::of(&error, client)));
                }
                Err(error) => failures.push((None, PathFailure::passing(error.to_string()))),
            },
            found = &mut resolving, if current.is_none() => {
                let found = found.unwrap_or_else(|failure| {
                    failures.push((None, failure));
                    Vec::new()
                });
                race.join(found.clone());
                current = Some(found);
            }
            else => break,
        }
    }
    let current = current.unwrap_or_default();
    let failures = failures.into_iter().map(|(remote, failure)| {
        let is_current = remote.is_none_or(|remote| current.contains(&remote));
        if is_current {
            failure
        } else {
            outdated(failure)
        }
    });
    // Of those that say as much, the first.
    let worst = failures.reduce(|worst, next| match worst.kind < next.kind {
        true => next,
        false => worst,
    });
    Err(worst.unwrap_or_else(|| PathFailure::passing("the server has no address".into())))
}

/// A failure at an address that a name stood for once: another host may have it now, which says
/// nothing of the server.
fn outdated(failure: PathFailure) -> PathFailure {
    match failure.kind {
        FailureKind::WrongServer | FailureKind::Configuration => {
            PathFailure::passing(failure.message)
        }
        _ => failure,
    }
}

/// Addresses of the server that are dialled at once.
struct Race<'a> {
    shared: &'a Shared,
    spec: &'a Path,
    favourite: Option<SocketAddr>,
    dials: JoinSet<(SocketAddr, Result<Dialled, DialError>)>,
    dialled: Vec<SocketAddr>,
}

impl Race<'_> {
    /// Dials those of these addresses that are not dialled yet, one soon after the other.
    fn join(&mut self, mut addresses: Vec<SocketAddr>) {
        addresses.retain(|address| !self.dialled.contains(address));
        // Stable: the others keep their order.
        addresses.sort_by_key(|address| Some(*address) != self.favourite);
        let options = &self.shared.options;
        for (index, remote) in addresses.into_iter().enumerate() {
            self.dialled.push(remote);
            let dial = Dial {
                socket: marked(self.spec, &self.shared.options),
                quic: options.quic.clone(),
                carrier: self.spec.carrier,
                tcp_congestion: self.spec.tcp_cc.clone(),
                outcomes: self.shared.outcomes.clone(),
                timeout: TIMEOUT,
                ..Dial::new(remote, options.server)
            };
            let identity = options.identity.clone();
            self.dials.spawn(async move {
                sleep(HEAD_START * index as u32).await;
                (remote, dial.connect(&identity).await)
            });
        }
    }
}

/// Where the server is for this path.
fn hosts<'a>(options: &'a ClientOptions, spec: &'a Path) -> &'a [HostPort] {
    match &spec.server {
        Some(host) => std::slice::from_ref(host),
        None => &options.addresses,
    }
}

/// Where the path's packets would leave this host, for each address of the server to which there
/// could be a socket. Nothing is looked up or sent.
pub(super) fn egresses(shared: &Shared, spec: &Path) -> Vec<Option<Egress>> {
    let mut remotes: Vec<SocketAddr> = Vec::new();
    for host in hosts(&shared.options, spec) {
        let ips = match &host.host {
            Host::Ip(ip) => vec![*ip],
            Host::Name(name) => shared.lookups.known(name, &spec.local),
        };
        remotes.extend(ips.into_iter().map(|ip| SocketAddr::new(ip, host.port)));
    }
    if remotes.is_empty() {
        remotes.extend(ANYWHERE);
    }
    remotes.truncate(MAX_ADDRESSES);
    let socket = socket(spec);
    let egresses = remotes.into_iter().map(|remote| socket.egress(remote));
    egresses.map(Result::ok).collect()
}

/// Can this path reach IPv4 addresses such as `remote` by itself?
fn has_ipv4(local: &Bind, remote: SocketAddr) -> bool {
    match local {
        Bind::Interface(name) => addresses()
            .iter()
            .any(|(known, ip)| known == name && ip.is_ipv4()),
        Bind::Address(ip) => ip.is_ipv4(),
        Bind::Any | Bind::Matching(_) | Bind::Network(_) => {
            let socket = SocketSpec {
                bind: local.clone(),
                ..SocketSpec::default()
            };
            socket.egress(remote).is_ok()
        }
    }
}

/// The prefix of the network's translator, by the addresses that [`nat64::NAME`] was found to have.
fn prefix(known: Vec<IpAddr>) -> Option<Prefix> {
    let mut prefixes = known.into_iter().filter_map(|ip| match ip {
        IpAddr::V6(ip) => Prefix::of(ip),
        IpAddr::V4(_) => None,
    });
    prefixes.next()
}

/// IPv4 addresses as the network's translator reaches them.
fn translated(found: &[SocketAddr], prefix: Prefix) -> Vec<SocketAddr> {
    let embed = |address: &SocketAddr| match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(prefix.embed(ip).into(), address.port()),
        IpAddr::V6(_) => *address,
    };
    found.iter().map(embed).collect()
}

/// The network's translator: as a router announces it (RFC 8781 section 5.1 has that win), or as
/// the resolver shows it.
async fn translator(shared: &Shared, spec: &Path, socket: &SocketSpec) -> Option<Prefix> {
    tokio::select! {
        biased;
        announced = shared.translators.comes(number(&spec.local)) => Some(announced.into()),
        asked = shared.lookups.find(nat64::NAME, socket) => {
            let known = || shared.lookups.known(nat64::NAME, &spec.local);
            prefix(asked.unwrap_or_else(|_| known()))
        }
    }
}

/// No interface has this number (netdevice(7)).
const NO_INTERFACE: u32 = 0;

/// The number of the interface that a path is bound to; `None` where it is bound to none.
fn number(local: &Bind) -> Option<u32> {
    let name = match local {
        Bind::Interface(name) => name.clone(),
        Bind::Address(ip) => {
            let own = addresses().into_iter().find(|(_, own)| own == ip);
            own.map(|(name, _)| name)?
        }
        Bind::Any | Bind::Matching(_) => return None,
        // Only the application knows which interface is that network's.
        Bind::Network(_) => return Some(NO_INTERFACE),
    };
    // Nothing was announced by one that is gone.
    Some(device(&name).unwrap_or(NO_INTERFACE))
}

/// Does this path need a translator to reach these addresses?
fn needs_translator(spec: &Path, found: &[SocketAddr]) -> bool {
    let first = found.first().copied();
    found.iter().all(SocketAddr::is_ipv4) && first.is_some_and(|it| !has_ipv4(&spec.local, it))
}

/// Can a socket of this path lead to this address, as far as their families go?
fn fits(spec: &Path, address: &SocketAddr) -> bool {
    match spec.local {
        Bind::Address(source) => address.is_ipv4() == source.is_ipv4(),
        Bind::Any | Bind::Interface(_) | Bind::Matching(_) | Bind::Network(_) => true,
    }
}

/// Each address once, and no more than are tried.
fn bounded(found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) && addresses.len() < MAX_ADDRESSES {
            addresses.push(address);
        }
    }
    addresses
}

/// All addresses of the server to which this path can lead, names as they were found last. Nothing
/// is looked up.
fn known(shared: &Shared, spec: &Path) -> Vec<SocketAddr> {
    let of = |host: &HostPort| {
        let ips = match &host.host {
            Host::Ip(ip) => vec![*ip],
            Host::Name(name) => shared.lookups.known(name, &spec.local),
        };
        let port = host.port;
        ips.into_iter().map(move |ip| SocketAddr::new(ip, port))
    };
    let mut found: Vec<SocketAddr> = hosts(&shared.options, spec).iter().flat_map(of).collect();
    if needs_translator(spec, &found) {
        let announced = shared.translators.of(number(&spec.local)).map(Prefix::from);
        let asked = || prefix(shared.lookups.known(nat64::NAME, &spec.local));
        found = match announced.or_else(asked) {
            Some(prefix) => translated(&found, prefix),
            None => Vec::new(),
        };
    }
    // What does not fit is tried, and says why, when names have been looked up.
    found.retain(|address| fits(spec, address));
    bounded(found)
}

/// All addresses of the server that this path can lead to, names looked up now.
async fn resolve(shared: &Shared, spec: &Path) -> Result<Vec<SocketAddr>, PathFailure> {
    let mut found: Vec<SocketAddr> = Vec::new();
    let mut failure = None;
    let socket = marked(spec, &shared.options);
    for host in hosts(&shared.options, spec) {
        match &host.host {
            Host::Ip(ip) => found.push((*ip, host.port).into()),
            Host::Name(name) => match shared.lookups.find(name, &socket).await {
                Ok(ips) => found.extend(ips.into_iter().map(|ip| SocketAddr::new(ip, host.port))),
                Err(error) => {
                    failure = Some(PathFailure {
                        hint: Some("check the name, and this host's network".into()),
                        kind: FailureKind::NoName,
                        message: format!("the server's name `{name}` cannot be looked up: {error}"),
                    });
                }
            },
        }
    }
    if needs_translator(spec, &found)
        && let Some(prefix) = translator(shared, spec, &socket).await
    {
        found = translated(&found, prefix);
    }
    // If none fits, they stay, and dialling says why.
    if found.iter().any(|address| fits(spec, address)) {
        found.retain(|address| fits(spec, address));
    }
    let addresses = bounded(found);
    match failure {
        Some(failure) if addresses.is_empty() => Err(failure),
        _ => Ok(addresses),
    }
}
