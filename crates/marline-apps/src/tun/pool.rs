//! The addresses inside a tunnel: the server's, and one for each client, by a number that is the
//! same in both families.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use marline_base::text::Problem;
use sha2::{Digest, Sha256};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The number of the server.
const SERVER: u32 = 1;
/// The lowest number of a client.
pub(super) const FIRST: u32 = 2;
/// Most clients, however large the networks are.
const MOST: u32 = 65_534;
const EXAMPLE: &str = "write one network of each family or one of them: `10.77.0.0/24,fd77::/64`";

/// Networks from which addresses are given: one, or one of each family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool {
    v4: Option<Ipv4Net>,
    v6: Option<Ipv6Net>,
}

impl Pool {
    /// When none is configured: 10.77.0.0/24, and a unique local network (RFC 4193) of this
    /// server's own, by its key.
    pub fn of_server(key: &[u8]) -> Self {
        let hash = Sha256::digest(key);
        let mut octets = [0; 16];
        octets[0] = 0xfd;
        octets[1..6].copy_from_slice(&hash[..5]);
        Pool {
            v4: Ipv4Net::new(Ipv4Addr::new(10, 77, 0, 0), 24).ok(),
            v6: Ipv6Net::new(Ipv6Addr::from(octets), 64).ok(),
        }
    }

    /// The networks.
    pub fn networks(&self) -> impl Iterator<Item = IpNet> + use<> {
        let v4 = self.v4.map(IpNet::V4);
        v4.into_iter().chain(self.v6.map(IpNet::V6))
    }

    /// Does `address` belong to the tunnel?
    pub fn contains(&self, address: IpAddr) -> bool {
        self.networks().any(|net| net.contains(&address))
    }

    /// The highest number of a client.
    pub fn last(&self) -> u32 {
        let hosts = |bits: u8| match bits {
            // Neither the network's own address nor its broadcast.
            0..16 => (1u32 << bits).saturating_sub(2),
            _ => MOST,
        };
        let v4 = self.v4.map_or(MOST, |net| hosts(32 - net.prefix_len()));
        let v6 = self.v6.map_or(MOST, |net| hosts(128 - net.prefix_len()));
        v4.min(v6).min(MOST)
    }

    /// The server's addresses, each with its network's prefix length.
    pub fn server(&self) -> Vec<IpNet> {
        self.host(SERVER)
    }

    /// The addresses of the client of this number, 2 to [`last`](Self::last).
    pub fn client(&self, number: u32) -> Vec<IpNet> {
        self.host(number)
    }

    /// The number of the client that has this address; `None` where no client can have it.
    pub fn number(&self, address: IpAddr) -> Option<u32> {
        let number = match (address, self.v4, self.v6) {
            (IpAddr::V4(address), Some(net), _) if net.contains(&address) => {
                address.to_bits() & net.hostmask().to_bits()
            }
            (IpAddr::V6(address), _, Some(net)) if net.contains(&address) => {
                u32::try_from(address.to_bits() & net.hostmask().to_bits()).ok()?
            }
            _ => return None,
        };
        (FIRST..=self.last()).contains(&number).then_some(number)
    }

    fn host(&self, number: u32) -> Vec<IpNet> {
        let v4 = self.v4.and_then(|net| {
            let address = Ipv4Addr::from_bits(net.network().to_bits() | number);
            Ipv4Net::new(address, net.prefix_len()).ok()
        });
        let v6 = self.v6.and_then(|net| {
            let address = Ipv6Addr::from_bits(net.network().to_bits() | u128::from(number));
            Ipv6Net::new(address, net.prefix_len()).ok()
        });
        v4.map(IpNet::V4)
            .into_iter()
            .chain(v6.map(IpNet::V6))
            .collect()
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.networks().map(|net| net.to_string()).collect();
        f.write_str(&texts.join(","))
    }
}

