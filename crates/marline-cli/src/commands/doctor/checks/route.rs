//! Which way do a path's packets take, and is it the path's own?

use super::super::finding::Finding;
use super::super::links::{Device, Route};
use marline::carrier::Bind;
use std::net::{IpAddr, SocketAddr};

const NAME: &str = "route";

pub(in super::super) fn check(
    devices: &Result<Vec<Device>, String>,
    bind: &Bind,
    remote: SocketAddr,
    route: &Result<Route, String>,
) -> Finding {
    let route = match route {
        // Without the program nothing is known; what it says is of the route.
        Err(why) if why.starts_with("there is no") => return Finding::unknown(NAME, why),
        Err(why) => {
            return Finding::failure(NAME, format!("no way to {}: {why}", remote.ip()))
                .mend("give the link a route: ip route add default via GATEWAY dev INTERFACE");
        }
        Ok(route) => route,
    };
    let source = route.source();
    if let (Bind::Address(ip), Ok(devices)) = (bind, devices)
        && let Some(owner) = owner(devices, *ip)
        && owner != route.dev
        && !remote.ip().is_loopback()
        // To this host itself everything goes by the loopback interface.
        && route.dev != "lo"
    {
        return Finding::warning(
            NAME,
            format!(
                "{ip} is an address of {owner}, but packets from it leave by {}: it is no link of \
                 its own",
                route.dev
            ),
        )
        .mend(format!(
            "name the interface (--path {owner}), or: ip rule add from {ip} table 101; ip route add \
             default via GATEWAY dev {owner} table 101"
        ));
    }
    let mut text = format!("to {} by {}", remote.ip(), route.dev);
    if let Some(gateway) = &route.gateway {
        text += &format!(" via {gateway}");
    }
    if let Some(source) = source {
        text += &format!(" from {source}");
    }
    Finding::fine(NAME, text)
}

/// The interface that has an address.
fn owner(devices: &[Device], ip: IpAddr) -> Option<&str> {
    let mut devices = devices.iter();
    let device = devices.find(|device| device.addresses().contains(&ip))?;
    Some(&device.ifname)
}

/// Paths that leave by the same interface and gateway: one link under two names.
pub(in super::super) fn shared(ways: &[(String, Route)]) -> Vec<Finding> {
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
            found.push(
                Finding::warning(NAME, text)
                    .mend("name the interface of each path, as in --path wlan0 --path wwan0")
                    .of(name),
            );
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::super::super::links::tests::{device, way};
    use super::*;

    #[test]
    fn a_source_address_that_leaves_by_another_link_is_no_link_of_its_own() {
        let devices = Ok(vec![
            device("wlan0", &["192.168.1.4"]),
            device("wwan0", &["10.9.8.7"]),
        ]);
        let remote = "203.0.113.5:4433".parse().unwrap();
        let modem = Bind::Address("10.9.8.7".parse().unwrap());
        let strayed = check(&devices, &modem, remote, &Ok(way("wlan0", "10.9.8.7")));
        assert_eq!(strayed.verdict, Verdict::Warning);
        assert!(strayed.mend.unwrap().contains("--path wwan0"));
        let own = check(&devices, &modem, remote, &Ok(way("wwan0", "10.9.8.7")));
        assert_eq!(
            own.text,
            "to 203.0.113.5 by wwan0 via 10.0.0.1 from 10.9.8.7"
        );
        let none = Err("`ip` says: RTNETLINK answers: Network is unreachable".into());
        let none = check(&devices, &Bind::Any, remote, &none);
        assert_eq!(none.verdict, Verdict::Failure);
        let unasked = check(
            &devices,
            &Bind::Any,
            remote,
            &Err("there is no `ip` here".into()),
        );
        assert_eq!(unasked.verdict, Verdict::Unknown);
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
        let ways = ways.map(|(name, dev)| (name.to_owned(), way(dev, "10.0.0.2")));
        let found = shared(&ways);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path.as_deref(), Some("c"));
        assert!(found[0].text.contains("as path a does"));
    }
}
