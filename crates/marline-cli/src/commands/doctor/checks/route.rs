//! Which way do a path's packets take, and is it the path's own?

use super::super::finding::Finding;
use super::super::links::{NoRoute, Route, Way};
use super::super::system::System;
use marline::carrier::Bind;
use std::net::{IpAddr, SocketAddr};

const NAME: &str = "route";
/// Flags of an interface whose packets need no next hop: `IFF_POINTOPOINT` and `IFF_NOARP` of
/// linux/if.h.
const NO_NEXT_HOP: u64 = 0x10 | 0x80;

/// `addresses`: this host's, each with its interface.
pub(in super::super) fn check(
    system: &System,
    addresses: &[(String, IpAddr)],
    bind: &Bind,
    remote: SocketAddr,
    way: &Result<Way, NoRoute>,
) -> Finding {
    let remote = remote.ip();
    let way = match way {
        Err(NoRoute::Unknown(why)) => return Finding::unknown(NAME, why.to_string()),
        Err(NoRoute::None(why)) => {
            let device = match bind {
                Bind::Interface(name) => name,
                _ => "INTERFACE",
            };
            return Finding::failure(NAME, format!("to {remote}: {why}")).fix(format!(
                "give the link a route: ip route add default via GATEWAY dev {device}"
            ));
        }
        Ok(way) => way,
    };
    let dev = &way.route.dev;
    if let Bind::Address(ip) = bind
        && let Some(owner) = owner(addresses, *ip)
        && owner != dev
        && !remote.is_loopback()
        // To this host itself everything goes by the loopback interface.
        && dev != "lo"
    {
        return Finding::warning(
            NAME,
            format!(
                "{ip} is an address of {owner}, but packets from it leave by {dev}: it is no link \
                 of its own"
            ),
        )
        .fix(format!(
            "name the interface (--path {owner}), or: ip rule add from {ip} table 101; ip route add \
             default via GATEWAY dev {owner} table 101"
        ));
    }
    if !way.is_listed && !needs_no_next_hop(system, dev) {
        return Finding::warning(
            NAME,
            format!(
                "no route leads to {remote} by {dev}: packets are sent as if it were a neighbour \
                 there, and no router gets them"
            ),
        )
        .fix(format!(
            "ip route add default via GATEWAY dev {dev} metric 1000 (other links keep theirs)"
        ));
    }
    let mut text = format!("to {remote} by {dev}");
    if let Some(gateway) = &way.route.gateway {
        text += &format!(" via {gateway}");
    }
    if let Some(source) = way.route.source() {
        text += &format!(" from {source}");
    }
    Finding::fine(NAME, text)
}

fn needs_no_next_hop(system: &System, device: &str) -> bool {
    let flags = system.sysfs.attribute(device, "flags").unwrap_or_default();
    let flags = u64::from_str_radix(flags.trim_start_matches("0x"), 16);
    flags.is_ok_and(|flags| flags & NO_NEXT_HOP != 0)
}

/// The interface that has an address.
fn owner(addresses: &[(String, IpAddr)], ip: IpAddr) -> Option<&str> {
    let mut all = addresses.iter();
    all.find_map(|(name, own)| (*own == ip).then_some(&**name))
}

/// Paths that leave by the same interface and gateway: one link under two names.
pub(in super::super) fn shared(ways: &[(String, Route)]) -> Vec<(String, Finding)> {
    let mut found = Vec::new();
    for (index, (name, way)) in ways.iter().enumerate() {
        let earlier = &ways[..index];
        let same = |other: &&(String, Route)| {
            other.1.dev == way.dev && other.1.gateway == way.gateway && way.dev != "lo"
        };
        if let Some((other, _)) = earlier.iter().find(same) {
            let text = format!(
                "leaves by {}, as path {other} does: both die together",
                way.dev
            );
            let finding = Finding::warning(NAME, text)
                .fix("name the interface of each path, as in --path wlan0 --path wwan0");
            found.push((name.clone(), finding));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::super::super::links::tests::route;
    use super::super::super::programs::NoAnswer;
    use super::super::super::system::tests::made;
    use super::*;

    fn judge(bind: &Bind, way: Result<Way, NoRoute>) -> Finding {
        let (_folder, system) = made(&[
            ("sys/class/net/wwan0/flags", "0x1003\n"),
            ("sys/class/net/ppp0/flags", "0x10d1\n"),
        ]);
        let addresses = [("wlan0", "192.168.1.4"), ("wwan0", "10.9.8.7")];
        let addresses = addresses.map(|(name, ip)| (name.to_owned(), ip.parse().unwrap()));
        let remote = "203.0.113.5:4433".parse().unwrap();
        check(&system, &addresses, bind, remote, &way)
    }

    fn way(dev: &str, is_listed: bool) -> Way {
        Way {
            route: route(dev, "10.9.8.7"),
            is_listed,
        }
    }

    #[test]
    fn a_source_address_that_leaves_by_another_link_is_no_link_of_its_own() {
        let modem = Bind::Address("10.9.8.7".parse().unwrap());
        let strayed = judge(&modem, Ok(way("wlan0", true)));
        assert_eq!(strayed.verdict, Verdict::Warning);
        assert!(strayed.fix.unwrap().contains("--path wwan0"));
        let own = judge(&modem, Ok(way("wwan0", true)));
        let expected = "to 203.0.113.5 by wwan0 via 10.0.0.1 from 10.9.8.7";
        assert_eq!(own.text, expected);
    }

    #[test]
    fn what_has_no_route_is_not_fine_and_what_is_not_known_no_failure() {
        let none = judge(&Bind::Any, Err(NoRoute::None("no route leads there")));
        assert_eq!(none.verdict, Verdict::Failure);
        let unasked = judge(&Bind::Any, Err(NoAnswer::Absent("ip").into()));
        let expected = (Verdict::Unknown, "`ip` is not installed");
        assert_eq!((unasked.verdict, &*unasked.text), expected);
        // The kernel takes everything for a neighbour then.
        let modem = Bind::Interface("wwan0".into());
        let stray = judge(&modem, Ok(way("wwan0", false)));
        assert_eq!(stray.verdict, Verdict::Warning);
        assert_eq!(judge(&modem, Ok(way("wwan0", true))).verdict, Verdict::Fine);
        let ppp = judge(&Bind::Interface("ppp0".into()), Ok(way("ppp0", false)));
        assert_eq!(ppp.verdict, Verdict::Fine);
    }

    #[test]
    fn two_paths_over_one_link_are_named() {
        let ways = [
            ("a", "wlan0"),
            ("b", "wwan0"),
            ("c", "wlan0"),
            ("d", "lo"),
            ("e", "lo"),
        ];
        let ways = ways.map(|(name, dev)| (name.to_owned(), route(dev, "10.0.0.2")));
        let found = shared(&ways);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "c");
        assert!(found[0].1.text.contains("as path a does"));
    }
}