impl FromStr for Pool {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let mut pool = Pool { v4: None, v6: None };
        for word in text.split(',').map(str::trim) {
            let net: IpNet = word
                .parse()
                .map_err(|_| Problem::new(format!("`{word}` is not a network")).hint(EXAMPLE))?;
            if net.trunc() != net {
                return Err(
                    Problem::new(format!("`{net}` has bits set behind its prefix"))
                        .hint(format!("write `{}`", net.trunc())),
                );
            }
            let twice = match net {
                IpNet::V4(net) => pool.v4.replace(net).is_some(),
                IpNet::V6(net) => pool.v6.replace(net).is_some(),
            };
            if twice {
                return Err(Problem::new("two networks of one family are given").hint(EXAMPLE));
            }
            if net.addr().is_multicast() || net.addr().is_loopback() || net.prefix_len() < 8 {
                return Err(
                    Problem::new(format!("`{net}` cannot be a tunnel's network"))
                        .hint("choose a private one, such as `10.77.0.0/24`"),
                );
            }
        }
        if pool.last() < FIRST {
            return Err(Problem::new(format!("`{text}` has no room for a client"))
                .hint("the longest prefixes are /30 and /126"));
        }
        Ok(pool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_the_same_in_both_families() {
        let pool: Pool = "10.77.0.0/24, fd77::/64".parse().unwrap();
        let texts = |nets: Vec<IpNet>| nets.iter().map(IpNet::to_string).collect::<Vec<_>>();
        assert_eq!(texts(pool.server()), ["10.77.0.1/24", "fd77::1/64"]);
        assert_eq!(texts(pool.client(17)), ["10.77.0.17/24", "fd77::11/64"]);
        assert_eq!(pool.last(), 254);
        assert_eq!(pool.to_string(), "10.77.0.0/24,fd77::/64");
        assert!(pool.contains("fd77::ffff".parse().unwrap()));
        assert!(!pool.contains("10.78.0.1".parse().unwrap()));
        for strange in [
            "10.77.0.0",
            "10.77.0.1",
            "10.77.0.255",
            "10.78.0.2",
            "fd77::ff",
            "fd77::1:0:2",
        ] {
            assert_eq!(pool.number(strange.parse().unwrap()), None, "{strange}");
        }
        assert_eq!("fd77::/64".parse::<Pool>().unwrap().last(), 65_534);
        assert_eq!("10.0.0.0/30".parse::<Pool>().unwrap().last(), 2);
    }

    #[test]
    fn every_server_has_a_network_of_its_own() {
        let [a, b] = [Pool::of_server(&[1; 32]), Pool::of_server(&[2; 32])];
        assert_ne!(a, b);
        assert_eq!(a, Pool::of_server(&[1; 32]));
        assert_eq!(a.to_string().parse::<Pool>().unwrap(), a);
        assert!(a.to_string().starts_with("10.77.0.0/24,fd"));
    }

    #[test]
    fn wrong_pools_are_refused_with_the_reason() {
        for (text, reason) in [
            ("", "not a network"),
            ("10.77.0.0", "not a network"),
            ("10.77.0.1/24", "bits set"),
            ("10.0.0.0/24,10.1.0.0/24", "two networks of one family"),
            ("10.0.0.0/31", "no room"),
            ("fd77::/127", "no room"),
            ("224.0.0.0/24", "cannot be"),
            ("0.0.0.0/0", "cannot be"),
        ] {
            let problem = text.parse::<Pool>().expect_err(text);
            assert!(problem.message.contains(reason), "{text}: {problem}");
        }
    }

    proptest! {
        #[test]
        fn every_number_has_addresses_of_its_own_inside_the_pool(
            v4 in 8..=30u8, v6 in 8..=126u8, bits: u32, number: u32, other: u32,
        ) {
            let v4 = Ipv4Net::new(Ipv4Addr::from_bits(bits & 0x3fff_ffff | 0x0100_0000), v4).unwrap();
            let v6 = Ipv6Net::new(Ipv6Addr::from_bits(0xfd << 120 | u128::from(bits) << 64), v6).unwrap();
            let text = format!("{},{}", v4.trunc(), v6.trunc());
            let Ok(pool) = text.parse::<Pool>() else {
                return Ok(());
            };
            let within = |n: u32| FIRST + n % (pool.last() - FIRST + 1);
            let (number, other) = (within(number), within(other));
            for (net, its) in pool.networks().zip(pool.client(number)) {
                prop_assert!(net.contains(&its.addr()));
                prop_assert!(its.addr() != net.network() && its.addr() != net.broadcast());
                prop_assert_eq!(pool.number(its.addr()), Some(number));
            }
            prop_assert!(pool.client(number) != pool.server());
            prop_assert_eq!(pool.client(number) == pool.client(other), number == other);
        }
    }
}
