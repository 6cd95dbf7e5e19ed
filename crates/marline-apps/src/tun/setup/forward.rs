//! Chains of this host's firewall that drop what a tunnel has forwarded, as Docker, ufw and careful
//! operators leave them: an `accept` in a table of ours does not hold against them, so the tunnel's
//! packets are accepted at their head.
//!
//! That is done where a chain drops everything of the tunnel, for then nobody has thought of it.
//! Where it lets some of it pass, somebody has, and is only shown what is missing.

use super::command::{ask, has, run, words};
use crate::firewall::{Fate, Packet, Rules};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

/// A command is ended after this time.
const COMMAND: Duration = Duration::from_secs(5);
/// Most chains that are reported; more come from a generator of rules.
const SAID: usize = 64;

/// What is to be forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Forward {
    device: String,
    /// Connections begin at the tunnel's side of this host.
    from_tunnel: bool,
    /// They begin at the other side.
    into_tunnel: bool,
    /// The other side is where the default routes lead, as a server's is, and not where they do
    /// not.
    outward: bool,
}

/// What was opened, and is closed when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Opened {
    /// What closes all of it, as a command of a shell.
    undo: Option<String>,
    said: BTreeSet<String>,
}

/// What a chain does to the tunnel's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passes,
    DropsSome,
    Drops,
}

/// A base chain at the hook where packets are forwarded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Chain {
    family: String,
    table: String,
    name: String,
}

impl Forward {
    /// For a server: its clients begin connections.
    pub(super) fn out_of(device: &str) -> Self {
        Forward {
            device: device.to_owned(),
            from_tunnel: true,
            into_tunnel: false,
            outward: true,
        }
    }

    /// The same for two sites, each of which reaches the other one.
    pub(super) fn both_ways(self) -> Self {
        Forward {
            from_tunnel: true,
            into_tunnel: true,
            ..self
        }
    }

    /// For a client that is the gateway of others, which begin connections.
    pub(super) fn into(device: &str) -> Self {
        Forward {
            device: device.to_owned(),
            from_tunnel: false,
            into_tunnel: true,
            outward: false,
        }
    }

    /// What a chain's rules have to accept: the direction in which connections begin, and answers.
    fn openings(&self) -> [String; 2] {
        let sides = [("iifname", self.from_tunnel), ("oifname", self.into_tunnel)];
        sides.map(|(side, begin)| {
            let answers = if begin {
                ""
            } else {
                " ct state established,related"
            };
            format!("{side} {}{answers} accept", self.device)
        })
    }

    /// Opens what is closed now.
    pub(super) fn open(&self, opened: &mut Opened) {
        for (chain, verdict) in self.closed() {
            let is_said = opened.said.len() >= SAID || !opened.said.insert(chain.to_string());
            if verdict == Verdict::DropsSome {
                if !is_said {
                    self.say(&chain, verdict);
                }
                continue;
            }
            match self.open_chain(&chain) {
                Ok(()) => {
                    opened.undo = Some(self.undo());
                    tracing::info!(
                        "the firewall's chain {chain} dropped what tunnel {} forwards; it lets that pass until the \
                         tunnel ends",
                        self.device
                    );
                }
                Err(error) if !is_said => {
                    tracing::warn!("{error}");
                    self.say(&chain, verdict);
                }
                Err(_) => {}
            }
        }
    }

    /// Says what is closed now, and how to open it.
    pub(super) fn show(&self) {
        for (chain, verdict) in self.closed() {
            self.say(&chain, verdict);
        }
    }

    fn say(&self, chain: &Chain, verdict: Verdict) {
        let what = match verdict {
            Verdict::DropsSome => "some of what",
            _ => "what",
        };
        let commands = match chain.table.as_str() {
            // Its tables are its own.
            "firewalld" => format!(
                "firewall-cmd --zone=trusted --add-interface={}",
                self.device
            ),
            _ => {
                let rules = self.openings();
                let commands = rules.map(|rule| format!("nft insert rule {chain} {rule}"));
                commands.join("; ")
            }
        };
        tracing::warn!(
            "the firewall's chain {chain} drops {what} tunnel {} forwards: `{commands}`",
            self.device
        );
    }

    /// Accepts the tunnel's packets at the head of the chain.
    fn open_chain(&self, chain: &Chain) -> io::Result<()> {
        for rule in self.openings() {
            match chain.iptables() {
                // Its own tools would not understand what `nft` writes there.
                Some(program) => self.by_iptables(program, &rule)?,
                None => {
                    let comment = mark(&self.device);
                    let insert = format!("nft insert rule {chain} {rule} comment {comment}");
                    give(&words(&insert))?;
                }
            }
        }
        Ok(())
    }

