//! Which targets a server lets its clients reach.
//!
//! Order of judgement, on the very address that will be connected to, after resolution:
//! 1. a deny rule that matches forbids;
//! 2. an address that is not public is forbidden, unless an allow rule names it by an address or network that lies
//!    wholly within the same special range: `10.1.0.0/16` opens those, `0.0.0.0/0` opens no private address;
//! 3. with allow rules, one must match; without, every public address is allowed.

use super::target::Host;
use crate::config::Problem;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Allow and deny rules of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
}

/// One rule: `*`, `HOST`, `*.DOMAIN`, `IP` or `CIDR`, each with `[:PORT[-PORT]]`; IPv6 with a port in brackets.
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

/// The port for which rules are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// This one.
    Number(u16),
    /// The protocol has none: only rules for all ports hold.
    Without,
    /// It has one, which cannot be seen: whatever might be forbidden is.
    Hidden,
}

/// Why a target is forbidden.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// A deny rule matches.
    #[error("the rule `{0}` denies it")]
    ByRule(String),
    /// The address is special, and no allow rule opens it.
    #[error("{address} is {range}, and no allow-target rule names it by address")]
    NotPublic {
        /// The address.
        address: IpAddr,
        /// What kind of address that is.
        range: &'static str,
    },
    /// There are allow rules, and none matches.
    #[error("no allow-target rule matches it")]
    NoRule,
}

impl Policy {
    /// A policy of these rules. Without allow rules every public address is allowed.
    pub fn new(allow: Vec<Rule>, deny: Vec<Rule>) -> Self {
        Policy { allow, deny }
    }

    /// Judges the connection to `address`, which the client named as `host`.
    ///
    /// # Errors
    /// Why it is forbidden.
    pub fn check(&self, host: &Host, address: SocketAddr) -> Result<(), Denied> {
        let name = match host {
            Host::Name(name) => Some(name.strip_suffix('.').unwrap_or(name)),
            Host::Ip(_) => None,
        };
        self.judge(name, address.ip(), Port::Number(address.port()))
    }

    /// Judges a packet to `address`.
    ///
    /// # Errors
    /// Why it is forbidden.
    pub fn check_packet(&self, address: IpAddr, port: Port) -> Result<(), Denied> {
        self.judge(None, address, port)
    }

    /// Does a rule deny a packet to `address`? For addresses that are allowed otherwise.
    pub fn denies_packet(&self, address: IpAddr, port: Port) -> bool {
        let address = address.to_canonical();
        self.deny
            .iter()
            .any(|rule| rule.may_cover(port) && rule.names(None, address))
    }

    fn judge(&self, name: Option<&str>, ip: IpAddr, port: Port) -> Result<(), Denied> {
        let ip = ip.to_canonical();
        // An IPv4 address inside an IPv6 one is where a translator would deliver: both are judged.
        let inner = embedded_v4(ip);
        for address in [Some(ip), inner].into_iter().flatten() {
            if let Some(rule) = self
                .deny
                .iter()
                .find(|rule| rule.may_cover(port) && rule.names(name, address))
            {
                return Err(Denied::ByRule(rule.to_string()));
            }
            let Some(special) = special(address) else {
                continue;
            };
            if !self
                .allow
                .iter()
                .any(|rule| rule.opens(special.net, address, port))
            {
                return Err(Denied::NotPublic {
                    address,
                    range: special.what,
                });
            }
        }
        if self.allow.is_empty()
            || self
                .allow
                .iter()
                .any(|rule| rule.covers(port) && rule.names(name, ip))
        {
            Ok(())
        } else {
            Err(Denied::NoRule)
        }
    }
}

impl Rule {
    /// Holds the rule for this port for certain?
    fn covers(&self, port: Port) -> bool {
        self.ports == (1..=u16::MAX)
            || matches!(port, Port::Number(port) if self.ports.contains(&port))
    }

    /// Could the rule hold for this port?
    fn may_cover(&self, port: Port) -> bool {
        self.covers(port) || port == Port::Hidden
    }

    fn names(&self, name: Option<&str>, ip: IpAddr) -> bool {
        match &self.hosts {
            Hosts::Any => true,
            Hosts::Net(net) => net.contains(&ip),
            Hosts::Name(this) => name == Some(this),
            Hosts::Below(domain) => name
                .and_then(|name| name.strip_suffix(domain.as_str()))
                .is_some_and(|rest| rest.ends_with('.') && rest.len() > 1),
        }
    }

