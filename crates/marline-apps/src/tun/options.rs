//! How a tunnel is wanted.

use super::{Pool, Prefixes, Rules};
use ipnet::IpNet;
use marline_base::text::Problem;
use marline_proto::sched::Choice;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// A client's tunnel.
#[derive(Debug, Clone, PartialEq)]
pub struct TunIn {
    /// Name of the device.
    pub device: String,
    /// What is done to the system, and undone in the end.
    pub setup: ClientSetup,
    /// Networks behind the tunnel.
    pub routes: Vec<IpNet>,
    /// Networks behind this host whose addresses are known at the server.
    pub announced: Vec<IpNet>,
    /// Name servers behind the tunnel.
    pub resolvers: Vec<Resolver>,
    /// How conversations are carried.
    pub rules: Rules,
}

/// A server's tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TunOut {
    /// Name of the device.
    pub device: String,
    /// Whether the system is set up.
    pub setup: TunSetup,
    /// Networks from which clients get addresses; `None` for those of this server's key.
    pub pool: Option<Pool>,
    /// Where clients' addresses are kept across restarts, if they are.
    pub state: Option<PathBuf>,
    /// Networks behind clients.
    pub prefixes: Prefixes,
    /// Clients reach each other.
    pub peers: bool,
    /// The scheduler of what goes to clients whose paths have different costs; `None` for the
    /// session's default.
    pub by_cost: Option<Choice>,
}

/// A name server behind the tunnel: `10.77.0.1`, or `10.77.0.1,corp.example` for names of that
/// domain alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolver {
    /// Where it listens, port 53.
    pub address: IpAddr,
    /// The domains that it is asked for; all if there are none.
    pub domains: Vec<String>,
}

impl FromStr for Resolver {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let mut parts = text.split(',');
        let address = parts.next().unwrap_or_default();
        let address = address.parse().map_err(|_| {
            Problem::new(format!("`{address}` is no address"))
                .hint("write `9.9.9.9`, or `10.1.0.53,corp.example` for the names of a domain")
        })?;
        // RFC 1035 section 2.3.4, and what no shell or file takes for something else.
        let is_label = |label: &str| {
            let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
            (1..=63).contains(&label.len()) && label.bytes().all(plain)
        };
        let domains = parts.map(|domain| {
            let name = domain.trim_end_matches('.');
            match name.len() <= 253 && name.split('.').all(is_label) {
                true => Ok(name.to_owned()),
                false => Err(Problem::new(format!("`{domain}` is no domain"))),
            }
        });
        Ok(Resolver {
            address,
            domains: domains.collect::<Result<_, _>>()?,
        })
    }
}

/// What a client does to its system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientSetup {
    /// Addresses and routes; without it, nothing, and the commands are shown.
    pub on: bool,
    /// Forwarding and address translation for the networks behind this host, too.
    pub gateway: bool,
    /// Nothing leaves this host but through the tunnel, also before there is one.
    pub strict: bool,
}

/// What a server does to its system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TunSetup {
    /// Nothing; it shows the commands.
    Off,
    /// Addresses, forwarding and address translation, undone in the end.
    On,
    /// Addresses and forwarding.
    WithoutNat,
}