    fn by_iptables(&self, program: &str, rule: &str) -> io::Result<()> {
        let (side, state) = match rule.split_once(' ') {
            Some(("iifname", rest)) => ("-i", rest.contains("established")),
            _ => ("-o", rule.contains("established")),
        };
        let state = match state {
            true => " -m conntrack --ctstate RELATED,ESTABLISHED",
            false => "",
        };
        let (device, comment) = (&self.device, mark(&self.device));
        let rule = format!("{side} {device}{state} -m comment --comment {comment} -j ACCEPT");
        give(&words(&format!("{program} -w -I FORWARD {rule}")))
    }

    /// What closes everything again after this process, as a command of a shell.
    pub(super) fn undo(&self) -> String {
        let mark = mark(&self.device);
        format!(
            "nft -a list ruleset | awk -v mark='comment \"{mark}\"' \
             '$1 == \"table\" {{ family = $2; table = $3 }} $1 == \"chain\" {{ chain = $2 }} \
             index($0, mark) && match($0, /handle [0-9]+/) {{ print \"nft delete rule\", family, table, chain, \
             substr($0, RSTART, RLENGTH) }}' | sh; \
             for tables in iptables-nft ip6tables-nft; do \
             $tables -w -S FORWARD | grep -e '--comment {mark} ' | sed \"s/^-A/$tables -w -D/\" | sh; done"
        )
    }

    /// The chains that drop what has to pass, or some of it.
    fn closed(&self) -> Vec<(Chain, Verdict)> {
        let Ok(printed) = ask("nft -j list ruleset") else {
            return Vec::new();
        };
        self.judge(&printed, &self.others())
    }

    fn judge(&self, printed: &[u8], others: &[String]) -> Vec<(Chain, Verdict)> {
        let ruleset = serde_json::from_slice::<Value>(printed).unwrap_or_default();
        let Some(objects) = ruleset["nftables"].as_array() else {
            return Vec::new();
        };
        let rules = Rules::of(objects);
        let chains = objects.iter().filter_map(|object| object.get("chain"));
        let chains = chains.filter(|chain| chain["hook"] == "forward");
        let judged = chains.filter_map(|chain| {
            let found = Chain::of(chain)?;
            let verdict = self.verdict(&rules, chain, others);
            (verdict != Verdict::Passes).then_some((found, verdict))
        });
        judged.collect()
    }

    fn verdict(&self, rules: &Rules<'_>, chain: &Value, others: &[String]) -> Verdict {
        // Where there is no other interface yet, one is imagined that no rule knows.
        let unknown = [String::new()];
        let others = if others.is_empty() { &unknown } else { others };
        let dropped = others.iter().filter(|other| {
            let state = |begin: bool| if begin { "new" } else { "established" };
            [
                (state(self.from_tunnel), true),
                (state(self.into_tunnel), false),
            ]
            .into_iter()
            .any(|(state, from_tunnel)| {
                let (iif, oif) = match from_tunnel {
                    true => (&self.device, *other),
                    false => (*other, &self.device),
                };
                ["udp", "tcp"].into_iter().any(|protocol| {
                    let packet = Packet {
                        protocol,
                        sport: 0..=u16::MAX,
                        dport: 0..=u16::MAX,
                        state,
                        iif: Some(iif.clone()),
                        oif: Some(oif.clone()),
                    };
                    let fate = rules.fate(chain, &packet);
                    matches!(
                        fate,
                        Fate {
                            dropped: true,
                            accepted: false,
                            ..
                        }
                    )
                })
            })
        });
        match dropped.count() {
            0 => Verdict::Passes,
            some if some < others.len() => Verdict::DropsSome,
            _ => Verdict::Drops,
        }
    }

    /// The interfaces at the other side of this host: where the default routes lead, for a server;
    /// all others that have an address, for a gateway.
    fn others(&self) -> Vec<String> {
        let uplinks: BTreeSet<String> = ["-4", "-6"]
            .into_iter()
            .filter_map(|family| ask(&format!("ip -j {family} route show default")).ok())
            .flat_map(|printed| names(&printed, "dev"))
            .filter(|name| *name != self.device)
            .collect();
        if self.outward && !uplinks.is_empty() {
            return uplinks.into_iter().collect();
        }
        let addressed = ask("ip -j address show scope global up").unwrap_or_default();
        names(&addressed, "ifname")
            .into_iter()
            .filter(|name| *name != self.device && (self.outward || !uplinks.contains(name)))
            .collect()
    }
}

/// The values of this key in a list of objects.
fn names(printed: &[u8], key: &str) -> Vec<String> {
    let printed = serde_json::from_slice::<Value>(printed).unwrap_or_default();
    let objects = printed.as_array().into_iter().flatten();
    let names = objects.filter_map(|object| object[key].as_str());
    names.map(str::to_owned).collect()
}

/// The comment of what is ours: by it, it is found again, as handles are other ones after a
/// firewall was loaded again.
fn mark(device: &str) -> String {
    format!("marline-{}", device.replace(['.', '@'], "_"))
}

fn give(words: &[String]) -> io::Result<()> {
    let begun = Instant::now();
    run(words, || begun.elapsed() >= COMMAND)
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(undo) = self.undo.take() {
            let closed = give(&["sh".to_owned(), "-c".to_owned(), undo]);
            if let Err(error) = closed {
                tracing::debug!(%error, "nothing to close");
            }
        }
    }
}

