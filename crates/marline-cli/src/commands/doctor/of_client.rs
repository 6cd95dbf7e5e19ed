//! The checks of a client, as it is configured.

use super::board::Board;
use super::checks::{
    address, clock, files, firewall, gso, interface, ipv6, key, key_file, mtu, names, nat,
    privileges, published, reach, route, rp_filter,
};
use super::finding::{Finding, Verdict};
use super::links::{self, Route, Way};
use super::running::{Running, running};
use super::system::System;
use crate::config::ClientConfig;
use crate::control::status::Role;
use marline::Path;
use marline::carrier::{Bind, CarrierChoice};
use marline::endpoint::ClientOptions;
use marline::endpoint::client::assigned;
use marline::identity::{Host, HostPort, Identity, PublicKey};
use marline::interfaces::addresses;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Addresses of the server that are tried on each path: two of each family, as each takes two
/// connections and a few calls of `ip`.
const MAX_ADDRESSES: usize = 4;

pub(super) async fn examine(config: &ClientConfig, system: &System, board: &Board) {
    let loaded = Identity::load(&config.identity);
    let paths = assigned(&config.paths, &config.sysfs);
    let host = |check| board.begin(None, check);
    let (names, key, ipv6) = (host("names"), host("key"), host("ipv6"));
    let (firewall, clock, publish) = (host("firewall"), host("clock"), host("publish"));
    let tunnel = config.tun.as_ref().map(|tun| privileges::Tunnel {
        device: tun.device.clone(),
        sets_up: tun.setup.on,
    });
    board.add(None, files::check());
    board.add(None, gso::check());
    board.add(None, privileges::check(system, tunnel.as_ref()));

    // Who the server lets in is asked by itself; to be reached, it needs no known key.
    let identity = match &loaded {
        Ok(identity) => Ok(identity.clone()),
        Err(_) => Identity::generate().map_err(|error| error.to_string()),
    };
    let addresses: Arc<[(String, IpAddr)]> = addresses().into();
    let interfaces: Vec<Option<Finding>> = paths
        .iter()
        .map(|path| interface::check(system, &addresses, &path.local))
        .collect();
    for (path, found) in paths.iter().zip(&interfaces) {
        let begun = board.begin(Some(&path.name), "interface");
        begun.end(found.clone());
    }
    let of_paths = async {
        let (remotes, found) = names::check(config.server.addresses()).await;
        names.end(found);
        ipv6.end([ipv6::check(system, &remotes)]);
        let mut tasks = JoinSet::new();
        for (index, (path, interface)) in paths.iter().zip(interfaces).enumerate() {
            let is_absent = interface.is_some_and(|found| found.verdict == Verdict::Failure);
            // One that is still as it is written has no interface to send by.
            if is_absent || matches!(path.local, Bind::Matching(_)) {
                continue;
            }
            let of_path = OfPath {
                board: board.clone(),
                system: system.clone(),
                addresses: Arc::clone(&addresses),
                remotes: remotes.clone(),
                server: config.server.server(),
                identity: identity.clone(),
                path: path.clone(),
            };
            tasks.spawn(async move { (index, of_path.examine().await) });
        }
        let mut ways = tasks.join_all().await;
        ways.sort_by_key(|(index, _)| *index);
        let ways: Vec<(String, Route)> = ways
            .into_iter()
            .filter_map(|(index, way)| Some((paths[index].name.clone(), way?.route)))
            .collect();
        for (path, finding) in route::shared(&ways) {
            board.add(Some(&path), finding);
        }
    };
    let admitted = async {
        let (found, sizes) = match &loaded {
            Ok(identity) => admission(config, identity).await,
            Err(error) => (key_file::unusable(error), Vec::new()),
        };
        key.end([found]);
        for (path, size) in sizes {
            board.add(Some(&path), size);
        }
    };
    let own = paths.iter().filter_map(|path| path.server.as_ref());
    let takes = |other| paths.iter().any(|path| path.carrier != other);
    let traffic = firewall::Traffic {
        passing: firewall::Passing::Client,
        protocols: [("udp", CarrierChoice::Tcp), ("tcp", CarrierChoice::Quic)]
            .into_iter()
            .filter_map(|(protocol, other)| takes(other).then_some(protocol))
            .collect(),
        ports: ports(config.server.addresses().iter().chain(own)),
    };
    let chains = async { firewall.end(firewall::check(system, &traffic).await) };
    let time = async { clock.end([clock::check().await]) };
    let leads = async {
        let running = match config.publications.is_empty() {
            true => Running::None,
            false => running(config.common.control.as_ref(), Role::Client).await,
        };
        publish.end(published::of_client(&config.publications, &running).await);
    };
    tokio::join!(of_paths, admitted, chains, time, leads);
}

