//! Nothing leaves in the clear: while a tunnel is strict, a table of nftables lets out what goes
//! through the tunnel, what makes the tunnel, and what stays on the links' own networks.
//!
//! It is there before the first session, and stays if this process is killed, until the next run
//! ends in order. So what the kernel has is the one table, which is everybody's.

use super::command::{ask, run, words};
use super::{SetupError, table_name};
use ipnet::IpNet;
use marline::interfaces::Changes;
use marline::support::seldom::Seldom;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The mark of what the paths send, and of connections that begin at a link: the letters `mrln`.
pub const MARK: u32 = 0x6d72_6c6e;
/// How often it is looked whether the table is still there, if nobody announces that it went.
const LOOK: Duration = Duration::from_secs(15);
/// A command is ended after this time.
const COMMAND: Duration = Duration::from_secs(5);
/// Networks of links at most.
const MOST: usize = 256;

/// The table, which goes when this is dropped.
#[derive(Debug)]
pub struct Strict {
    device: String,
    /// What the table lets out at last.
    networks: BTreeSet<IpNet>,
    failed: Seldom,
}

impl Strict {
    /// Lets nothing out from now on but what is for the tunnel of this device.
    ///
    /// # Errors
    /// There is no `nft`, or it must not.
    pub fn begin(device: &str) -> Result<Self, SetupError> {
        let mut strict = Strict {
            device: device.to_owned(),
            networks: BTreeSet::new(),
            failed: Seldom::default(),
        };
        strict.renew(true).map_err(|why| SetupError {
            what: "`nft` for --tun-setup=strict".to_owned(),
            why: why.to_string(),
        })?;
        Ok(strict)
    }

    /// Takes away the table that a killed run left, if it did.
    pub fn clear(device: &str) {
        let begun = Instant::now();
        let delete = words(&format!("nft delete table {}", name(device)));
        if run(&delete, || begun.elapsed() >= COMMAND).is_ok() {
            tracing::debug!("tunnel {device} is not strict any more");
        }
    }

    /// Follows the links' networks, and makes the table again if somebody takes it away, until
    /// `end`. The table goes then.
    pub async fn keep(mut self, end: impl Future<Output = ()>) {
        let (mut routes, mut rules) = (Changes::watch(), Changes::watch_firewall());
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return,
                _ = routes.next() => {}
                _ = rules.next() => {}
                () = sleep(LOOK) => {}
            }
            // Waited for, so that the end finds the table, and takes it away.
            let renewed = tokio::task::spawn_blocking(move || {
                let renewed = self.renew(false);
                (self, renewed)
            });
            let Ok((strict, renewed)) = renewed.await else {
                return;
            };
            self = strict;
            if let Err(error) = renewed {
                self.failed.say(|left_out| {
                    tracing::warn!(
                        "the table that keeps the tunnel strict cannot be made: {error}{left_out}"
                    );
                });
            }
        }
    }

    fn renew(&mut self, first: bool) -> io::Result<()> {
        let networks = on_link(&self.device);
        let is_there = || ask(&format!("nft list table {}", name(&self.device))).is_ok();
        let is_same = networks == self.networks;
        let is_there = !first && is_there();
        if is_same && is_there {
            return Ok(());
        }
        load(&text(&self.device, &networks))?;
        self.networks = networks;
        if !first && !is_there {
            tracing::warn!(
                "the table that keeps the tunnel strict was taken away; it is there again"
            );
        }
        Ok(())
    }
}

impl Drop for Strict {
    fn drop(&mut self) {
        // A fault is no reason to let everything out.
        if !std::thread::panicking() {
            Strict::clear(&self.device);
        }
    }
}

fn name(device: &str) -> String {
    format!("{}_strict", table_name(device))
}

/// The networks that this host's other links lead to without a router.
fn on_link(device: &str) -> BTreeSet<IpNet> {
    let families = ["-4 route show scope link", "-6 route show proto kernel"];
    let printed = families.map(|what| ask(&format!("ip -j {what}")).unwrap_or_default());
    let found = printed.iter().flat_map(|printed| nets(printed, device));
    found.take(MOST).collect()
}

/// The networks of routes as `ip -j` prints them, but for the device's.
fn nets(printed: &[u8], device: &str) -> Vec<IpNet> {
    let routes = serde_json::from_slice::<Value>(printed).unwrap_or_default();
    let routes = routes.as_array().into_iter().flatten();
    let others = routes.filter(|route| route["dev"] != device && route["gateway"].is_null());
    let nets = others.filter_map(|route| {
        let text = route["dst"].as_str()?;
        let net = text.parse::<IpNet>().ok();
        net.or_else(|| Some(text.parse::<std::net::IpAddr>().ok()?.into()))
    });
    // Who runs a link chooses its network, by DHCP or a router advertisement, and could choose the
    // world: only what is nobody's in the world is near.
    nets.filter(is_private).collect()
}