impl Chain {
    fn of(chain: &Value) -> Option<Self> {
        let text = |key: &str| chain[key].as_str().map(str::to_owned);
        let family = text("family").filter(|it| ["ip", "ip6", "inet"].contains(&&**it))?;
        Some(Chain {
            family,
            table: text("table")?,
            name: text("name")?,
        })
    }

    /// The program of iptables that this chain belongs to, if it does and there is that program.
    fn iptables(&self) -> Option<&'static str> {
        let program = match (&*self.family, &*self.table, &*self.name) {
            ("ip", "filter", "FORWARD") => "iptables-nft",
            ("ip6", "filter", "FORWARD") => "ip6tables-nft",
            _ => return None,
        };
        // A chain that `nft` made may be one that it cannot list, and so not delete from.
        let lists = || ask(&format!("{program} -w -S FORWARD")).is_ok();
        (has(program) && lists()).then_some(program)
    }
}

impl std::fmt::Display for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.family, self.table, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain where packets are forwarded, with these rules, as `nft -j` shows it.
    fn ruleset(family: &str, policy: &str, rules: &[&str]) -> Vec<u8> {
        let place = format!(r#""family":"{family}","table":"filter""#);
        let chain =
            format!(r#"{{"chain":{{{place},"name":"F","hook":"forward","policy":"{policy}"}}}}"#);
        let rules = rules
            .iter()
            .map(|expr| format!(r#"{{"rule":{{{place},"chain":"F","expr":[{expr}]}}}}"#));
        let parts: Vec<String> = std::iter::once(chain).chain(rules).collect();
        format!(r#"{{"nftables":[{}]}}"#, parts.join(",")).into_bytes()
    }

    /// Packets between two interfaces are accepted.
    fn between(iif: &str, oif: &str) -> String {
        let side = |key: &str, name: &str| {
            format!(
                r#"{{"match":{{"op":"==","left":{{"meta":{{"key":"{key}"}}}},"right":"{name}"}}}}"#
            )
        };
        let sides = [("iifname", iif), ("oifname", oif)];
        let sides = sides.iter().filter(|(_, name)| !name.is_empty());
        let sides: Vec<String> = sides.map(|(key, name)| side(key, name)).collect();
        format!(r#"{},{{"accept":null}}"#, sides.join(","))
    }

    const ANSWERS: &str = r#"{"match":{"op":"in","left":{"ct":{"key":"state"}},
        "right":["established","related"]}},{"accept":null}"#;
    const LOG: &str = r#"{"limit":{"rate":3,"per":"minute"}},{"xt":null}"#;

    fn verdict(forward: &Forward, policy: &str, rules: &[&str], others: &[&str]) -> Verdict {
        let others: Vec<String> = others.iter().map(|name| (*name).to_owned()).collect();
        let found = forward.judge(&ruleset("ip", policy, rules), &others);
        found
            .first()
            .map_or(Verdict::Passes, |(_, verdict)| *verdict)
    }

    #[test]
    fn a_chain_that_knows_nothing_of_the_tunnel_is_closed_to_it() {
        use Verdict::{Drops, DropsSome, Passes};
        let docker = [between("docker0", ""), between("", "docker0")];
        let docker: Vec<&str> = docker.iter().map(String::as_str).collect();
        let lan = between("lan", "");
        let ours = [between("tun7", ""), between("", "tun7")];
        let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
        for (policy, rules, others, server, gateway) in [
            ("accept", &[][..], &["eth0"][..], Passes, Passes),
            ("drop", &[], &["eth0"], Drops, Drops),
            ("drop", &[], &[], Drops, Drops),
            ("drop", &[ANSWERS], &["eth0"], Drops, Drops),
            ("drop", &[LOG], &["eth0"], Drops, Drops),
            ("drop", &docker, &["eth0"], Drops, Drops),
            ("drop", &ours, &["eth0"], Passes, Passes),
            (
                "drop",
                &[ANSWERS, &lan],
                &["lan", "guests"],
                Drops,
                DropsSome,
            ),
        ] {
            let found = verdict(&Forward::out_of("tun7"), policy, rules, others);
            assert_eq!(found, server, "server {policy} {rules:?}");
            let found = verdict(&Forward::into("tun7"), policy, rules, others);
            assert_eq!(found, gateway, "gateway {policy} {rules:?}");
        }
    }

    #[test]
    fn what_the_families_of_packets_do_not_meet_is_left_alone() {
        let forward = Forward::out_of("tun7");
        for (family, found) in [("inet", 1), ("ip6", 1), ("bridge", 0), ("arp", 0)] {
            let judged = forward.judge(&ruleset(family, "drop", &[]), &[]);
            assert_eq!(judged.len(), found, "{family}");
        }
        assert!(forward.judge(b"7", &[]).is_empty());
    }
}
