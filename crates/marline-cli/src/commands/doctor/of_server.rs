//! The checks of a server, as it is configured.

use super::checks::{clock, files, firewall, gso, ipv6, listening, mtu, names, privileges};
use super::finding::Finding;
use super::links;
use super::running;
use super::system::System;
use crate::commands::announce::reached_at;
use crate::config::ServerConfig;
use marline::HostPort;
use marline::carrier::Bind;
use marline::identity::Identity;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// An address of the public network, for the way that leads there; nothing is sent to it.
const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(1, 0, 0, 1));

pub(super) async fn examine(config: &ServerConfig, system: &System) -> Vec<Finding> {
    let port = config.listen.first().map_or(0, SocketAddr::port);
    let guessed = config.advertise.is_empty();
    let advertised: Vec<HostPort> = reached_at(&config.advertise, &config.listen);
    let mut ports: Vec<u16> = config.listen.iter().map(SocketAddr::port).collect();
    ports.push(port);
    ports.sort_unstable();
    ports.dedup();
    let (named, way, chains, clock, running) = tokio::join!(
        names::check(&advertised),
        links::route(PUBLIC, &Bind::Any),
        firewall::check(system, firewall::Passing::Server, &ports),
        clock::check(),
        running(config.common.control.as_ref())
    );

    let mut found = Vec::new();
    for address in &config.listen {
        found.push(listening::check(*address, config.tcp, running.is_some()));
    }
    found.push(listening::advertised(&advertised, guessed));
    found.extend(named.1);
    found.push(key(config));
    found.push(clients(config));
    match &way {
        Ok(way) => {
            found.push(Finding::fine(
                "route",
                format!("to the public network by {}", way.dev),
            ));
            found.push(mtu::check(system, &way.dev));
        }
        Err(why) => found.push(Finding::unknown(
            "route",
            format!("to the public network: {why}"),
        )),
    }
    // A server that has no IPv6 serves clients that have IPv4.
    found.push(ipv6::check(system, &[]));
    found.extend(chains);
    found.extend([
        clock,
        files::check(),
        gso::check(),
        privileges::check(system, config.tun.is_some()),
        Finding::unknown(
            "reach",
            "a client sees whether it is reached: run `marline doctor client` there",
        ),
    ]);
    found
}

fn key(config: &ServerConfig) -> Finding {
    match Identity::load(&config.identity) {
        Ok(_) => Finding::fine("key", format!("in {}", config.identity.display())),
        Err(error) => {
            Finding::failure("key", error.to_string()).mend("make a key: marline identity new")
        }
    }
}

fn clients(config: &ServerConfig) -> Finding {
    match config.allow_clients.len() {
        0 => Finding::warning("clients", "the list is empty: nobody is let in")
            .mend("--allow-client KEY, which `marline identity show` prints at the client"),
        count => Finding::fine("clients", format!("keys that are let in: {count}")),
    }
}
