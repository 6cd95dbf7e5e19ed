//! The configuration as the program accepts it: every value parsed, every contradiction refused.

use super::Advertised;
use super::counts::{count, workers};
use super::error::{ConfigError, Placed as _};
use super::folders::{NO_CONFIGURATION, NO_STATE, default_identity, default_seen, default_state};
use super::grants::Grants;
use super::keys::Raw;
use super::listening::{SERVER, apart};
use super::live_entries::{live_in, live_out};
use super::names::Schedulers;
use super::publish::{publications, publish_addresses};
use super::qlog::{QlogFolder, qlog};
use super::raw::{RawClient, RawServer};
use super::socks::{socks, udp_address};
use super::source::Source;
use super::tun::{switch, tun_in, tun_out};

use super::web::{Web, WebPage, web};
use super::written::Written;
use crate::control;
use crate::control::status::Role;
use marline::identity::{AllowList, AllowedClient, ConnectionString, Host, HostPort, KeyTextError};
use marline::interfaces::Sysfs;
use marline::{Congestion, Offload, Path, tcp_congestion};
use marline_apps::live::{LiveIn, LiveOut};
use marline_apps::proxy::AsObjects;
use marline_apps::proxy::policy::{Policy, Prefix, Rule};
use marline_apps::proxy::{Forward, SocksLogin};
use marline_apps::publish::Publication;
use marline_apps::tun::{MARK, TunIn, TunOut};
use marline_base::text::Problem;
use marline_base::text::{duration, listen_address, redundancy, suggest};
use marline_proto::{Config as SessionConfig, MAX_PATHS};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// A van's tunnel, a modem that starts again: connections outlive that. Programs whose server is
/// gone wait for as long, as TCP itself has them wait for at least 100 s (RFC 9293 section 3.8.3).
const IDLE_TIMEOUT: Duration = Duration::from_secs(180);
const IDLE_RANGE: RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
const MAX_FLOWS: usize = 1024;
const FLOWS_RANGE: RangeInclusive<usize> = 1..=1 << 20;

/// What a client does.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientConfig {
    /// The server's addresses and key.
    pub server: ConnectionString,
    /// Key file.
    pub identity: PathBuf,
    /// Paths, at least one, with different names.
    pub paths: Vec<Path>,
    /// Where the system tells what interfaces are known by.
    pub sysfs: Sysfs,
    /// Where it is kept what paths with a budget have carried, if it is.
    pub usage: Option<PathBuf>,
    /// Where it is kept what the server's names stood for last, if there is a place.
    pub names: Option<PathBuf>,
    /// Where the SOCKS5 proxy listens, if it is wanted.
    pub socks: Option<SocketAddr>,
    /// What the SOCKS5 proxy demands of its users.
    pub socks_login: Option<SocksLogin>,
    /// Where the SOCKS5 proxy's users are told to send their datagrams, if not where they have
    /// connected to.
    pub socks_udp_address: Option<IpAddr>,
    /// Which TCP connections are carried as objects, beside forwards that say so themselves.
    pub objects: AsObjects,
    /// TCP and UDP forwards, with different listen addresses for each protocol.
    pub forwards: Vec<Forward>,
    /// Ports at the server that lead to services behind this client, each once.
    pub publications: Vec<Publication>,
    /// Live entries, with different names and addresses.
    pub live: Vec<LiveIn>,
    /// The tunnel, if one is wanted.
    pub tun: Option<TunIn>,
    /// What both ends have in common.
    pub common: CommonConfig,
}

/// A finished upload whose target takes nothing is ended after this: what the kernel gives a
/// socket that its program has closed (tcp_orphan_retries, some 100 s) and a little more.
const LINGER: Duration = Duration::from_secs(120);

