//! Which targets a server lets its clients reach.
//!
//! Order of judgement, on the very address that will be connected to, after resolution, and on each
//! IPv4 address that an IPv6 one may lead to:
//! 1. a deny rule that matches forbids;
//! 2. an address that is not public is forbidden, unless an allow rule names it by an address or
//!    network that lies wholly within the same special range: `10.1.0.0/16` opens those,
//!    `0.0.0.0/0` opens no private address;
//! 3. an address of the server's own host is forbidden, unless an allow rule names it by an address
//!    or network: `0.0.0.0/0`, which is everything, names none;
//! 4. with allow rules, one must match; without, every public address is allowed.

mod embedded;
mod own;
mod rule;
mod special;
mod translators;

pub use own::OwnAddresses;
pub use rule::Rule;
pub use translators::{DISCOVERY_NAME, Prefix, Translators};

use crate::destination::Host;
use embedded::embedded_v4;
use special::special;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// How long after it came an own address may still be taken for another by what is judged packet by
/// packet. To ask the system for changes takes about a microsecond, a tenth of what a packet takes
/// in all.
const PACKET_AGE: Duration = Duration::from_millis(1);

/// Allow and deny rules of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    allow: Vec<Rule>,
    deny: Vec<Rule>,
}

/// Applies the rules where the server runs: its host's own addresses and its network's translators
/// matter. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Judge {
    /// They may change while the server runs.
    rules: Arc<RwLock<Arc<Policy>>>,
    own: Arc<OwnAddresses>,
    translators: Arc<Translators>,
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
    /// The address is the server's own host's, and no allow rule opens it.
    #[error("{0} is this host's own, and no allow-target rule names it by address")]
    Own(IpAddr),
    /// It is not known yet which IPv6 addresses lead to IPv4 ones.
    #[error("the resolver has not said yet whether there is a NAT64 translator")]
    NotYet,
    /// There are allow rules, and none matches.
    #[error("no allow-target rule matches it")]
    NoRule,
}

impl Policy {
    /// A policy of these rules. Without allow rules every public address is allowed.
    pub fn new(allow: Vec<Rule>, deny: Vec<Rule>) -> Self {
        Policy { allow, deny }
    }

    /// For a client with rules of its `own`: its allow rules in place of these if it has any, and
    /// its deny rules beside these.
    #[must_use]
    pub fn with(&self, own: &Policy) -> Self {
        Policy {
            allow: match own.allow.is_empty() {
                true => self.allow.clone(),
                false => own.allow.clone(),
            },
            deny: self.deny.iter().chain(&own.deny).cloned().collect(),
        }
    }

    /// The deny rule that might hold, if there is one.
    fn denied(&self, name: Option<&str>, address: IpAddr, port: Port) -> Option<&Rule> {
        let covers = |rule: &&Rule| rule.may_cover(port) && rule.names(name, address);
        self.deny.iter().find(covers)
    }

    fn opens(&self, address: IpAddr, port: Port) -> bool {
        self.allow.iter().any(|rule| rule.opens(address, port))
    }
}

impl Judge {
    /// Of these rules at a host with these own addresses, whose network has these translators.
    pub fn new(rules: Policy, own: Arc<OwnAddresses>, translators: Arc<Translators>) -> Self {
        Judge {
            rules: Arc::new(RwLock::new(Arc::new(rules))),
            own,
            translators,
        }
    }

    /// Of these rules at this host, with the translators of RFC 6052 section 2.1 and no others.
    ///
    /// # Errors
    /// When the system does not say which addresses are its own.
    pub fn here(rules: Policy) -> std::io::Result<Self> {
        let own = Arc::new(OwnAddresses::of_this_host([])?);
        let translators = Arc::new(Translators::configured(Vec::new()));
        Ok(Judge::new(rules, own, translators))
    }

    /// Another one of these rules at the same host.
    #[must_use]
    pub fn with_rules(&self, rules: Arc<Policy>) -> Self {
        Judge {
            rules: Arc::new(RwLock::new(rules)),
            ..self.clone()
        }
    }

