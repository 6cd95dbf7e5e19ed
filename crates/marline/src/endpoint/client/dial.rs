//! One path's way to the server: look names up, and let all addresses race.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::error::{FailureKind, PathFailure};
use super::nat64::{self, Prefix};
use super::{ClientOptions, Shared};
use crate::Path;
use crate::carrier::{Bind, Dial, Dialled, Egress, SocketSpec};
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

/// Connects by the first address that answers. `favourite` is the one that answered last time.
///
/// # Errors
/// When none does: the failure that says most.
pub(super) async fn dial(
    shared: Arc<Shared>,
    spec: Path,
    favourite: Option<SocketAddr>,
) -> Result<(Dialled, SocketAddr), PathFailure> {
    let options = &shared.options;
    if let Err(error) = socket(&spec).check() {
        return Err(PathFailure::of(
            &error.into(),
            options.identity.public_key(),
        ));
    }
    let mut addresses = resolve(&shared, &spec).await?;
    // Stable: the others keep their order.
    addresses.sort_by_key(|address| Some(*address) != favourite);
    let mut race = JoinSet::new();
    for (index, remote) in addresses.into_iter().enumerate() {
        let dial = Dial {
            socket: socket(&spec),
            quic: options.quic.clone(),
            carrier: spec.carrier,
            tcp_congestion: spec.tcp_cc.clone(),
            outcomes: shared.outcomes.clone(),
            timeout: TIMEOUT,
            ..Dial::new(remote, options.server)
        };
        let identity = options.identity.clone();
        race.spawn(async move {
            sleep(HEAD_START * index as u32).await;
            dial.connect(&identity).await.map(|it| (it, remote))
        });
    }
    let client = options.identity.public_key();
    let mut worst: Option<PathFailure> = None;
    while let Some(done) = race.join_next().await {
        let failure = match done {
            Ok(Ok(dialled)) => return Ok(dialled),
            Ok(Err(error)) => PathFailure::of(&error, client),
            Err(error) => PathFailure::passing(error.to_string()),
        };
        if worst.as_ref().is_none_or(|worst| worst.kind < failure.kind) {
            worst = Some(failure);
        }
    }
    Err(worst.unwrap_or_else(|| PathFailure::passing("the server has no address".into())))
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
            Host::Name(name) => shared.lookups.known(name),
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
        Bind::Any | Bind::Matching(_) => {
            let socket = SocketSpec {
                bind: local.clone(),
                ..SocketSpec::default()
            };
            socket.egress(remote).is_ok()
        }
    }
}

/// IPv4 addresses as the network's translator reaches them; as they are where it has none.
async fn translated(shared: &Shared, found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let known = shared.lookups.find(nat64::NAME).await.unwrap_or_default();
    let mut prefixes = known.into_iter().filter_map(|ip| match ip {
        IpAddr::V6(ip) => Prefix::of(ip),
        IpAddr::V4(_) => None,
    });
    let Some(prefix) = prefixes.next() else {
        return found;
    };
    let embed = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(prefix.embed(ip).into(), address.port()),
        IpAddr::V6(_) => address,
    };
    found.into_iter().map(embed).collect()
}

/// All addresses of the server that this path can lead to, names looked up by this host.
async fn resolve(shared: &Shared, spec: &Path) -> Result<Vec<SocketAddr>, PathFailure> {
    let mut found: Vec<SocketAddr> = Vec::new();
    let mut failure = None;
    for host in hosts(&shared.options, spec) {
        match &host.host {
            Host::Ip(ip) => found.push((*ip, host.port).into()),
            Host::Name(name) => match shared.lookups.find(name).await {
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
    if !found.is_empty()
        && found.iter().all(SocketAddr::is_ipv4)
        && !has_ipv4(&spec.local, found[0])
    {
        found = translated(shared, found).await;
    }
    if let Bind::Address(source) = spec.local {
        let usable = |address: &SocketAddr| address.is_ipv4() == source.is_ipv4();
        // If none fits, they stay, and dialling says why.
        if found.iter().any(usable) {
            found.retain(usable);
        }
    }
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) && addresses.len() < MAX_ADDRESSES {
            addresses.push(address);
        }
    }
    match failure {
        Some(failure) if addresses.is_empty() => Err(failure),
        _ => Ok(addresses),
    }
}