/// What a server does.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Addresses to listen on, at least one.
    pub listen: Vec<SocketAddr>,
    /// Take TLS over TCP at the same addresses.
    pub tcp: bool,
    /// The kernel's congestion control for what is sent over TCP; `None` for the system's own
    /// choice.
    pub tcp_cc: Option<String>,
    /// Key file.
    pub identity: PathBuf,
    /// Addresses at which clients reach it, for the connection string that it prints; empty when it
    /// has to guess.
    pub advertise: Vec<Advertised>,
    /// Where it is kept when clients were seen last, if it is.
    pub seen: Option<PathBuf>,
    /// Clients that are let in.
    pub allow_clients: AllowList,
    /// What clients may reach.
    pub targets: Policy,
    /// The prefixes of the network's NAT64 translators; `None` when the resolver is to be asked for
    /// them.
    pub nat64: Option<Vec<Prefix>>,
    /// What each client is granted.
    pub grants: Grants,
    /// Where clients' ports are; empty for all addresses.
    pub publish_addresses: Vec<IpAddr>,
    /// Where live entries of clients end, with different names.
    pub live: Vec<LiveOut>,
    /// The tunnel, if one is wanted.
    pub tun: Option<TunOut>,
    /// Most flows that one client may have open at a time.
    pub max_flows: usize,
    /// Threads that sessions run on.
    pub workers: usize,
    /// What both ends have in common.
    pub common: CommonConfig,
}

/// What clients and servers have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct CommonConfig {
    /// Schedulers of flows that name none.
    pub schedulers: Schedulers,
    /// Congestion controller of every path.
    pub congestion: Congestion,
    /// Whether the kernel cuts large batches of packets.
    pub gso: Offload,
    /// Bytes of repair symbols that a flow may spend over the bytes of its data; what losses are
    /// worth if nobody says.
    pub repair_budget: Option<f64>,
    /// Where the page is served, if it is wanted.
    pub web: Option<WebPage>,
    /// Where metrics are served, if they are wanted.
    pub metrics: Option<SocketAddr>,
    /// Names by which metrics may be asked for, beside addresses and this host's own name.
    pub metrics_names: Vec<String>,
    /// Where sessions are written to, if they are.
    pub qlog: Option<QlogFolder>,
    /// The control socket, if it is wanted.
    pub control: Option<control::Place>,
    /// A session ends after this long without any working path.
    pub idle_timeout: Duration,
    /// How long a client waits for its first session, and a server for an address; `None` for as
    /// long as it takes.
    pub wait: Option<Duration>,
}

impl CommonConfig {
    /// The session's part of it.
    pub fn session(&self) -> SessionConfig {
        SessionConfig {
            // At most 24 hours: the nanoseconds fit.
            idle_timeout: marline_base::Duration::from_nanos(self.idle_timeout.as_nanos() as u64),
            congestion: self.congestion,
            repair_budget: self.repair_budget,
            stream_scheduler: self.schedulers.stream,
            packets_scheduler: self.schedulers.packets,
            ordered_scheduler: self.schedulers.ordered(),
            blocks_scheduler: self.schedulers.blocks,
            objects_scheduler: self.schedulers.objects,
            ..SessionConfig::default()
        }
    }
}

impl ClientConfig {
    /// By which a strict tunnel knows what the paths send.
    pub fn mark(&self) -> Option<u32> {
        let is_strict = self.tun.as_ref().is_some_and(|tun| tun.setup.strict);
        is_strict.then_some(MARK)
    }

    /// Checks what was written.
    ///
    /// # Errors
    /// The first value that cannot be accepted, with its place and the hint.
    pub fn check(source: &Source<RawClient>) -> Result<Self, ConfigError> {
        let raw = &source.raw;
        let server = raw.server.as_ref().ok_or_else(|| {
            Problem::new("no server is given")
                .hint("`marline server` prints a connection string: give it as --server STRING")
                .at(source.missing("server"))
        })?;
        let server = source.read("server", server, |text| {
            text.parse::<ConnectionString>().map_err(|error| {
                Problem::new(error.to_string()).hint(
                    "copy the whole line that `marline server` prints: marline://KEY@HOST:PORT",
                )
            })
        })?;
        let (socks, socks_login) = socks(source)?;
        let paths = paths(source)?;
        let schedulers = Schedulers::read(source, &raw.scheduler)?;
        let config = ClientConfig {
            server,
            identity: identity(source, raw.identity.as_ref())?,
            tun: tun_in(source, &paths, &schedulers)?,
            usage: usage(source, &paths)?,
            names: default_state("addresses"),
            sysfs: match &raw.sysfs {
                Some(value) => Sysfs::at(source.resolve(value)),
                None => Sysfs::default(),
            },
            paths,
            socks,
            socks_login,
            socks_udp_address: udp_address(source)?,
            live: live_in(source, &schedulers)?,
            objects: objects(source)?,
            forwards: forwards(source)?,
            publications: publications(source)?,
            common: CommonConfig {
                schedulers,
                congestion: congestion(source, raw.congestion.as_ref())?,
                gso: gso(source, raw.gso.as_ref())?,
                repair_budget: repair_budget(source, raw.repair_budget.as_ref())?,
                web: web(
                    source,
                    Web {
                        address: raw.web.as_ref(),
                        login: raw.web_login.as_ref(),
                        certificate: raw.web_certificate.as_ref(),
                    },
                )?,
                metrics: metrics(source, raw.metrics.as_ref())?,
                metrics_names: metrics_names(source, &raw.metrics_name)?,
                qlog: qlog(source, raw.qlog.as_ref(), raw.qlog_size.as_ref())?,
                control: control_path(source, raw.control.as_ref(), Role::Client),
                idle_timeout: idle_timeout(source, raw.idle_timeout.as_ref())?,
                wait: wait(source, raw.wait.as_ref())?,
            },
        };
        apart(source)?;
        Ok(config)
    }
}

