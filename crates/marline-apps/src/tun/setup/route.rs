//! A route into the tunnel. One of the operator's own that it takes the place of is kept, and put
//! back in the end; one of another tunnel of this program's is left alone.

use super::applied::{Applied, Undo};
use super::command::{ask, run, words};
use super::{family, guard};
use ipnet::IpNet;
use serde_json::Value;
use std::fmt;
use std::io;

/// The metric of a route that is given without one: what `replace` replaces (ip-route(8)).
const fn metric(net: &IpNet) -> u64 {
    match net {
        IpNet::V4(_) => 0,
        IpNet::V6(_) => 1024,
    }
}

/// What `ip` prints of a route and does not take.
const STATES: [&str; 6] = [
    "linkdown",
    "dead",
    "offload",
    "offload_failed",
    "trap",
    "rt_offload",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) net: IpNet,
    pub(super) device: String,
}

impl Route {
    fn given(&self, verb: &str) -> String {
        let (net, device) = (self.net, &self.device);
        format!("ip {} route {verb} {net} dev {device}", family(&net))
    }

    /// The command that takes it away.
    pub(super) fn delete(&self) -> Vec<String> {
        words(&self.given("del"))
    }

    /// Lays it, and notes in `applied` how it is undone.
    ///
    /// # Errors
    /// Another tunnel of this program's has the route; what `ip` says.
    pub(super) fn take(
        &self,
        applied: &mut Applied,
        give_up: impl Fn() -> bool + Copy,
    ) -> io::Result<()> {
        let (family, net) = (family(&self.net), self.net);
        let asked = |options: &str| ask(&format!("ip {options} {family} route show exact {net}"));
        // Where that cannot be asked, the command below says why.
        let there = asked("-j").unwrap_or_default();
        let mut before = None;
        if let Some(device) = self.displaces(&there) {
            if guard::is_guarded(&device) {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    format!(
                        "{device}, another tunnel of this program's, has that route; end that one, or have only one \
                         of them with this --tun-route"
                    ),
                ));
            }
            let lines = String::from_utf8(asked("-o")?).unwrap_or_default();
            before = lines.lines().find_map(|line| as_given(line, &device));
        }
        let done = run(&words(&self.given("replace")), give_up);
        // One that was ended may have done it already.
        if done.is_ok() || give_up() {
            if let Some(before) = &before {
                tracing::warn!("the route `{before}` gives way to the tunnel until that ends");
            }
            let restore = before.map(|line| words(&format!("ip {family} route replace {line}")));
            applied.push(Undo::Route {
                delete: self.delete(),
                restore,
            });
        }
        done
    }

    /// The device of the route whose place this one takes, of those that `ip -j` printed.
    fn displaces(&self, printed: &[u8]) -> Option<String> {
        let routes = serde_json::from_slice::<Value>(printed).unwrap_or_default();
        let routes = routes.as_array()?.iter();
        let mut devices = routes
            .filter(|route| route["metric"].as_u64().unwrap_or_default() == metric(&self.net))
            .map(|route| {
                let hops = route["nexthops"].as_array().and_then(|hops| hops.first());
                let device = route["dev"].as_str();
                let device = device.or_else(|| hops.and_then(|hop| hop["dev"].as_str()));
                device.unwrap_or_default().to_owned()
            });
        devices.find(|device| *device != self.device)
    }
}

/// A route by this device as it is given again, from a line that `ip -o` printed.
fn as_given(line: &str, device: &str) -> Option<String> {
    let line = line.replace('\\', " ");
    let mut words: Vec<&str> = line.split_whitespace().collect();
    if !device.is_empty() && !words.windows(2).any(|pair| pair == ["dev", device]) {
        return None;
    }
    words.retain(|word| !STATES.contains(word));
    // Router advertisements renew what they have laid.
    if let Some(expires) = words.iter().position(|word| *word == "expires") {
        words.drain(expires..(expires + 2).min(words.len()));
    }
    Some(words.join(" "))
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.given("replace"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_route_of_the_same_metric_and_another_device_gives_way() {
        let route = |net: &str| Route {
            net: net.parse().unwrap(),
            device: "tun7".to_owned(),
        };
        for (net, printed, device) in [
            (
                "10.1.0.0/16",
                r#"[{"dst":"10.1.0.0/16","dev":"eth1"}]"#,
                Some("eth1"),
            ),
            ("10.1.0.0/16", r#"[{"dev":"eth1","metric":100}]"#, None),
            ("10.1.0.0/16", r#"[{"dev":"tun7"}]"#, None),
            ("10.1.0.0/16", r#"[{"type":"blackhole"}]"#, Some("")),
            (
                "10.1.0.0/16",
                r#"[{"nexthops":[{"dev":"eth2"},{"dev":"eth3"}]}]"#,
                Some("eth2"),
            ),
            (
                "fd07::/64",
                r#"[{"dev":"eth1","metric":1024}]"#,
                Some("eth1"),
            ),
            ("fd07::/64", r#"[{"dev":"eth1","metric":256}]"#, None),
            ("10.1.0.0/16", "", None),
        ] {
            let found = route(net).displaces(printed.as_bytes());
            assert_eq!(found.as_deref(), device, "{printed}");
        }
    }

    #[test]
    fn a_line_is_given_again_without_what_is_only_shown() {
        let line = "10.1.0.0/16 via 192.168.1.1 dev eth1 proto static linkdown ";
        let given = as_given(line, "eth1").unwrap();
        assert_eq!(given, "10.1.0.0/16 via 192.168.1.1 dev eth1 proto static");
        assert_eq!(as_given(line, "eth2"), None);
        let line = "10.1.0.0/16 proto static \\\tnexthop via 10.9.0.1 dev eth1 weight 1 \\\tnexthop dev eth2 weight 1";
        let hops = "nexthop via 10.9.0.1 dev eth1 weight 1 nexthop dev eth2 weight 1";
        assert_eq!(
            as_given(line, "eth1").unwrap(),
            format!("10.1.0.0/16 proto static {hops}")
        );
        let line = "fd07::/64 dev eth1 proto ra metric 1024 expires 86392sec pref medium";
        let given = as_given(line, "eth1").unwrap();
        assert_eq!(given, "fd07::/64 dev eth1 proto ra metric 1024 pref medium");
    }
}
