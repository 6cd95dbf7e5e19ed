//! What has to be done to the system before a tunnel carries anything: addresses, routes,
//! forwarding, address translation. Either the operator does it and is shown the commands, or this
//! program does it and undoes it.
//!
//! | file | what |
//! | --- | --- |
//! | `step.rs` | one thing to be done |
//! | `applied.rs` | what was done: how it is kept, and undone |
//! | `change.rs` | what is set up becomes something else while the tunnel goes on |
//! | `guard.rs` | who undoes it when this process is killed |
//! | `command.rs` | programs that change the system |
//! | `route.rs` | a route into the tunnel, and the one that it takes the place of |
//! | `table.rs` | a table of nftables |
//! | `forward.rs` | chains of a firewall that drop what is forwarded |
//! | `names.rs` | name servers behind the tunnel |
//! | `strict.rs` | nothing leaves but through the tunnel |
//! | `ways.rs` | what comes in by a link's own address is answered over that link |

mod applied;
mod change;
mod command;
mod forward;
mod guard;
mod names;
mod route;
mod step;
mod strict;
mod table;
mod ways;

use super::hello::Place;
use super::pool::Pool;
use super::remains::Remains;
use super::terms::Terms;
use crate::tun::{ClientSetup, Prefixes, Resolver, TunSetup};
pub use applied::Applied;
use command::{has, words};
use forward::Forward;
use ipnet::IpNet;
use names::Names;
use route::Route;
use std::fs;
use std::io;
use std::path::Path;
use step::Step;
pub use strict::{MARK, Strict};
use table::Table;
use tokio_util::sync::CancellationToken;
use ways::Ways;

/// Kernel settings that let a host pass packets on.
const FORWARDING: [&str; 2] = [
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/net/ipv6/conf/all/forwarding",
];
/// Networks that mean something only where they are (RFC 1918, RFC 6598).
const PRIVATE: &str = "10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10";
/// Where the kernel has each interface's settings of IPv6.
const INTERFACES: &str = "/proc/sys/net/ipv6/conf";

/// Everything to be done, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setup {
    device: String,
    steps: Vec<Step>,
    /// What an earlier run left switched on, and where this one notes what it does.
    remains: Remains,
    /// What has to get through a firewall.
    forward: Option<Forward>,
    /// Whose own addresses have to be answered past the tunnel.
    ways: Option<Ways>,
}

/// A step failed; those before it were undone.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {why}")]
pub struct SetupError {
    what: String,
    why: String,
}

impl SetupError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self.what.split(' ').next() {
            Some("`nft") => {
                "install nftables, or leave out address translation: --tun-setup=no-nat at a server"
            }
            Some("`ip") if self.why.contains("another tunnel") => {
                "`marline status` there shows it; nothing of either was changed"
            }
            Some("`ip") => {
                "is iproute2 installed, and has the program the right to use it (root or CAP_NET_ADMIN)?"
            }
            _ => "do it yourself and leave --tun-setup out: the commands are shown then",
        }
    }
}

fn family(net: &IpNet) -> &'static str {
    match net {
        IpNet::V4(_) => "-4",
        IpNet::V6(_) => "-6",
    }
}

/// A default route would displace the one that the paths need: its halves come before it and leave
/// it alone.
fn halves(net: IpNet) -> Vec<IpNet> {
    match net.prefix_len() {
        0 => net.subnets(1).map(Iterator::collect).unwrap_or_default(),
        _ => vec![net],
    }
}

/// Family and name of a device's table.
fn table_name(device: &str) -> String {
    format!("inet marline_{}", device.replace(['.', '-', '@'], "_"))
}

impl Setup {
    fn empty(device: &str) -> Self {
        Setup {
            device: device.to_owned(),
            steps: Vec::new(),
            remains: Remains::default(),
            forward: None,
            ways: None,
        }
    }

    fn of_device(device: &str, mtu: u16) -> Self {
        let mut setup = Setup::empty(device);
        setup.steps.push(Step::Run {
            words: words(&format!("ip link set dev {device} mtu {mtu} up")),
            undo: words(&format!("ip link set dev {device} down")),
        });
        setup
    }