impl ServerConfig {
    /// The session's part of it.
    pub fn session(&self) -> SessionConfig {
        SessionConfig {
            max_flows: self.max_flows as u64,
            linger: Some(LINGER),
            ..self.common.session()
        }
    }

    /// Checks what was written.
    ///
    /// # Errors
    /// The first value that cannot be accepted, with its place and the hint; no client that would
    /// be let in.
    pub fn check(source: &Source<RawServer>) -> Result<Self, ConfigError> {
        let raw = &source.raw;
        if raw.allow_client.is_empty() && raw.allow_clients_file.is_none() {
            return Err(Problem::new("no client would be let in")
                .hint(
                    "`marline identity show` on the client prints its key: give it as --allow-client KEY",
                )
                .at(source.missing("allow-client")));
        }
        Self::check_running(source)
    }

    /// Checks what was written again while the server runs, of which it is no mistake that the last
    /// client was taken out.
    ///
    /// # Errors
    /// The first value that cannot be accepted, with its place and the hint.
    pub fn check_running(source: &Source<RawServer>) -> Result<Self, ConfigError> {
        let raw = &source.raw;
        let mut listen = Vec::new();
        for value in &raw.listen {
            let address = source.read("listen", value, |text| {
                let address = listen_address(text)?;
                if listen.contains(&address) {
                    return Err(Problem::new(format!("`{address}` is given twice")));
                }
                Ok(address)
            })?;
            listen.push(address);
        }
        if listen.is_empty() {
            listen = SERVER.to_vec();
        }
        let rules = |key, values: &[Written]| -> Result<Vec<Rule>, ConfigError> {
            values
                .iter()
                .map(|value| source.read(key, value, str::parse))
                .collect()
        };
        let max_flows = match &raw.max_flows {
            Some(value) => source.read("max-flows", value, |text| count(text, FLOWS_RANGE))?,
            None => MAX_FLOWS,
        };
        let schedulers = Schedulers::read(source, &raw.scheduler)?;
        let advertise = advertise(source)?;
        let mut names = metrics_names(source, &raw.metrics_name)?;
        names.extend(advertise.iter().filter_map(Advertised::name));
        let allow_clients = allow_clients(source)?;
        let grants = Grants::read(source, &allow_clients)?;
        let config = ServerConfig {
            listen,
            tcp: match &raw.tcp {
                Some(value) => source.read("tcp", value, switch)?,
                None => true,
            },
            tcp_cc: match &raw.tcp_cc {
                Some(value) => Some(source.read("tcp-cc", value, tcp_congestion)?),
                None => None,
            },
            identity: identity(source, raw.identity.as_ref())?,
            advertise,
            seen: match &raw.clients_state {
                Some(value) if value.text == "off" => None,
                Some(value) => Some(source.resolve(value)),
                None => default_seen(),
            },
            allow_clients,
            targets: Policy::new(
                rules("allow-target", &raw.allow_target)?,
                rules("deny-target", &raw.deny_target)?,
            ),
            nat64: nat64(source)?,
            publish_addresses: publish_addresses(source, &grants.permits)?,
            live: live_out(source)?,
            tun: tun_out(source, &schedulers, &grants.prefixes)?,
            grants,
            max_flows,
            workers: workers(source, raw.workers.as_ref())?,
            common: CommonConfig {
                schedulers,
                congestion: congestion(source, raw.congestion.as_ref())?,
                gso: gso(source, raw.gso.as_ref())?,
                repair_budget: repair_budget(source, raw.repair_budget.as_ref())?,
                web: web(
                    source,
                    Web {
                        address: raw.web.as_ref(),
                        login: raw.web_login.as_ref(),
                        certificate: raw.web_certificate.as_ref(),
                    },
                )?,
                metrics: metrics(source, raw.metrics.as_ref())?,
                metrics_names: names,
                qlog: qlog(source, raw.qlog.as_ref(), raw.qlog_size.as_ref())?,
                control: control_path(source, raw.control.as_ref(), Role::Server),
                idle_timeout: idle_timeout(source, raw.idle_timeout.as_ref())?,
                wait: wait(source, raw.wait.as_ref())?,
            },
        };
        apart(source)?;
        Ok(config)
    }
}

