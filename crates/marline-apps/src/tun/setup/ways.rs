//! What comes in by a link's own address is answered over that link, also where everything else
//! goes through the tunnel: an operator who reaches the gateway by one of its links goes on doing
//! so.
//!
//! For each address of an interface with a default route there are two rules (ip-rule(8)): what is
//! sent from it goes where the main table knows more than the default, or else by the default route
//! of that interface, in a table of its own.

use super::command::{ask, run, words};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// By which our rules and routes are known (rtnetlink(7), `rtm_protocol`); nobody has registered it
/// (/etc/iproute2/rt_protos).
const PROTOCOL: u8 = 109;
/// The first of our tables, and the priority of our first rules: before the main table's (32766).
const FIRST: u32 = 21_000;
/// Addresses at most; hosts with more have rules of their own.
const MOST: usize = 64;
/// A command is ended after this time.
const COMMAND: Duration = Duration::from_secs(5);

/// The addresses of all links but the tunnel's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ways {
    device: String,
}

/// An address, and the way out of its interface.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    from: IpAddr,
    /// What follows `default` in a route.
    by: String,
}

/// The rules and routes that are there; taken away when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Laid(BTreeSet<Way>);

impl Ways {
    /// What takes everything away after this process, as a command of a shell.
    pub(super) const UNDO: &str = "for family in -4 -6; do ip $family rule flush protocol 109; \
         ip $family route flush table all proto 109; done";

    /// Of all links but this device.
    pub(super) fn past(device: &str) -> Self {
        Ways {
            device: device.to_owned(),
        }
    }

    /// Has the rules follow the addresses and default routes of now.
    pub(super) fn lay(&self, laid: &mut Laid) {
        let now = self.now();
        if now == laid.0 && are_laid(&now) {
            return;
        }
        flush();
        for (number, way) in now.iter().enumerate() {
            if let Err(error) = way.lay(number) {
                tracing::debug!(?way, %error, "it is not answered by its own link");
            }
        }
        laid.0 = now;
    }

    fn now(&self) -> BTreeSet<Way> {
        let ways = ["-4", "-6"].into_iter().flat_map(|family| {
            let asked = |what: &str| ask(&format!("ip -j {family} {what}")).unwrap_or_default();
            let routes = asked("route show default table main");
            let addresses = asked("address show scope global");
            self.of(&routes, &addresses)
        });
        ways.take(MOST).collect()
    }

    /// The ways of one family, from what `ip -j` prints.
    fn of(&self, routes: &[u8], addresses: &[u8]) -> Vec<Way> {
        let parsed = |printed| serde_json::from_slice::<Value>(printed).unwrap_or_default();
        let (routes, addresses) = (parsed(routes), parsed(addresses));
        let objects = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut ways: Vec<Way> = Vec::new();
        for route in objects(&routes) {
            let Some(device) = route["dev"].as_str().filter(|name| **name != *self.device) else {
                continue;
            };
            let by = match (&route["gateway"], &route["via"]["host"]) {
                (Value::String(gateway), _) => format!("via {gateway} dev {device} onlink"),
                (_, Value::String(gateway)) => format!("via inet6 {gateway} dev {device} onlink"),
                _ => format!("dev {device}"),
            };
            let own = objects(&addresses);
            let own = own.iter().filter(|it| it["ifname"] == device);
            for address in own.flat_map(|it| objects(&it["addr_info"])) {
                let from = address["local"].as_str().and_then(|text| text.parse().ok());
                // The first route of an interface is its best.
                if let Some(from) = from.filter(|from| ways.iter().all(|way| way.from != *from)) {
                    let by = by.clone();
                    ways.push(Way { from, by });
                }
            }
        }
        ways
    }
}

impl Way {
    fn lay(&self, number: usize) -> std::io::Result<()> {
        let Way { from, by } = self;
        let family = if from.is_ipv4() { "-4" } else { "-6" };
        let table = FIRST + u32::try_from(2 * number).unwrap_or_default();
        let next = table + 1;
        let rule = format!("ip {family} rule add protocol {PROTOCOL} from {from}");
        for command in [
            format!("ip {family} route replace default {by} table {table} proto {PROTOCOL}"),
            // The halves of a default route through the tunnel have a length of one.
            format!("{rule} pref {table} lookup main suppress_prefixlength 1"),
            format!("{rule} pref {next} lookup {table}"),
        ] {
            let begun = Instant::now();
            run(&words(&command), || begun.elapsed() >= COMMAND)?;
        }
        Ok(())
    }
}

/// Has the kernel as many rules and routes of ours as these make?
fn are_laid(ways: &BTreeSet<Way>) -> bool {
    let protocol = PROTOCOL.to_string();
    let count = |what: &str| {
        let printed = ask(&format!("ip -j {what}")).unwrap_or_default();
        let printed = serde_json::from_slice::<Value>(&printed).unwrap_or_default();
        let objects = printed.as_array().into_iter().flatten();
        let ours = objects.filter(|object| object["protocol"].as_str() == Some(&protocol));
        ours.count()
    };
    [("-4", true), ("-6", false)]
        .into_iter()
        .all(|(family, is_ipv4)| {
            let wanted = ways
                .iter()
                .filter(|way| way.from.is_ipv4() == is_ipv4)
                .count();
            count(&format!("{family} rule")) == 2 * wanted
                && (wanted == 0 || count(&format!("{family} route show table all")) == wanted)
        })
}

fn flush() {
    let begun = Instant::now();
    let flush = ["sh", "-c", Ways::UNDO].map(str::to_owned);
    let _ = run(&flush, || begun.elapsed() >= COMMAND);
}

impl Drop for Laid {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_the_way_of_its_own_interface() {
        let routes = br#"[
            {"dst":"default","gateway":"192.168.1.1","dev":"eth0","flags":[]},
            {"dst":"default","gateway":"192.168.1.2","dev":"eth0","metric":100,"flags":[]},
            {"dst":"default","dev":"wwan0","scope":"link","metric":200,"flags":[]},
            {"dst":"default","via":{"family":"inet6","host":"fe80::1"},"dev":"eth2"},
            {"dst":"default","dev":"tun7"}]"#;
        let addresses = br#"[
            {"ifname":"eth0","addr_info":[{"local":"192.168.1.7"},{"local":"192.168.1.8"}]},
            {"ifname":"wwan0","addr_info":[{"local":"100.64.0.9"}]},
            {"ifname":"eth2","addr_info":[{"local":"10.3.0.2"}]},
            {"ifname":"lan","addr_info":[{"local":"192.168.7.1"}]},
            {"ifname":"tun7","addr_info":[{"local":"10.77.0.2"}]}]"#;
        let found = Ways::past("tun7").of(routes, addresses);
        let found: Vec<String> = found
            .iter()
            .map(|way| format!("{} {}", way.from, way.by))
            .collect();
        assert_eq!(
            found,
            [
                "192.168.1.7 via 192.168.1.1 dev eth0 onlink",
                "192.168.1.8 via 192.168.1.1 dev eth0 onlink",
                "100.64.0.9 dev wwan0",
                "10.3.0.2 via inet6 fe80::1 dev eth2 onlink",
            ]
        );
        assert!(Ways::past("tun7").of(b"7", b"{").is_empty());
    }
}
