//! The checks of a client, as it is configured.

use super::checks::{
    address, clock, files, firewall, gso, interface, ipv6, key, mtu, names, nat, privileges, reach,
    route, rp_filter,
};
use super::finding::{Finding, Verdict};
use super::links::{self, Device, Route};
use super::matching;
use super::running;
use super::system::System;
use crate::config::ClientConfig;
use crate::control::status::Status;
use marline::Path;
use marline::carrier::Bind;
use marline::endpoint::ClientOptions;
use marline::identity::{Host, HostPort, Identity, PublicKey};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Addresses of the server that are tried on each path.
const MAX_ADDRESSES: usize = 4;

pub(super) async fn examine(config: &ClientConfig, system: &System) -> Vec<Finding> {
    let loaded = Identity::load(&config.identity);
    let written = matching::expand(&config.paths, &config.sysfs);
    let (named, devices) = tokio::join!(names::check(config.server.addresses()), links::devices());
    let (remotes, mut found) = named;
    let ports: Vec<u16> = ports(config.server.addresses());
    let devices = Arc::new(devices);

    // Who the server lets in is asked by itself; to be reached, it needs no known key.
    let identity = match &loaded {
        Ok(identity) => Ok(identity.clone()),
        Err(_) => Identity::generate().map_err(|error| error.to_string()),
    };
    let mut tasks = JoinSet::new();
    for (index, path) in written.iter().cloned().enumerate() {
        let of_path = OfPath {
            system: system.clone(),
            devices: Arc::clone(&devices),
            remotes: remotes.clone(),
            server: config.server.server(),
            identity: identity.clone(),
            path,
        };
        tasks.spawn(async move { (index, of_path.examine().await) });
    }
    let host = async {
        let (chains, clock) = tokio::join!(
            firewall::check(system, firewall::Passing::Client, &ports),
            clock::check()
        );
        let mut host = vec![ipv6::check(system, &remotes)];
        host.extend(chains);
        host.extend([
            clock,
            files::check(),
            gso::check(),
            privileges::check(system, config.tun.is_some()),
        ]);
        host
    };
    let admitted = async {
        match &loaded {
            Ok(identity) => admission(config, identity).await,
            Err(error) => {
                let mend = "make a key: marline identity new";
                (
                    Finding::failure("key", error.to_string()).mend(mend),
                    Vec::new(),
                )
            }
        }
    };
    let (paths, host, (admitted, sizes)) = tokio::join!(tasks.join_all(), host, admitted);
    found.push(admitted);
    found.extend(host);

    let mut paths = paths;
    paths.sort_by_key(|(index, _)| *index);
    let ways: Vec<(String, Route)> = written
        .iter()
        .zip(&paths)
        .filter_map(|(path, (_, (_, way)))| Some((path.name.clone(), way.clone()?)))
        .collect();
    let shared = route::shared(&ways);
    for (path, (_, (of_path, _))) in written.iter().zip(paths) {
        found.extend(of_path.into_iter().map(|finding| finding.of(&path.name)));
        let size = sizes.iter().find(|(name, _)| *name == path.name);
        found.extend(size.map(|(_, size)| {
            Finding::fine("size", format!("datagrams of {size} bytes and headers")).of(&path.name)
        }));
        let same = |finding: &&Finding| finding.path.as_deref() == Some(&path.name);
        found.extend(shared.iter().filter(same).cloned());
    }
    found
}

fn ports(hosts: &[HostPort]) -> Vec<u16> {
    let mut ports: Vec<u16> = hosts.iter().map(|host| host.port).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Whether the server lets the key in, and how large the paths' datagrams are.
async fn admission(config: &ClientConfig, identity: &Identity) -> (Finding, Vec<(String, usize)>) {
    // A further session of one client may end one that is in trouble.
    if let Some(Status { sessions, .. }) = running(config.common.control.as_ref()).await {
        let up = sessions
            .iter()
            .any(|session| session.state == "established");
        let finding = match up {
            true => Finding::fine("key", "the client that runs here has a session"),
            false => Finding::unknown(
                "key",
                "the client that runs here has no session now, and a trial would disturb it",
            ),
        };
        return (finding, Vec::new());
    }
    let options = ClientOptions {
        sysfs: config.sysfs.clone(),
        ..ClientOptions::new(&config.server, identity.clone(), config.paths.clone())
    };
    key::check(options).await
}

/// What the checks of one path need.
struct OfPath {
    system: System,
    devices: Arc<Result<Vec<Device>, String>>,
    remotes: Vec<SocketAddr>,
    server: PublicKey,
    identity: Result<Identity, String>,
    path: Path,
}

impl OfPath {
    /// What was found, and the way that the path's packets take.
    async fn examine(self) -> (Vec<Finding>, Option<Route>) {
        let bind = &self.path.local;
        let mut found = Vec::new();
        let remotes = match &self.path.server {
            None => self.remotes.clone(),
            Some(own) => {
                let (remotes, named) = names::check(std::slice::from_ref(own)).await;
                if matches!(own.host, Host::Name(_)) {
                    found.extend(named);
                }
                remotes
            }
        };
        let link = interface::check(&self.system, bind);
        let absent = matches!(&link, Some(link) if link.verdict == Verdict::Failure);
        found.extend(link);
        found.extend(address::check(&self.devices, bind, &remotes));
        if absent {
            return (found, None);
        }
        let usable = |remote: &&SocketAddr| match bind {
            Bind::Address(ip) => ip.is_ipv4() == remote.is_ipv4(),
            Bind::Any | Bind::Interface(_) | Bind::Matching(_) => true,
        };
        let usable: Vec<SocketAddr> = remotes.iter().filter(usable).copied().collect();
        let mut dials = JoinSet::new();
        for remote in usable.into_iter().take(MAX_ADDRESSES) {
            let (path, server) = (self.path.clone(), self.server);
            let identity = self.identity.clone();
            dials.spawn(async move {
                let reached = match identity {
                    Ok(identity) => reach::check(&path, server, remote, &identity).await,
                    Err(why) => vec![Finding::unknown("udp", why)],
                };
                (remote, reached)
            });
        }
        // They take seconds where nobody answers, and all are asked at once.
        let mut reached = dials.join_all().await;
        reached.sort_by_key(|(remote, _)| remotes.iter().position(|known| known == remote));
        let mut first = None;
        for (remote, reached) in reached {
            let way = links::route(remote.ip(), bind).await;
            found.push(route::check(&self.devices, bind, remote, &way));
            if let Ok(way) = way {
                found.extend(self.of_way(remote, &way).await);
                first.get_or_insert(way);
            }
            found.extend(reached);
        }
        (found, first)
    }

    /// The link that the packets take.
    async fn of_way(&self, remote: SocketAddr, way: &Route) -> Vec<Finding> {
        let mut found = vec![mtu::check(&self.system, &way.dev)];
        found.extend(way.source().map(|source| nat::check(source, remote.ip())));
        if remote.is_ipv4() && way.dev != "lo" {
            let main = links::route(remote.ip(), &Bind::Any).await;
            found.push(rp_filter::check(&self.system, &way.dev, &main));
        }
        found
    }
}