fn advertise(source: &Source<RawServer>) -> Result<Vec<Advertised>, ConfigError> {
    let read = |value| source.read("advertise", value, str::parse);
    source.raw.advertise.iter().map(read).collect()
}

fn nat64(source: &Source<RawServer>) -> Result<Option<Vec<Prefix>>, ConfigError> {
    match &source.raw.nat64[..] {
        [] => Ok(None),
        [off] if off.text == "off" => Ok(Some(Vec::new())),
        prefixes => {
            let read = |value| source.read("nat64", value, str::parse);
            prefixes
                .iter()
                .map(read)
                .collect::<Result<_, _>>()
                .map(Some)
        }
    }
}

fn allow_clients(source: &Source<RawServer>) -> Result<AllowList, ConfigError> {
    let raw = &source.raw;
    let problem = |error: &dyn std::error::Error| Problem::new(error.to_string());
    match (&raw.allow_client[..], &raw.allow_clients_file) {
        ([], Some(file)) => source.read("allow-clients-file", file, |_| {
            AllowList::load(&source.resolve(file)).map_err(|error| problem(&error))
        }),
        ([first, ..], Some(_)) => Err(Problem::new("`allow-clients-file` is given too")
            .hint("give one of the two: the key can stand in the file")
            .at(source.place("allow-client", first))),
        (values, None) => {
            let clients: Result<Vec<AllowedClient>, ConfigError> = values
                .iter()
                .map(|value| {
                    source.read("allow-client", value, |text| {
                        text.parse().map_err(|error: KeyTextError| {
                            problem(&error)
                                .hint("`marline identity show` on the client prints its key")
                        })
                    })
                })
                .collect();
            Ok(AllowList::from_clients(clients?))
        }
    }
}

fn paths(source: &Source<RawClient>) -> Result<Vec<Path>, ConfigError> {
    let mut paths: Vec<Path> = Vec::new();
    for value in &source.raw.path {
        let path = source.read("path", value, |text| {
            let path: Path = text.parse()?;
            if let Some(other) = paths
                .iter()
                .find(|other| other.local == path.local && other.server == path.server)
            {
                return Err(Problem::new(format!(
                    "the same path is already given as `{other}`"
                )));
            }
            if paths.iter().any(|other| other.name == path.name) {
                return Err(
                    Problem::new(format!("another path has the name `{}`", path.name))
                        .hint("add `,name=NAME` to one of them"),
                );
            }
            if paths.len() == MAX_PATHS {
                return Err(Problem::new(format!(
                    "a session has at most {MAX_PATHS} paths"
                )));
            }
            Ok(path)
        })?;
        paths.push(path);
    }
    if paths.is_empty() {
        paths.push(Path::default());
    }
    Ok(paths)
}

fn usage(source: &Source<RawClient>, paths: &[Path]) -> Result<Option<PathBuf>, ConfigError> {
    match &source.raw.usage {
        Some(value) if value.text == "off" => Ok(None),
        Some(value) => Ok(Some(source.resolve(value))),
        None => match default_state("usage.toml") {
            None if paths.iter().any(|path| path.budget.is_some()) => Err(Problem::new(NO_STATE)
                .hint("name the file that keeps what paths have carried: --usage FILE, or `off`")
                .at(source.missing("usage"))),
            found => Ok(found),
        },
    }
}

