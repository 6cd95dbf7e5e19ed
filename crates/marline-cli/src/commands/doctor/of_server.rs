//! The checks of a server, as it is configured.

use super::board::Board;
use super::checks::{
    clock, files, firewall, gso, ipv6, key_file, listening, mtu, names, privileges, published,
};
use super::finding::Finding;
use super::links::{self, NoRoute};
use super::running::running;
use super::system::System;
use crate::commands::announce::{PUBLIC_IPV4, reached_at};
use crate::config::ServerConfig;
use crate::control::status::Role;
use marline::carrier::{Bind, CarrierChoice};
use marline::identity::Identity;
use marline_apps::tun::TunSetup;
use std::net::{IpAddr, SocketAddr};

pub(super) async fn examine(config: &ServerConfig, system: &System, board: &Board) {
    let advertised = reached_at(&config.advertise, &config.listen);
    let mut ports: Vec<u16> = config.listen.iter().map(SocketAddr::port).collect();
    ports.sort_unstable();
    ports.dedup();
    let tunnel = config.tun.as_ref().map(|tun| privileges::Tunnel {
        device: tun.device.clone(),
        sets_up: tun.setup != TunSetup::Off,
    });

    let host = |check| board.begin(None, check);
    let listen = host("listen");
    let guessed = config.advertise.is_empty();
    board.add(None, listening::advertised(&advertised, guessed));
    let (names, publish) = (host("names"), host("publish"));
    board.add(None, key(config));
    board.add(None, clients(config));
    let route = host("route");
    // A server that has no IPv6 serves clients that have IPv4.
    board.add(None, ipv6::check(system, &[]));
    let (firewall, clock) = (host("firewall"), host("clock"));
    board.add(None, files::check());
    board.add(None, gso::check());
    board.add(None, privileges::check(system, tunnel.as_ref()));
    let reach = "a client sees whether it is reached: run `marline doctor client` there";
    board.add(None, Finding::unknown("reach", reach));

    let ports_had = async {
        let running = running(config.common.control.as_ref(), Role::Server).await;
        listen.end(listening::check(&config.listen, config.tcp, &running));
        let permits = &config.grants.permits;
        publish.end(published::of_server(
            permits,
            &config.publish_addresses,
            &running,
        ));
    };
    let found = async { names.end(names::check(&advertised).await.1) };
    let leads = async { route.end(leads(config, system).await) };
    let traffic = firewall::Traffic {
        passing: firewall::Passing::Server,
        protocols: match config.tcp {
            true => vec!["udp", "tcp"],
            false => vec!["udp"],
        },
        ports,
    };
    let chains = async { firewall.end(firewall::check(system, &traffic).await) };
    let time = async { clock.end([clock::check().await]) };
    tokio::join!(ports_had, found, leads, chains, time);
}

/// The way to the public network.
async fn leads(config: &ServerConfig, system: &System) -> Vec<Finding> {
    let public = IpAddr::V4(PUBLIC_IPV4);
    match links::way(public, &Bind::Any, &[]).await {
        Ok(way) => {
            let dev = way.route.dev;
            let carrier = match config.tcp {
                true => CarrierChoice::Auto,
                false => CarrierChoice::Quic,
            };
            let text = format!("to the public network by {dev}");
            let mtu = mtu::check(system, &dev, public, carrier);
            vec![Finding::fine("route", text), mtu]
        }
        Err(NoRoute::None(why)) => {
            let text = format!("to the public network over IPv4: {why}");
            let fix = "ip route add default via GATEWAY dev INTERFACE, unless clients are all near \
                       or have IPv6";
            vec![Finding::warning("route", text).fix(fix)]
        }
        Err(NoRoute::Unknown(why)) => vec![Finding::unknown("route", why.to_string())],
    }
}

fn key(config: &ServerConfig) -> Finding {
    match Identity::load(&config.identity) {
        Ok(_) => Finding::fine("key", format!("in {}", config.identity.display())),
        Err(error) => key_file::unusable(&error),
    }
}

fn clients(config: &ServerConfig) -> Finding {
    match config.allow_clients.len() {
        0 => Finding::warning("clients", "the list is empty: nobody is let in")
            .fix("--allow-client KEY, which `marline identity show` prints at the client"),
        count => Finding::fine("clients", format!("keys that are let in: {count}")),
    }
}
