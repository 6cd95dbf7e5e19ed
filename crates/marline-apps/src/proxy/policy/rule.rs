//! One rule for targets, as it is written.

use super::{Host, Port};
use crate::proxy::{Protocol, Target};
use ipnet::IpNet;
use marline_base::text::Problem;
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// One rule: `*`, `HOST`, `*.DOMAIN`, `IP` or `CIDR`, each with `[:PORT[-PORT]]`; IPv6 with a port
/// in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    hosts: Hosts,
    ports: RangeInclusive<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    Any,
    Net(IpNet),
    /// This very name.
    Name(String),
    /// Every name below this one; the one itself is not meant.
    Below(String),
}

impl Rule {
    /// Holds the rule for this port for certain?
    pub(super) fn covers(&self, port: Port) -> bool {
        self.ports == (1..=u16::MAX)
            || matches!(port, Port::Number(port) if self.ports.contains(&port))
    }

    /// Could the rule hold for this port?
    pub(super) fn may_cover(&self, port: Port) -> bool {
        self.covers(port) || port == Port::Hidden
    }

    pub(super) fn names(&self, name: Option<&str>, ip: IpAddr) -> bool {
        match &self.hosts {
            Hosts::Any => true,
            Hosts::Net(net) => net.contains(&ip),
            Hosts::Name(this) => name == Some(this),
            Hosts::Below(domain) => name
                .and_then(|name| name.strip_suffix(domain.as_str()))
                .is_some_and(|rest| rest.ends_with('.') && rest.len() > 1),
        }
    }

    /// Whether the rule names `ip` by an address or a network that is not everything.
    pub(super) fn opens(&self, ip: IpAddr, port: Port) -> bool {
        self.named_net(ip, port)
            .is_some_and(|net| net.prefix_len() > 0)
    }

    /// Whether the rule names `ip`, which lies in the special range `range`, and nothing outside
    /// that range.
    pub(super) fn opens_within(&self, range: IpNet, ip: IpAddr, port: Port) -> bool {
        self.named_net(ip, port)
            .is_some_and(|net| range.contains(net))
    }

    /// The network by which the rule names `ip`.
    fn named_net(&self, ip: IpAddr, port: Port) -> Option<&IpNet> {
        match &self.hosts {
            Hosts::Net(net) if self.covers(port) && net.contains(&ip) => Some(net),
            _ => None,
        }
    }
}

impl FromStr for Rule {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let wrong = |message: String| {
            Problem::new(message).hint(
                "write *, HOST, *.DOMAIN, IP or CIDR, and a port if you like: `10.1.0.0/16:443`, `[fd00::/8]:80-89`",
            )
        };
        let (hosts, ports) = split_ports(text).map_err(wrong)?;
        let hosts = if hosts == "*" {
            Hosts::Any
        } else if hosts.contains('/') {
            let net: IpNet = hosts
                .parse()
                .map_err(|_| wrong(format!("`{hosts}` is not a network")))?;
            if net.trunc() != net {
                return Err(
                    Problem::new(format!("`{net}` has bits set behind its prefix"))
                        .hint(format!("write `{}`", net.trunc())),
                );
            }
            Hosts::Net(net)
        } else if let Ok(address) = hosts.parse::<IpAddr>() {
            Hosts::Net(address.to_canonical().into())
        } else {
            let name = hosts
                .strip_prefix("*.")
                .unwrap_or(hosts)
                .to_ascii_lowercase();
            let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
            // A name that the target encoding would refuse can never match.
            Target::new(Protocol::Tcp, Host::Name(name.clone()), 1).map_err(|_| {
                wrong(format!(
                    "`{hosts}` is neither a host pattern nor an address"
                ))
            })?;
            if hosts.starts_with("*.") {
                Hosts::Below(name)
            } else {
                Hosts::Name(name)
            }
        };
        Ok(Rule { hosts, ports })
    }
}

fn split_ports(text: &str) -> Result<(&str, RangeInclusive<u16>), String> {
    let (hosts, ports) = if let Some(rest) = text.strip_prefix('[') {
        match rest.split_once(']') {
            Some((hosts, "")) => (hosts, None),
            Some((hosts, ports)) => match ports.strip_prefix(':') {
                Some(ports) => (hosts, Some(ports)),
                None => return Err(format!("`{ports}` after `]` is not a port")),
            },
            None => return Err(format!("`{text}` lacks its closing `]`")),
        }
    } else {
        match text.split_once(':') {
            // More than one colon is an IPv6 address without a port.
            Some((hosts, ports)) if !ports.contains(':') => (hosts, Some(ports)),
            _ => (text, None),
        }
    };
    let port = |text: &str| match text.parse::<u16>() {
        Ok(port) if port != 0 => Ok(port),
        _ => Err(format!("`{text}` is not a port from 1 to 65535")),
    };
    let ports = match ports {
        None | Some("*") => 1..=u16::MAX,
        Some(ports) => match ports.split_once('-') {
            Some((low, high)) => port(low)?..=port(high)?,
            None => port(ports)?..=port(ports)?,
        },
    };
    if ports.is_empty() {
        return Err(format!(
            "the ports {}-{} are the wrong way round",
            ports.start(),
            ports.end()
        ));
    }
    Ok((hosts, ports))
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::Any => f.write_str("*")?,
            Hosts::Net(net @ IpNet::V6(_)) => write!(f, "[{net}]")?,
            Hosts::Net(net) => write!(f, "{net}")?,
            Hosts::Name(name) => f.write_str(name)?,
            Hosts::Below(name) => write!(f, "*.{name}")?,
        }
        match (*self.ports.start(), *self.ports.end()) {
            (1, u16::MAX) => Ok(()),
            (low, high) if low == high => write!(f, ":{low}"),
            (low, high) => write!(f, ":{low}-{high}"),
        }
    }
}