fn gso(source: &Source<impl Raw>, value: Option<&Written>) -> Result<Offload, ConfigError> {
    let Some(value) = value else {
        return Ok(Offload::default());
    };
    source.read("gso", value, |text| {
        text.parse()
            .map_err(|known| Problem::new(format!("`{text}` is not one of {known}")))
    })
}

fn objects(source: &Source<RawClient>) -> Result<AsObjects, ConfigError> {
    let Some(value) = &source.raw.objects else {
        return Ok(AsObjects::default());
    };
    source.read("objects", value, |text| {
        text.parse().map_err(|()| {
            Problem::new(format!(
                "`{text}` is not one of {}",
                AsObjects::NAMES.join(", ")
            ))
            .hint(suggest(text, &AsObjects::NAMES, "choice"))
        })
    })
}

fn forwards(source: &Source<RawClient>) -> Result<Vec<Forward>, ConfigError> {
    let read = |value| source.read("forward", value, str::parse);
    source.raw.forward.iter().map(read).collect()
}

fn identity<R: Raw>(source: &Source<R>, value: Option<&Written>) -> Result<PathBuf, ConfigError> {
    match value {
        Some(value) => Ok(source.resolve(value)),
        None => default_identity().ok_or_else(|| {
            Problem::new(NO_CONFIGURATION)
                .hint("name the key file: --identity FILE")
                .at(source.missing("identity"))
        }),
    }
}

fn congestion<R: Raw>(
    source: &Source<R>,
    value: Option<&Written>,
) -> Result<Congestion, ConfigError> {
    match value {
        Some(value) => source.read("congestion", value, str::parse),
        None => Ok(SessionConfig::default().congestion),
    }
}

fn repair_budget<R: Raw>(
    source: &Source<R>,
    value: Option<&Written>,
) -> Result<Option<f64>, ConfigError> {
    value
        .map(|value| source.read("repair-budget", value, redundancy))
        .transpose()
}

fn metrics<R: Raw>(
    source: &Source<R>,
    value: Option<&Written>,
) -> Result<Option<SocketAddr>, ConfigError> {
    value
        .map(|value| source.read("metrics", value, listen_address))
        .transpose()
}

fn metrics_names<R: Raw>(
    source: &Source<R>,
    values: &[Written],
) -> Result<Vec<String>, ConfigError> {
    let read = |value| {
        source.read("metrics-name", value, |text| {
            let name = text.parse::<HostPort>().ok().map(|name| name.host);
            match name {
                Some(Host::Name(name)) if name.eq_ignore_ascii_case(text) => Ok(name),
                Some(Host::Ip(_)) => {
                    Err(Problem::new("addresses are always answered").hint("leave it out"))
                }
                _ => Err(Problem::new(format!("`{text}` is not a host name"))
                    .hint("write it without a port, for example `router.example`")),
            }
        })
    };
    values.iter().map(read).collect()
}

fn control_path<R: Raw>(
    source: &Source<R>,
    value: Option<&Written>,
    role: Role,
) -> Option<control::Place> {
    match value {
        Some(value) if value.text == "off" => None,
        Some(value) => Some(control::Place::Chosen(source.resolve(value))),
        None => Some(control::Place::Usual(control::usual_path(role))),
    }
}

fn idle_timeout<R: Raw>(
    source: &Source<R>,
    value: Option<&Written>,
) -> Result<Duration, ConfigError> {
    let Some(value) = value else {
        return Ok(IDLE_TIMEOUT);
    };
    source.read("idle-timeout", value, |text| {
        let timeout = duration(text)?;
        if IDLE_RANGE.contains(&timeout) {
            Ok(timeout)
        } else {
            Err(Problem::new(format!("`{text}` is not between 1s and 24h")))
        }
    })
}

fn wait<R: Raw>(
    source: &Source<R>,
    value: Option<&Written>,
) -> Result<Option<Duration>, ConfigError> {
    value
        .map(|value| source.read("wait", value, duration))
        .transpose()
}
