//! NAT64 translators of the server's network: behind their prefixes, IPv6 addresses lead to IPv4
//! ones.

use ipnet::Ipv6Net;
use marline_base::text::Problem;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// The name that has only IPv4 addresses, 192.0.0.170 and 192.0.0.171; a resolver that shows IPv6
/// ones has a translator (RFC 7050).
pub const DISCOVERY_NAME: &str = "ipv4only.arpa";
const WELL_KNOWN: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 0, 170), Ipv4Addr::new(192, 0, 0, 171)];
/// The lengths of RFC 6052 section 2.2.
const LENGTHS: [u8; 6] = [32, 40, 48, 56, 64, 96];
/// The byte that stays zero (RFC 6052 section 2.2), and no part of the IPv4 address.
const RESERVED: usize = 8;
/// Most prefixes that are taken over from a resolver.
const MAX_PREFIXES: usize = 16;
/// How long IPv6 targets wait for the first discovery; a name may take as long.
const PATIENCE: Duration = Duration::from_secs(5);

/// The prefix of a translator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix(Ipv6Net);

impl Prefix {
    /// The prefix of this length that `address` has, if translators can have it.
    pub(super) fn around(address: Ipv6Addr, length: u8) -> Option<Self> {
        let net = Ipv6Net::new(address, length).ok()?.trunc();
        let reserved = net.addr().octets()[RESERVED];
        (LENGTHS.contains(&length) && reserved == 0).then_some(Prefix(net))
    }

    /// The IPv4 address to which the translator would send what is for `address`; `None` when that
    /// has another prefix.
    pub(super) fn v4_of(self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        if !self.0.contains(&address) {
            return None;
        }
        let octets = address.octets();
        let first = usize::from(self.0.prefix_len() / 8);
        let behind = (first..octets.len()).filter(|at| *at != RESERVED).take(4);
        let mut v4 = [0; 4];
        for (to, at) in v4.iter_mut().zip(behind) {
            *to = octets[at];
        }
        Some(v4.into())
    }

    /// The prefixes under which a resolver shows the well-known addresses (RFC 7050 section 3).
    fn discovered(answers: impl Iterator<Item = IpAddr>) -> Vec<Prefix> {
        let mut found = Vec::new();
        for answer in answers {
            let IpAddr::V6(answer) = answer else {
                continue;
            };
            for prefix in LENGTHS.map(|length| Prefix::around(answer, length)) {
                let shows = |p: &Prefix| p.v4_of(answer).is_some_and(|v4| WELL_KNOWN.contains(&v4));
                let new = prefix.filter(|p| shows(p) && !found.contains(p));
                found.extend(new);
            }
        }
        found.truncate(MAX_PREFIXES);
        found
    }
}

impl FromStr for Prefix {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let hint = "write an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits, such as `2001:db8:64::/96`, or `off`";
        let net: Ipv6Net = text.parse().map_err(|_| {
            Problem::new(format!("`{text}` is no prefix of a NAT64 translator")).hint(hint)
        })?;
        match Prefix::around(net.addr(), net.prefix_len()) {
            Some(prefix) if prefix.0 == net => Ok(prefix),
            _ => Err(Problem::new(format!(
                "`{text}` cannot be the prefix of a NAT64 translator (RFC 6052)"
            ))
            .hint(hint)),
        }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The translators that are known of; `None` until the first discovery is over.
#[derive(Debug)]
pub struct Translators(watch::Sender<Option<Vec<Prefix>>>);

impl Translators {
    /// With these prefixes and no others.
    pub fn configured(prefixes: Vec<Prefix>) -> Self {
        Translators(watch::Sender::new(Some(prefixes)))
    }

    /// With those that [`discovered`](Self::discovered) is given.
    pub fn to_be_discovered() -> Self {
        Translators(watch::Sender::new(None))
    }

    /// What the resolver answers to [`DISCOVERY_NAME`]; `None` when it does not. What an earlier
    /// answer showed is kept then.
    pub fn discovered(&self, answers: Option<&[IpAddr]>) {
        let found = answers.map(|answers| Prefix::discovered(answers.iter().copied()));
        self.0.send_if_modified(|known| {
            let now = found.or_else(|| known.take()).unwrap_or_default();
            let changed = known.as_ref() != Some(&now);
            if changed {
                for prefix in &now {
                    tracing::info!("the resolver has a NAT64 translator with the prefix {prefix}");
                }
            }
            *known = Some(now);
            changed
        });
    }

    /// Waits until they are known, or long enough.
    pub(super) async fn known(&self) {
        let mut known = self.0.subscribe();
        let found = known.wait_for(Option::is_some);
        if timeout(PATIENCE, found).await.is_err() {
            self.discovered(None);
        }
    }

    /// Are they known?
    pub(super) fn are_known(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Calls `look` with those that are known.
    pub(super) fn with<T>(&self, look: impl FnOnce(&[Prefix]) -> T) -> T {
        look(self.0.borrow().as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_behind_prefixes_of_every_length() {
        // The table of RFC 6052 section 2.4.
        for (prefix, address) in [
            ("2001:db8::/32", "2001:db8:c000:221::"),
            ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
            ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
        ] {
            let prefix: Prefix = prefix.parse().unwrap();
            let v4 = prefix.v4_of(address.parse().unwrap());
            assert_eq!(v4, Some(Ipv4Addr::new(192, 0, 2, 33)), "{prefix}");
            assert_eq!(prefix.v4_of(Ipv6Addr::LOCALHOST), None);
            assert_eq!(prefix.to_string().parse(), Ok(prefix));
        }
    }

    #[test]
    fn a_resolver_shows_its_prefixes() {
        let answers = |texts: &[&str]| {
            let parsed: Vec<IpAddr> = texts.iter().map(|text| text.parse().unwrap()).collect();
            let found = Prefix::discovered(parsed.into_iter());
            found.iter().map(Prefix::to_string).collect::<Vec<_>>()
        };
        assert!(answers(&["192.0.0.170", "192.0.0.171", "2606:4700::1"]).is_empty());
        let both = ["64:ff9b::192.0.0.170", "64:ff9b::192.0.0.171"];
        assert_eq!(answers(&both), ["64:ff9b::/96"]);
        assert_eq!(
            answers(&["2001:db8:122:c000:0:aa00::", "2001:db8:7::192.0.0.171"]),
            ["2001:db8:122::/48", "2001:db8:7::/96"]
        );
    }

    #[test]
    fn wrong_prefixes_are_refused() {
        for text in [
            "64:ff9b::",
            "10.0.0.0/8",
            "2001:db8::/44",
            "2001:db8::1/96",
            "2001:db8:0:0:100::/96",
        ] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_asks_first_waits_for_the_discovery_and_not_for_ever() {
        let translators = Translators::to_be_discovered();
        assert!(!translators.are_known());
        let answers = ["2001:db8::192.0.0.170".parse().unwrap()];
        tokio::join!(translators.known(), async {
            translators.discovered(Some(&answers))
        });
        assert_eq!(translators.with(<[Prefix]>::len), 1);
        // A resolver that fails later does not make the translator go away.
        translators.discovered(None);
        assert_eq!(translators.with(<[Prefix]>::len), 1);
        translators.discovered(Some(&[]));
        assert_eq!(translators.with(<[Prefix]>::len), 0);

        let silent = Translators::to_be_discovered();
        silent.known().await;
        assert!(silent.are_known());
    }
}