fn ports<'a>(hosts: impl Iterator<Item = &'a HostPort>) -> Vec<u16> {
    let mut ports: Vec<u16> = hosts.map(|host| host.port).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Whether the server lets the key in, and how large the datagrams of each path are.
async fn admission(
    config: &ClientConfig,
    identity: &Identity,
) -> (Finding, Vec<(String, Finding)>) {
    let running = running(config.common.control.as_ref(), Role::Client).await;
    if let Some(known) = key::known(&running, config.server.server()) {
        return (known, Vec::new());
    }
    let options = ClientOptions {
        sysfs: config.sysfs.clone(),
        mark: config.mark(),
        ..ClientOptions::new(&config.server, identity.clone(), config.paths.clone())
    };
    key::check(options).await
}

/// What the checks of one path need.
#[derive(Clone)]
struct OfPath {
    board: Board,
    system: System,
    /// This host's, each with its interface.
    addresses: Arc<[(String, IpAddr)]>,
    remotes: Vec<SocketAddr>,
    server: PublicKey,
    identity: Result<Identity, String>,
    path: Path,
}

impl OfPath {
    /// Returns the way that the path's packets take.
    async fn examine(self) -> Option<Way> {
        let (bind, name) = (&self.path.local, &*self.path.name);
        let remotes = match &self.path.server {
            None => self.remotes.clone(),
            Some(own) => {
                let begun = self.board.begin(Some(name), "names");
                let (remotes, found) = names::check(std::slice::from_ref(own)).await;
                begun.end(
                    found
                        .into_iter()
                        .filter(|_| matches!(own.host, Host::Name(_))),
                );
                remotes
            }
        };
        let address = address::check(&self.addresses, bind, &remotes);
        self.board.begin(Some(name), "address").end(address);
        let usable = |remote: &SocketAddr| match bind {
            Bind::Address(ip) => ip.is_ipv4() == remote.is_ipv4(),
            Bind::Interface(name) => {
                let own = address::of(&self.addresses, name);
                own.is_empty() || own.iter().any(|ip| ip.is_ipv4() == remote.is_ipv4())
            }
            Bind::Any | Bind::Matching(_) | Bind::Network(_) => true,
        };
        let usable = remotes.into_iter().filter(usable).take(MAX_ADDRESSES);
        // They take seconds where nobody answers, and all are asked at once.
        let mut tasks = JoinSet::new();
        for (index, remote) in usable.enumerate() {
            let (way, reach) = (
                self.board.begin(Some(name), "route"),
                self.board.begin(Some(name), "udp"),
            );
            let of_path = self.clone();
            tasks.spawn(async move {
                let leading = async {
                    let (found, leads) = of_path.leads(remote).await;
                    way.end(found);
                    leads
                };
                let reaching = async { reach.end(of_path.reaches(remote).await) };
                (index, tokio::join!(leading, reaching).0)
            });
        }
        let mut ways = tasks.join_all().await;
        ways.sort_by_key(|(index, _)| *index);
        ways.into_iter().find_map(|(_, way)| way)
    }

    async fn reaches(&self, remote: SocketAddr) -> Vec<Finding> {
        match &self.identity {
            Ok(identity) => reach::check(&self.path, self.server, remote, identity).await,
            Err(why) => vec![Finding::unknown("udp", why)],
        }
    }

    /// The link that packets to the server take, and the way there.
    async fn leads(&self, remote: SocketAddr) -> (Vec<Finding>, Option<Way>) {
        let (bind, ip) = (&self.path.local, remote.ip());
        let way = links::way(ip, bind, &self.addresses).await;
        let mut found = vec![route::check(
            &self.system,
            &self.addresses,
            bind,
            remote,
            &way,
        )];
        let Ok(way) = way else {
            if let Bind::Interface(name) = bind {
                found.push(mtu::check(&self.system, name, ip, self.path.carrier));
            }
            return (found, None);
        };
        let dev = &way.route.dev;
        found.push(mtu::check(&self.system, dev, ip, self.path.carrier));
        if let Some(source) = way.route.source() {
            found.push(nat::check(source, ip));
            if ip.is_ipv4() && dev != "lo" {
                let back = links::way(ip, &Bind::Address(source), &[]).await;
                found.push(rp_filter::check(&self.system, dev, &back));
            }
        }
        (found, Some(way))
    }
}