    /// Judges by these rules from now on, as do its clones.
    pub fn set_rules(&self, rules: Arc<Policy>) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }

    /// The rules of now.
    pub fn rules(&self) -> Arc<Policy> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&rules)
    }

    /// The host's own addresses.
    pub fn own(&self) -> &OwnAddresses {
        &self.own
    }

    /// The network's translators.
    pub fn translators(&self) -> &Translators {
        &self.translators
    }

    /// Waits until `address` can be judged: at the start, translators may not be known yet.
    pub(super) async fn ready(&self, address: IpAddr) {
        if address.to_canonical().is_ipv6() {
            self.translators.known().await;
        }
    }

    /// Judges the connection to `address`, which the client named as `host`.
    ///
    /// # Errors
    /// Why it is forbidden.
    pub fn check(&self, host: &Host, address: SocketAddr) -> Result<(), Denied> {
        let port = Port::Number(address.port());
        self.judge(name_of(host), address.ip(), port, Duration::ZERO)
    }

    /// Judges one more datagram to `address`, which has been judged before: much may have changed
    /// since.
    ///
    /// # Errors
    /// Why it is forbidden.
    pub fn check_again(&self, host: &Host, address: SocketAddr) -> Result<(), Denied> {
        let port = Port::Number(address.port());
        self.judge(name_of(host), address.ip(), port, PACKET_AGE)
    }

    /// Judges a packet to `address`.
    ///
    /// # Errors
    /// Why it is forbidden.
    pub fn check_packet(&self, address: IpAddr, port: Port) -> Result<(), Denied> {
        // Packets do not wait.
        if self.is_undecided(address) {
            return Err(Denied::NotYet);
        }
        self.judge(None, address, port, PACKET_AGE)
    }

    /// Is it too early to judge `address`, because translators are not known yet?
    pub fn is_undecided(&self, address: IpAddr) -> bool {
        address.is_ipv6() && !self.translators.are_known()
    }

    /// Does a rule deny a packet to `address`? For addresses that are allowed otherwise.
    pub fn denies_packet(&self, address: IpAddr, port: Port) -> bool {
        let rules = self.rules();
        rules.denied(None, address.to_canonical(), port).is_some()
    }

    /// Is `address` one of this host's own?
    pub fn is_own(&self, address: IpAddr) -> bool {
        self.own.contains(None, address, PACKET_AGE)
    }

    /// Does an allow rule name `address` by address? For addresses that are closed otherwise.
    pub fn opens(&self, address: IpAddr, port: Port) -> bool {
        self.rules().opens(address, port)
    }

    fn judge(
        &self,
        name: Option<&str>,
        ip: IpAddr,
        port: Port,
        age: Duration,
    ) -> Result<(), Denied> {
        let ip = ip.to_canonical();
        let rules = self.rules();
        self.judge_one(&rules, name, ip, port, age)?;
        if let IpAddr::V6(v6) = ip {
            // Where a translator would deliver.
            let inner = self.translators.with(|known| embedded_v4(v6, known));
            for address in inner {
                self.judge_one(&rules, name, address.into(), port, age)?;
            }
        }
        let allow = &rules.allow;
        let covers = |rule: &Rule| rule.covers(port) && rule.names(name, ip);
        match allow.is_empty() || allow.iter().any(covers) {
            true => Ok(()),
            false => Err(Denied::NoRule),
        }
    }

    fn judge_one(
        &self,
        rules: &Policy,
        name: Option<&str>,
        address: IpAddr,
        port: Port,
        age: Duration,
    ) -> Result<(), Denied> {
        if let Some(rule) = rules.denied(name, address, port) {
            return Err(Denied::ByRule(rule.to_string()));
        }
        if let Some(special) = special(address) {
            let allow = &rules.allow;
            let opens = |rule: &Rule| rule.opens_within(special.net, address, port);
            return match allow.iter().any(opens) {
                true => Ok(()),
                false => Err(Denied::NotPublic {
                    address,
                    range: special.what,
                }),
            };
        }
        // The system is asked last: that costs most.
        match rules.opens(address, port) || !self.own.contains(name, address, age) {
            true => Ok(()),
            false => Err(Denied::Own(address)),
        }
    }
}

/// The name by which rules know a target, if it was named by one.
fn name_of(host: &Host) -> Option<&str> {
    match host {
        Host::Name(name) => Some(name.strip_suffix('.').unwrap_or(name)),
        Host::Ip(_) => None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