    /// Whether the rule names `ip`, which lies in the special range `range`, and nothing outside that range.
    fn opens(&self, range: IpNet, ip: IpAddr, port: Port) -> bool {
        let Hosts::Net(net) = &self.hosts else {
            return false;
        };
        self.covers(port) && range.contains(net) && net.contains(&ip)
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
            super::Target::new(super::Protocol::Tcp, Host::Name(name.clone()), 1).map_err(
                |_| {
                    wrong(format!(
                        "`{hosts}` is neither a host pattern nor an address"
                    ))
                },
            )?;
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

/// A range of addresses that is not the public network.
#[derive(Debug, Clone, Copy)]
struct Special {
    net: IpNet,
    what: &'static str,
}

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8, what: &'static str) -> Special {
    Special {
        net: IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)),
        what,
    }
}

const fn v6(head: [u16; 4], tail: [u16; 4], prefix: u8, what: &'static str) -> Special {
    let [a, b, c, d] = head;
    let [e, f, g, h] = tail;
    Special {
        net: IpNet::V6(Ipv6Net::new_assert(
            Ipv6Addr::new(a, b, c, d, e, f, g, h),
            prefix,
        )),
        what,
    }
}

/// The IANA special-purpose registries (RFC 6890 and its updates), and multicast.
static SPECIAL: &[Special] = &[
    v4(0, 0, 0, 0, 8, "unspecified"),
    v4(10, 0, 0, 0, 8, "private"),
    v4(100, 64, 0, 0, 10, "shared by carriers (RFC 6598)"),
    v4(127, 0, 0, 0, 8, "loopback"),
    v4(169, 254, 0, 0, 16, "link-local"),
    v4(172, 16, 0, 0, 12, "private"),
    v4(192, 0, 0, 0, 24, "reserved for protocols"),
    v4(192, 0, 2, 0, 24, "for documentation"),
    v4(192, 168, 0, 0, 16, "private"),
    v4(198, 18, 0, 0, 15, "for benchmarks"),
    v4(198, 51, 100, 0, 24, "for documentation"),
    v4(203, 0, 113, 0, 24, "for documentation"),
    v4(224, 0, 0, 0, 4, "multicast"),
    v4(240, 0, 0, 0, 4, "reserved"),
    v6([0, 0, 0, 0], [0, 0, 0, 0], 128, "unspecified"),
    v6([0, 0, 0, 0], [0, 0, 0, 1], 128, "loopback"),
    v6(
        [0x64, 0xff9b, 1, 0],
        [0, 0, 0, 0],
        48,
        "for local translation",
    ),
    v6([0x100, 0, 0, 0], [0, 0, 0, 0], 64, "discarded"),
    v6([0x2001, 0, 0, 0], [0, 0, 0, 0], 32, "Teredo"),
    v6([0x2001, 2, 0, 0], [0, 0, 0, 0], 48, "for benchmarks"),
    v6([0x2001, 0xdb8, 0, 0], [0, 0, 0, 0], 32, "for documentation"),
    v6([0x3fff, 0, 0, 0], [0, 0, 0, 0], 20, "for documentation"),
    v6([0x5f00, 0, 0, 0], [0, 0, 0, 0], 16, "for segment routing"),
    v6([0xfc00, 0, 0, 0], [0, 0, 0, 0], 7, "private"),
    v6([0xfe80, 0, 0, 0], [0, 0, 0, 0], 10, "link-local"),
    v6([0xfec0, 0, 0, 0], [0, 0, 0, 0], 10, "site-local"),
    v6([0xff00, 0, 0, 0], [0, 0, 0, 0], 8, "multicast"),
];

fn special(address: IpAddr) -> Option<&'static Special> {
    SPECIAL
        .iter()
        .find(|special| special.net.contains(&address))
}

/// The IPv4 address inside an IPv4-compatible, NAT64 (RFC 6052) or 6to4 (RFC 3056) address. IPv4-mapped ones have
/// already been turned into IPv4.
fn embedded_v4(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    let join = |high: u16, low: u16| {
        Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into())
    };
    match address.segments() {
        // :: and ::1 are addresses of their own.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => join(high, low),
        [0x2002, high, low, ..] => join(high, low),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
