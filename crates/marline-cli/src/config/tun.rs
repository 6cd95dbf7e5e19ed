//! The keys of a tunnel: `tun` and those that begin with it.

use super::error::Placed as _;
use super::folders::{NO_STATE, default_state};
use super::keys::Raw;
use super::source::Source;
use super::written::Written;
use super::{ConfigError, RawClient, RawServer, Schedulers};
use ipnet::IpNet;
use marline::Path;
use marline::carrier::Bind;
use marline_apps::tun::{
    ClientSetup, DEVICE, Prefixes, Resolver, Rules, TunIn, TunOut, TunSetup, network,
};
use marline_base::text::Problem;
use marline_proto::sched::{Choice, Need, auto};

/// Longest name of a network interface that Linux accepts (`IFNAMSIZ` less the closing zero).
const MAX_DEVICE: usize = 15;

fn device(text: &str) -> Result<String, Problem> {
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    if (1..=MAX_DEVICE).contains(&text.len())
        && text.bytes().all(plain)
        && !text.starts_with(['.', '-'])
    {
        Ok(text.to_owned())
    } else {
        Err(
            Problem::new(format!("`{text}` is no name of a network interface")).hint(format!(
                "use 1 to {MAX_DEVICE} letters, digits or ._-, such as `{DEVICE}`"
            )),
        )
    }
}

fn setup(text: &str) -> Result<TunSetup, Problem> {
    match text {
        "on" => Ok(TunSetup::On),
        "off" => Ok(TunSetup::Off),
        "no-nat" => Ok(TunSetup::WithoutNat),
        _ => Err(Problem::new(format!(
            "`{text}` is none of on, off and no-nat"
        ))),
    }
}

/// `on`, `off`, or `gateway` and `strict`, which go together.
fn client_setup(text: &str) -> Result<ClientSetup, Problem> {
    let mut setup = ClientSetup::default();
    for word in text.split(',') {
        match word {
            "on" => {}
            "off" if text == "off" => return Ok(setup),
            "gateway" => setup.gateway = true,
            "strict" => setup.strict = true,
            _ => {
                return Err(Problem::new(format!(
                    "`{word}` is none of on, off, gateway and strict"
                ))
                .hint("write `on`, `gateway`, `strict`, or `gateway,strict`"));
            }
        }
        setup.on = true;
    }
    Ok(setup)
}

pub(super) fn switch(text: &str) -> Result<bool, Problem> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(Problem::new(format!("`{text}` is neither on nor off"))),
    }
}

fn route(text: &str) -> Result<IpNet, Problem> {
    let net: IpNet = text.parse().map_err(|_| {
        Problem::new(format!("`{text}` is not a network"))
            .hint("write `10.1.0.0/16`, or `0.0.0.0/0` and `::/0` for everything")
    })?;
    if net.trunc() == net {
        Ok(net)
    } else {
        Err(
            Problem::new(format!("`{net}` has bits set behind its prefix"))
                .hint(format!("write `{}`", net.trunc())),
        )
    }
}

/// Refuses keys that mean nothing without a tunnel.
fn no_tunnel<R: Raw>(
    source: &Source<R>,
    given: &[(&str, Option<&Written>)],
) -> Result<(), ConfigError> {
    match given.iter().find_map(|(key, value)| Some((key, (*value)?))) {
        None => Ok(()),
        Some((key, value)) => Err(Problem::new("there is no tunnel that it could hold for")
            .hint("add --tun")
            .at(source.place(key, value))),
    }
}