    fn address(&mut self, net: IpNet) {
        let (family, device) = (family(&net), &self.device);
        // Nobody else in the tunnel can have the address: there is nothing to detect.
        let nodad = if family == "-6" { " nodad" } else { "" };
        self.steps.push(Step::Run {
            words: words(&format!(
                "ip {family} address replace {net} dev {device}{nodad}"
            )),
            undo: words(&format!("ip {family} address del {net} dev {device}")),
        });
    }

    fn route(&mut self, net: IpNet) {
        let device = self.device.clone();
        self.steps.push(Step::Route(Route { net, device }));
    }

    /// Asks for names through the tunnel.
    fn names(&mut self, resolvers: &[Resolver]) {
        if resolvers.is_empty() {
            return;
        }
        if !names::are_resolveds() {
            return self.steps.push(Step::Names(Names::of(resolvers)));
        }
        let [dns, domain] = names::by_resolved(&self.device, resolvers);
        self.steps.push(Step::Run {
            words: dns,
            undo: words(&format!("resolvectl revert {}", self.device)),
        });
        self.steps.push(Step::Run {
            words: domain,
            undo: Vec::new(),
        });
    }

    /// Passes packets on. Interfaces that take their IPv6 routes from router advertisements go on
    /// taking them: a host that forwards would not (`accept_ra`, ip-sysctl of the kernel).
    fn forwarding(&mut self) {
        let interfaces = fs::read_dir(INTERFACES).into_iter().flatten().flatten();
        let mut settings: Vec<String> = interfaces
            .filter(|interface| interface.file_name() != "all")
            .map(|interface| interface.path().join("accept_ra"))
            .filter(|file| fs::read_to_string(file).is_ok_and(|value| value.trim() == "1"))
            .filter_map(|file| file.to_str().map(str::to_owned))
            .collect();
        settings.sort();
        self.steps
            .extend(settings.into_iter().map(|file| Step::Set {
                file,
                from: "1",
                to: "2",
            }));
        self.steps.extend(FORWARDING.map(Step::Forward));
    }

    /// Only the size of the largest packet of a device that is set up.
    pub(super) fn largest_packet(device: &str, mtu: u16) -> Self {
        let mut setup = Setup::empty(device);
        setup.steps.push(Step::Run {
            words: words(&format!("ip link set dev {device} mtu {mtu}")),
            undo: Vec::new(),
        });
        setup
    }

    /// For a client with these addresses, that sends what is for the server or for `routes` into
    /// the tunnel. The server may say what it likes of the network that the addresses belong to.
    pub(super) fn client(
        device: &str,
        places: &[Place],
        mtu: u16,
        terms: &Terms,
        wanted: ClientSetup,
        resolvers: &[Resolver],
    ) -> Self {
        let routes = terms.routes();
        let mut setup = Setup::of_device(device, mtu);
        for place in places {
            setup.address(place.own.addr().into());
        }
        for place in places {
            setup.route(place.server.into());
        }
        for net in routes.iter().flat_map(|net| halves(*net)) {
            // Without an address of its family the kernel would have none to send from.
            if places
                .iter()
                .any(|place| place.server.is_ipv4() == net.addr().is_ipv4())
            {
                setup.route(net);
            }
        }
        if routes.iter().any(|net| net.prefix_len() == 0) {
            setup.ways = Some(Ways::past(device));
        }
        setup.names(resolvers);
        let announced = terms.announced();
        if wanted.gateway || !announced.is_empty() {
            setup.forwarding();
            setup.forward = Some(match announced.is_empty() {
                true => Forward::into(device),
                false => Forward::into(device).both_ways(),
            });
        }
        if wanted.gateway {
            // Who is known at the server by its own address keeps it.
            let kept = announced.iter().map(|net| match net {
                IpNet::V4(_) => format!("oifname {device} ip saddr {net} accept"),
                IpNet::V6(_) => format!("oifname {device} ip6 saddr {net} accept"),
            });
            let others = std::iter::once(format!("oifname {device} masquerade"));
            setup.translate(&kept.chain(others).collect::<Vec<_>>(), || {
                let kept = announced.iter().map(|net| match net {
                    IpNet::V4(_) => ("iptables", format!("-o {device} -s {net} -j ACCEPT")),
                    IpNet::V6(_) => ("ip6tables", format!("-o {device} -s {net} -j ACCEPT")),
                });
                let others = ["iptables", "ip6tables"].into_iter();
                let others = others.filter(|program| has(program));
                let others = others.map(|program| (program, format!("-o {device} -j MASQUERADE")));
                kept.chain(others).collect()
            });
        }
        setup
    }