/// Private (RFC 1918, RFC 4193), shared (RFC 6598) or the link's own (RFC 3927, RFC 4291).
fn is_private(net: &IpNet) -> bool {
    const NETWORKS: [&str; 7] = [
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "fc00::/7",
        "fe80::/10",
    ];
    let mut networks = NETWORKS.iter().filter_map(|net| net.parse::<IpNet>().ok());
    networks.any(|private| private.contains(net))
}

/// The table, in place of what there is.
fn text(device: &str, networks: &BTreeSet<IpNet>) -> String {
    let near = |is_v4: bool, more: &[&str]| {
        let nets = networks.iter().filter(|net| net.addr().is_ipv4() == is_v4);
        let mut nets: Vec<String> = nets.map(IpNet::to_string).collect();
        nets.extend(more.iter().map(|net| (*net).to_owned()));
        nets.join(", ")
    };
    // The links' own multicast, and the broadcast of DHCP.
    let near_v4 = near(true, &["224.0.0.0/24", "255.255.255.255"]);
    let near_v6 = near(false, &["fe80::/10", "ff02::/16"]);
    let name = name(device);
    // Let out are answers to whoever reached this host by a link, but no questions for names: those
    // go through the tunnel. Which end began a connection that is older than the table is not
    // known: it ends.
    let rules = format!(
        "ct direction reply ct mark {MARK:#x} accept
        udp sport 68 udp dport 67 accept
        icmpv6 type {{ nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert }} accept
        meta l4proto {{ tcp, udp }} th dport {{ 53, 853 }} reject with icmpx type admin-prohibited
        ip daddr @near4 accept
        ip6 daddr @near6 accept
        reject with icmpx type admin-prohibited"
    );
    format!(
        "table {name}
delete table {name}
table {name} {{
    set near4 {{ type ipv4_addr; flags interval; auto-merge; elements = {{ {near_v4} }}; }}
    set near6 {{ type ipv6_addr; flags interval; auto-merge; elements = {{ {near_v6} }}; }}
    chain prerouting {{
        type filter hook prerouting priority mangle; policy accept;
        iifname {{ \"lo\", \"{device}\" }} accept
        ct state new tcp flags & (fin | syn | rst | ack) == syn ct mark set {MARK:#x}
        ct state new icmp type echo-request ct mark set {MARK:#x}
        ct state new icmpv6 type echo-request ct mark set {MARK:#x}
    }}
    chain output {{
        type filter hook output priority filter; policy drop;
        oifname {{ \"lo\", \"{device}\" }} accept
        meta mark {MARK:#x} accept
        {rules}
    }}
    chain forward {{
        type filter hook forward priority filter; policy drop;
        oifname \"{device}\" accept
        iifname \"{device}\" accept
        {rules}
    }}
}}
"
    )
}

/// Has the kernel take all of it, or nothing.
fn load(text: &str) -> io::Result<()> {
    let mut command = Command::new("nft");
    command.args(["-f", "-"]).stdin(Stdio::piped());
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(text.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(super::command::complaint(&output.stderr)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_on_a_link_is_no_leak() {
        let printed = br#"[{"dst":"192.168.1.0/24","dev":"eth0"},{"dst":"0.0.0.0/1","dev":"ppp0"},
            {"dst":"10.77.0.1","dev":"tun7"},{"dst":"default","dev":"wwan0"},
            {"dst":"10.9.0.9","dev":"eth1"},{"dst":"192.0.0.0/2","dev":"eth2"},{"dst":"2000::/3","dev":"eth2"},{"dst":"10.1.0.0/16","gateway":"10.2.0.1","dev":"eth1"}]"#;
        let found: Vec<String> = nets(printed, "tun7").iter().map(IpNet::to_string).collect();
        assert_eq!(found, ["192.168.1.0/24", "10.9.0.9/32"]);
        let text = text("tun7", &nets(printed, "tun7").into_iter().collect());
        assert!(
            text.contains("elements = { 10.9.0.9/32, 192.168.1.0/24, 224.0.0.0/24"),
            "{text}"
        );
        assert!(text.contains("meta mark 0x6d726c6e accept"), "{text}");
    }
}