pub(super) fn tun_in(
    source: &Source<RawClient>,
    paths: &[Path],
    schedulers: &Schedulers,
) -> Result<Option<TunIn>, ConfigError> {
    let raw = &source.raw;
    let Some(name) = &raw.tun else {
        no_tunnel(
            source,
            &[
                ("tun-setup", raw.tun_setup.as_ref()),
                ("tun-route", raw.tun_route.first()),
                ("tun-rule", raw.tun_rule.first()),
                ("tun-dns", raw.tun_dns.first()),
                ("tun-announce", raw.tun_announce.first()),
            ],
        )?;
        return Ok(None);
    };
    let mut routes = Vec::new();
    for value in &raw.tun_route {
        routes.push(source.read("tun-route", value, |text| {
            let net = route(text)?;
            free_of_loops(&net, paths)?;
            Ok(net)
        })?);
    }
    let mut rules = Rules {
        scheduler: by_cost(paths, schedulers),
        ..Rules::default()
    };
    for value in &raw.tun_rule {
        rules
            .rules
            .push(source.read("tun-rule", value, str::parse)?);
    }
    let setup = match &raw.tun_setup {
        Some(value) => source.read("tun-setup", value, client_setup)?,
        None => ClientSetup::default(),
    };
    let mut resolvers: Vec<Resolver> = Vec::new();
    for value in &raw.tun_dns {
        resolvers.push(source.read("tun-dns", value, str::parse)?);
    }
    let mut announced = Vec::new();
    for value in &raw.tun_announce {
        announced.push(source.read("tun-announce", value, network)?);
    }
    // They are behind the tunnel, whatever else is.
    routes.extend(
        resolvers
            .iter()
            .map(|resolver| IpNet::from(resolver.address)),
    );
    Ok(Some(TunIn {
        device: source.read("tun", name, device)?,
        setup,
        routes,
        announced,
        resolvers,
        rules,
    }))
}

/// Paths with a cost are for what the cheaper ones do not carry, unless a scheduler is asked for.
fn by_cost(paths: &[Path], schedulers: &Schedulers) -> Option<Choice> {
    let costs = || paths.iter().map(|path| path.cost);
    let differ = costs().min() != costs().max();
    by_default(schedulers).filter(|_| differ)
}

/// Where costs differ and nobody has chosen otherwise.
fn by_default(schedulers: &Schedulers) -> Option<Choice> {
    (!schedulers.packets_named).then(|| auto(Need::tunnel_by_cost()))
}

/// A route for everything would also take the paths' own datagrams, unless they are bound to an
/// interface.
fn free_of_loops(net: &IpNet, paths: &[Path]) -> Result<(), Problem> {
    let unbound = paths
        .iter()
        .find(|path| !matches!(path.local, Bind::Interface(_) | Bind::Matching(_)));
    match unbound {
        Some(path) if net.prefix_len() < 2 => Err(Problem::new(format!(
            "path {path} would be routed into its own tunnel"
        ))
        .hint("name the interface of every path: `--path eth0`")),
        _ => Ok(()),
    }
}

pub(super) fn tun_out(
    source: &Source<RawServer>,
    schedulers: &Schedulers,
    prefixes: &Prefixes,
) -> Result<Option<TunOut>, ConfigError> {
    let raw = &source.raw;
    let Some(name) = &raw.tun else {
        no_tunnel(
            source,
            &[
                ("tun-setup", raw.tun_setup.as_ref()),
                ("tun-pool", raw.tun_pool.as_ref()),
                ("tun-state", raw.tun_state.as_ref()),
                ("tun-peers", raw.tun_peers.as_ref()),
                ("allow-prefix", raw.allow_prefix.first()),
            ],
        )?;
        return Ok(None);
    };
    let setup = match &raw.tun_setup {
        Some(value) => source.read("tun-setup", value, setup)?,
        None => TunSetup::Off,
    };
    let pool = match &raw.tun_pool {
        Some(value) => Some(source.read("tun-pool", value, str::parse)?),
        None => None,
    };
    let peers = match &raw.tun_peers {
        Some(value) => source.read("tun-peers", value, switch)?,
        None => false,
    };
    let state = match &raw.tun_state {
        Some(value) if value.text == "off" => None,
        Some(value) => Some(source.resolve(value)),
        None => Some(default_state("tunnel.toml").ok_or_else(|| {
            Problem::new(NO_STATE)
                .hint("name the file that keeps clients' addresses: --tun-state FILE, or `off`")
                .at(source.missing("tun-state"))
        })?),
    };
    Ok(Some(TunOut {
        device: source.read("tun", name, device)?,
        setup,
        pool,
        state,
        prefixes: prefixes.clone(),
        peers,
        by_cost: by_default(schedulers),
    }))
}