    /// For a server with this pool. With address translation, clients appear under the server's own
    /// addresses outside.
    pub(super) fn server(
        device: &str,
        pool: &Pool,
        mtu: u16,
        wanted: TunSetup,
        prefixes: &Prefixes,
        remains: Remains,
    ) -> Self {
        let mut setup = Setup::of_device(device, mtu);
        setup.remains = remains;
        pool.server().into_iter().for_each(|net| setup.address(net));
        prefixes.networks().for_each(|net| setup.route(net));
        setup.forwarding();
        if wanted != TunSetup::WithoutNat {
            let by_nft = pool.networks().map(|net| {
                let ip = if net.addr().is_ipv4() { "ip" } else { "ip6" };
                format!("oifname != {device} {ip} saddr {net} masquerade")
            });
            // Networks behind clients have their own addresses where those mean something.
            let behind = prefixes.networks().filter_map(|net| match net {
                IpNet::V4(net) if net.addr().is_private() => Some(format!(
                    "oifname != {device} ip saddr {net} ip daddr != {{ {PRIVATE} }} masquerade"
                )),
                IpNet::V6(net) if net.addr().is_unique_local() => Some(format!(
                    "oifname != {device} ip6 saddr {net} ip6 daddr != fc00::/7 masquerade"
                )),
                _ => None,
            });
            setup.translate(&by_nft.chain(behind).collect::<Vec<_>>(), || {
                let by_iptables = pool.networks().map(|net| {
                    let program = match net.addr().is_ipv4() {
                        true => "iptables",
                        false => "ip6tables",
                    };
                    (program, format!("-s {net} ! -o {device} -j MASQUERADE"))
                });
                by_iptables.collect()
            });
        }
        setup.forward = Some(match prefixes.networks().next() {
            None => Forward::out_of(device),
            Some(_) => Forward::out_of(device).both_ways(),
        });
        setup
    }

    /// Translates source addresses, by rules of nftables, or of iptables where there is no `nft`.
    fn translate(&mut self, nft: &[String], iptables: impl Fn() -> Vec<(&'static str, String)>) {
        if has("nft") || !has("iptables") {
            self.translate_by_nft(nft);
        } else {
            self.translate_by_iptables(&iptables());
        }
    }

    fn translate_by_nft(&mut self, rules: &[String]) {
        let chain = "chain TABLE postrouting { type nat hook postrouting priority srcnat ; }";
        let rules = rules
            .iter()
            .map(|rule| format!("rule TABLE postrouting {rule}"));
        self.steps.push(Step::Table(Table {
            name: table_name(&self.device),
            parts: std::iter::once(chain.to_owned()).chain(rules).collect(),
        }));
    }

    fn translate_by_iptables(&mut self, rules: &[(&str, String)]) {
        for (program, rule) in rules {
            let rule = |verb: &str| words(&format!("{program} -t nat {verb} POSTROUTING {rule}"));
            let (add, delete) = (rule("-A"), rule("-D"));
            self.steps.push(Step::Clear(delete.clone()));
            self.steps.push(Step::Run {
                words: add,
                undo: delete,
            });
        }
    }

    /// Logs the commands for a person to give.
    pub(super) fn show(&self) {
        let device = &self.device;
        tracing::info!("tunnel {device}: give these commands, or add --tun-setup:");
        for step in &self.steps {
            if !matches!(step, Step::Clear(_)) {
                tracing::info!("  {step}");
            }
        }
        if let Some(forward) = &self.forward {
            forward.show();
        }
        let left: Vec<&str> = self.left_on().collect();
        if let (Some(note), false) = (self.remains.file(), left.is_empty()) {
            let off: Vec<String> = left.iter().map(|file| format!("echo 0 > {file}")).collect();
            tracing::warn!(
                "a server that was killed had switched on {}: --tun-setup switches that off in the end, \
                 `{} && rm {}` now",
                left.join(" and "),
                off.join(" && "),
                note.display()
            );
        }
    }

    /// Is there something to undo in the end?
    fn is_undone(&self) -> bool {
        let stays = |step: &Step| matches!(step, Step::Run { undo, .. } if undo.is_empty());
        !self.steps.iter().all(stays)
    }

    /// What an earlier run switched on and did not switch off.
    fn left_on(&self) -> impl Iterator<Item = &'static str> {
        FORWARDING
            .into_iter()
            .filter(|file| self.remains.holds(file))
    }

