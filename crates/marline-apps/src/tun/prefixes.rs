//! Networks behind clients of a server's tunnel, by the clients' keys: `KEY=NETWORK[+NETWORK]...`.
//! Hosts there appear under their own addresses, so that two sites reach each other both ways.

use ipnet::IpNet;
use marline::identity::PublicKey;
use marline_base::text::Problem;
use std::net::IpAddr;
use std::str::FromStr;

/// Networks behind one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    key: PublicKey,
    networks: Vec<IpNet>,
}

/// Networks behind all clients, none within another one's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefixes(Vec<(IpNet, PublicKey)>);

impl Prefix {
    /// What is behind the client of this key, as it stands behind `=`.
    ///
    /// # Errors
    /// A network that is none.
    pub fn of(key: PublicKey, networks: &str) -> Result<Self, Problem> {
        let networks = networks.split('+').map(|text| network(text.trim()));
        Ok(Prefix {
            key,
            networks: networks.collect::<Result<_, _>>()?,
        })
    }
}

impl FromStr for Prefix {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let (key, networks) = text.split_once('=').ok_or_else(|| {
            Problem::new("it names no networks").hint(
                "write KEY=NETWORKS, the client's key and what is behind it, for example \
                 `marline-pub:...=192.168.7.0/24+fd07::/64`",
            )
        })?;
        let key = key.trim().parse::<PublicKey>().map_err(|error| {
            Problem::new(error.to_string())
                .hint("`marline identity show` on the client prints its key")
        })?;
        Prefix::of(key, networks)
    }
}

/// A network behind a client, as a flag has it: `192.168.7.0/24`.
///
/// # Errors
/// It is none, has bits set behind its prefix, or takes half of all addresses.
pub fn network(text: &str) -> Result<IpNet, Problem> {
    let net: IpNet = text.parse().map_err(|_| {
        Problem::new(format!("`{text}` is not a network")).hint("write `192.168.7.0/24`")
    })?;
    if net.trunc() != net {
        let problem = Problem::new(format!("`{net}` has bits set behind its prefix"));
        return Err(problem.hint(format!("write `{}`", net.trunc())));
    }
    match net.prefix_len() {
        0 | 1 => Err(Problem::new(format!(
            "`{net}` is no network behind a client"
        ))),
        _ => Ok(net),
    }
}

impl Prefixes {
    /// Adds what is behind one client.
    ///
    /// # Errors
    /// A network is within one that is there, or around it.
    pub fn add(&mut self, prefix: Prefix) -> Result<(), Problem> {
        for net in prefix.networks {
            let near =
                |(other, _): &&(IpNet, PublicKey)| other.contains(&net) || net.contains(other);
            if let Some((other, key)) = self.0.iter().find(near) {
                return Err(Problem::new(format!(
                    "`{net}` overlaps {other}, which is behind {key}"
                )));
            }
            self.0.push((net, prefix.key));
        }
        Ok(())
    }

    /// The first that overlaps one of the tunnel's own, whose addresses are other clients'.
    pub fn overlap(&self, own: impl Iterator<Item = IpNet>) -> Option<IpNet> {
        let mut own = own;
        own.find_map(|own| {
            let near = |net: &IpNet| own.contains(net) || net.contains(&own);
            self.networks().find(near)
        })
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All networks.
    pub(super) fn networks(&self) -> impl Iterator<Item = IpNet> {
        self.0.iter().map(|(net, _)| *net)
    }

    /// Whose network an address is in.
    pub(super) fn behind(&self, address: IpAddr) -> Option<PublicKey> {
        let found = self.0.iter().find(|(net, _)| net.contains(&address));
        found.map(|(_, key)| *key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline::identity::Identity;

    fn key() -> PublicKey {
        Identity::generate().unwrap().public_key()
    }

    #[test]
    fn an_address_is_behind_one_client_at_most() {
        let (one, other) = (key(), key());
        let mut prefixes = Prefixes::default();
        let mut add = |text: String| prefixes.add(text.parse().unwrap());
        add(format!("{one}=192.168.7.0/24+fd07::/64")).unwrap();
        add(format!("{other}=192.168.8.0/24")).unwrap();
        let problem = add(format!("{other}=192.168.0.0/16")).unwrap_err();
        assert!(
            problem.message.contains("overlaps 192.168.7.0/24"),
            "{problem}"
        );
        for (address, expected) in [
            ("192.168.7.9", Some(one)),
            ("fd07::9", Some(one)),
            ("192.168.8.9", Some(other)),
            ("192.168.9.9", None),
            ("fd08::9", None),
        ] {
            assert_eq!(
                prefixes.behind(address.parse().unwrap()),
                expected,
                "{address}"
            );
        }
    }

    #[test]
    fn wrong_networks_are_refused_with_the_reason() {
        let key = key();
        for (text, reason) in [
            (key.to_string(), "names no networks"),
            ("marline-pub:x=10.0.0.0/8".to_owned(), "key"),
            (format!("{key}="), "not a network"),
            (
                format!("{key}=192.168.7.1/24"),
                "bits set behind its prefix",
            ),
            (format!("{key}=0.0.0.0/0"), "no network behind a client"),
        ] {
            let problem = text.parse::<Prefix>().expect_err(&text);
            assert!(problem.message.contains(reason), "{text}: {problem}");
        }
    }
}