    /// Does everything; other tasks go on meanwhile. With `stop` the command that runs is ended,
    /// what was done is undone, and this fails.
    pub(super) async fn apply(self, stop: CancellationToken) -> Result<Applied, SetupError> {
        let done = tokio::task::spawn_blocking(move || self.run(&stop));
        done.await.unwrap_or_else(|error| {
            Err(SetupError {
                what: "the tunnel's setup".to_owned(),
                why: error.to_string(),
            })
        })
    }

    fn run(mut self, stop: &CancellationToken) -> Result<Applied, SetupError> {
        let mut applied = match self.is_undone() {
            true => Applied::begin(&self.device),
            false => Applied::nothing(),
        };
        self.remains.take_over();
        // Undone last.
        let note = self.remains.file().map(Path::to_owned);
        note.into_iter().for_each(|note| applied.remove(note));
        for file in self.left_on() {
            tracing::info!(
                "{file} was switched on by a server that was killed; it is switched off in the end"
            );
            applied.switch_off(file);
        }
        for step in self.steps {
            let failed = |why: io::Error| SetupError {
                what: step.to_string(),
                why: why.to_string(),
            };
            if stop.is_cancelled() {
                return Err(failed(io::Error::other("not begun, for this is to stop")));
            }
            let noted = &mut self.remains;
            step.take(&mut applied, noted, || stop.is_cancelled())
                .map_err(failed)?;
        }
        applied.keep(self.forward, self.ways);
        Ok(applied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn texts(setup: &Setup) -> Vec<String> {
        setup.steps.iter().map(Step::to_string).collect()
    }

    #[test]
    fn a_client_gets_single_addresses_and_its_own_routes_of_the_families_that_it_has() {
        let place = Place {
            own: "10.77.0.2/7".parse().unwrap(),
            server: "10.77.0.1".parse().unwrap(),
        };
        let routes = ["0.0.0.0/0", "::/0", "10.1.0.0/16"].map(|net| net.parse().unwrap());
        let terms = Terms::new(routes.to_vec(), Vec::new());
        let setup = Setup::client("tun7", &[place], 1322, &terms, ClientSetup::default(), &[]);
        assert_eq!(
            texts(&setup),
            [
                "`ip link set dev tun7 mtu 1322 up`",
                "`ip -4 address replace 10.77.0.2/32 dev tun7`",
                "`ip -4 route replace 10.77.0.1/32 dev tun7`",
                "`ip -4 route replace 0.0.0.0/1 dev tun7`",
                "`ip -4 route replace 128.0.0.0/1 dev tun7`",
                "`ip -4 route replace 10.1.0.0/16 dev tun7`",
            ]
        );
    }

    #[test]
    fn a_server_forwards_and_translates() {
        let pool: Pool = "10.77.0.0/24,fd77::/64".parse().unwrap();
        let mut plain = Setup::server(
            "tun7",
            &pool,
            1500,
            TunSetup::WithoutNat,
            &Prefixes::default(),
            Remains::default(),
        );
        // What else this machine needs.
        plain.steps.retain(|step| !matches!(step, Step::Set { .. }));
        assert_eq!(
            texts(&plain)[1..],
            [
                "`ip -4 address replace 10.77.0.1/24 dev tun7`",
                "`ip -6 address replace fd77::1/64 dev tun7 nodad`",
                "`echo 1 > /proc/sys/net/ipv4/ip_forward`",
                "`echo 1 > /proc/sys/net/ipv6/conf/all/forwarding`",
            ]
        );
        let mut nft = plain.clone();
        let rule = "oifname != tun7 ip saddr 10.77.0.0/24 masquerade";
        nft.translate_by_nft(&[rule.to_owned()]);
        let chain = "{ type nat hook postrouting priority srcnat ; }";
        assert_eq!(
            texts(&nft)[5..],
            [format!(
                "`nft 'add table inet marline_tun7; add chain inet marline_tun7 postrouting {chain}; add rule inet \
                 marline_tun7 postrouting {rule}'`"
            )]
        );
        let mut iptables = plain.clone();
        let rule = "-s 10.77.0.0/24 ! -o tun7 -j MASQUERADE";
        iptables.translate_by_iptables(&[("iptables", rule.to_owned())]);
        assert_eq!(
            texts(&iptables)[6],
            format!("`iptables -t nat -A POSTROUTING {rule}`")
        );
    }

    #[test]
    fn a_command_that_hangs_is_ended_and_undone_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (made, begun) = (file("made"), file("begun"));
        let hang = ["sh", "-c", &format!("touch {begun}; exec sleep 1000")];
        let steps = vec![
            Step::Run {
                words: words(&format!("touch {made}")),
                undo: words(&format!("rm {made}")),
            },
            Step::Run {
                words: hang.map(str::to_owned).to_vec(),
                undo: words(&format!("rm {begun}")),
            },
        ];
        let setup = Setup {
            steps,
            ..Setup::empty("tun-hangs")
        };
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let running = thread::spawn(move || setup.run(&stopped));
        while !Path::new(&begun).exists() {
            thread::yield_now();
        }
        stop.cancel();
        let error = running.join().unwrap().unwrap_err().to_string();
        assert!(error.contains("ended before it was done"), "{error}");
        assert!(!Path::new(&begun).exists() && !Path::new(&made).exists());
    }

    #[test]
    fn the_note_is_kept_until_the_forwarding_is_switched_off() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("undo");
        fs::write(&note, "").unwrap();
        // A file of the kernel's that nobody may write, one that is gone with its device, and one
        // that takes everything.
        for (file, kept) in [
            ("/proc/version", true),
            ("/nonexistent/on", false),
            ("/dev/null", false),
        ] {
            fs::write(&note, "").unwrap();
            let mut applied = Applied::nothing();
            applied.remove(note.clone());
            applied.switch_off("/dev/null");
            applied.switch_off(file);
            drop(applied);
            assert_eq!(note.exists(), kept, "{file}");
        }
    }

    #[test]
    fn what_was_done_is_undone_after_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let (made, undone) = (file("made"), file("undone"));
        let run = |text: String, undo: String| Step::Run {
            words: words(&text),
            undo: words(&undo),
        };
        let steps = vec![
            Step::Clear(words("false")),
            run(format!("touch {made}"), format!("mv {made} {undone}")),
            run("ls /nonexistent".into(), "false".into()),
            run(format!("rm {made}"), "false".into()),
        ];
        let setup = Setup {
            steps,
            ..Setup::empty("tun-fails")
        };
        let stop = CancellationToken::new();
        let error = setup.run(&stop).unwrap_err().to_string();
        assert!(error.contains("`ls /nonexistent`: "), "{error}");
        assert!(Path::new(&undone).exists() && !Path::new(&made).exists());
        assert!(has("sh") && !has("no-such-program-here"));
    }
}
