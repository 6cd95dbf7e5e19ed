//! Which chains of this host's firewall drop packets, and perhaps ours? It is only read.

use super::super::finding::Finding;
use super::super::programs::{NoAnswer, ask};
use super::super::system::System;
use marline_apps::firewall::{Fate, Packet, Rules};
use serde_json::Value;
use std::ops::RangeInclusive;

const NAME: &str = "firewall";
/// Tables of the older interface, which `nft` does not show; the newer one has no such lists.
const LEGACY: [(&str, &str); 2] = [
    ("net/ip_tables_names", "iptables-legacy"),
    ("net/ip6_tables_names", "ip6tables-legacy"),
];

/// Whose traffic it is.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Passing {
    /// To these ports, and the answers.
    Client,
    /// From anywhere to these ports of ours.
    Server,
}

/// What has to pass.
#[derive(Debug)]
pub(in super::super) struct Traffic {
    pub(in super::super) passing: Passing,
    /// `udp`, `tcp`, or both.
    pub(in super::super) protocols: Vec<&'static str>,
    /// The server's.
    pub(in super::super) ports: Vec<u16>,
}

pub(in super::super) async fn check(system: &System, traffic: &Traffic) -> Vec<Finding> {
    let mut found = match ask("nft", &["-j", "list", "ruleset"]).await {
        Ok(json) => judge(&json, &of_peers(system, traffic.passing), traffic),
        Err(NoAnswer::Refused { complaint, .. }) if complaint.contains("not permitted") => {
            vec![Finding::unknown(NAME, "only root may read it").fix("run this as root")]
        }
        Err(why) => vec![Finding::unknown(NAME, why.to_string())],
    };
    found.extend(
        LEGACY
            .iter()
            .filter_map(|(file, tool)| legacy(system, file, tool)),
    );
    found
}

fn legacy(system: &System, file: &str, tool: &str) -> Option<Finding> {
    match system.proc(file) {
        Some(tables) if tables.is_empty() => None,
        Some(tables) => {
            let tables: Vec<&str> = tables.split_whitespace().collect();
            let text = format!(
                "{tool} has tables, which are not read: {}",
                tables.join(", ")
            );
            Some(Finding::unknown(NAME, text).fix(format!("see `{tool}-save`")))
        }
        None if system.has_proc(file) => {
            let text = format!("whether {tool} has rules, only root may read");
            Some(Finding::unknown(NAME, text).fix("run this as root"))
        }
        None => None,
    }
}

/// The ports that clients have: elsewhere any, here those that the kernel gives (ip(7)).
fn of_peers(system: &System, passing: Passing) -> RangeInclusive<u16> {
    const ANY: RangeInclusive<u16> = 0..=u16::MAX;
    let given = match passing {
        Passing::Client => system.proc("sys/net/ipv4/ip_local_port_range"),
        Passing::Server => None,
    };
    let ends = given.unwrap_or_default();
    let mut ends = ends.split_whitespace().map(str::parse);
    match (ends.next(), ends.next()) {
        (Some(Ok(first)), Some(Ok(last))) => first..=last,
        _ => ANY,
    }
}

/// `peers`: the ports that clients have.
fn judge(json: &[u8], peers: &RangeInclusive<u16>, traffic: &Traffic) -> Vec<Finding> {
    let ruleset = serde_json::from_slice::<Value>(json).unwrap_or_default();
    let Some(objects) = ruleset["nftables"].as_array() else {
        let text = "`nft` answers in a way that this version does not understand";
        return vec![Finding::unknown(NAME, text)];
    };
    let rules = Rules::of(objects);
    let chains = objects.iter().filter_map(|object| object.get("chain"));
    let mut found: Vec<Finding> = chains
        .filter_map(|chain| of_chain(&rules, chain, peers, traffic))
        .collect();
    if found.is_empty() {
        found.push(Finding::fine(
            NAME,
            "no chain of nftables drops what has to pass",
        ));
    }
    found
}

/// What there is to say of a chain that drops something of ours, or may.
fn of_chain(
    rules: &Rules<'_>,
    chain: &Value,
    peers: &RangeInclusive<u16>,
    traffic: &Traffic,
) -> Option<Finding> {
    let inward = match chain["hook"].as_str()? {
        "input" | "prerouting" | "ingress" => true,
        "output" | "postrouting" | "egress" => false,
        _ => return None,
    };
    if chain["family"] == "arp" {
        return None;
    }
    let first = inward == matches!(traffic.passing, Passing::Server);
    let (mut dropped, mut unclear) = (Vec::new(), Vec::new());
    for port in &traffic.ports {
        for protocol in &traffic.protocols {
            // What is sent to the server's port is answered from it.
            let (sport, dport, state) = match first {
                true => (peers.clone(), *port..=*port, "new"),
                false => (*port..=*port, peers.clone(), "established"),
            };
            let packet = Packet {
                protocol,
                sport,
                dport,
                state,
                iif: None,
                oif: None,
            };
            let fate = rules.fate(chain, &packet);
            match fate {
                Fate { dropped: false, .. } => {}
                Fate {
                    accepted: false, ..
                } => dropped.push(format!("{protocol} {port}")),
                _ => unclear.push(format!("{protocol} {port}")),
            }
        }
    }
    let name = ["family", "table", "name"].map(|key| chain[key].as_str().unwrap_or("?"));
    let name = name.join(" ");
    let what = match first {
        true => "to",
        false => "answers from",
    };
    let see = format!("see `nft list chain {name}`");
    if !dropped.is_empty() {
        let open = match first {
            true => {
                let ports: Vec<String> = traffic.ports.iter().map(u16::to_string).collect();
                format!(
                    "meta l4proto {{ {} }} th dport {{ {} }}",
                    traffic.protocols.join(", "),
                    ports.join(", ")
                )
            }
            false => "ct state established,related".to_owned(),
        };
        let text = format!("{name} drops packets {what} {}", dropped.join(", "));
        let fix = format!("{see}, and: nft insert rule {name} {open} accept");
        return Some(Finding::warning(NAME, text).fix(fix));
    }
    if !unclear.is_empty() {
        let text = format!(
            "{name} drops some packets; whether those {what} {}, depends on what is not known here",
            unclear.join(", ")
        );
        return Some(Finding::unknown(NAME, text).fix(see));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict::{self, Fine, Unknown, Warning};
    use super::super::super::system::tests::made;
    use super::*;

    /// A chain of input with these rules, as `nft -j` shows them; those after `other:` are of
    /// another chain.
    fn ruleset(policy: &str, rules: &[&str]) -> Vec<u8> {
        let place = r#""family":"inet","table":"t""#;
        let chain =
            format!(r#"{{"chain":{{{place},"name":"in","hook":"input","policy":"{policy}"}}}}"#);
        let rule = |expr: &&str| {
            let (chain, expr) = match expr.strip_prefix("other:") {
                Some(expr) => ("other", expr),
                None => ("in", *expr),
            };
            format!(r#"{{"rule":{{{place},"chain":"{chain}","expr":[{expr}]}}}}"#)
        };
        let parts: Vec<String> = [chain].into_iter().chain(rules.iter().map(rule)).collect();
        format!(
            r#"{{"nftables":[{{"metainfo":{{}}}},{}]}}"#,
            parts.join(",")
        )
        .into_bytes()
    }

    const LO: &str = r#"{"match":{"op":"==","left":{"meta":{"key":"iif"}},"right":"lo"}},
        {"accept":null}"#;
    const KNOWN: &str = r#"{"match":{"op":"in","left":{"ct":{"key":"state"}},
        "right":["established","related"]}},{"accept":null}"#;
    const NOT_NEW: &str = r#"{"match":{"op":"!=","left":{"ct":{"key":"state"}},"right":"new"}},
        {"drop":null}"#;
    const STATES: &str = r#"{"vmap":{"key":{"ct":{"key":"state"}},"data":{"set":[
        ["invalid",{"drop":null}],["established",{"accept":null}]]}}}"#;
    const PORT: &str = r#"{"match":{"op":"==","left":{"payload":{"protocol":"th","field":"dport"}},
        "right":4433}},{"accept":null}"#;
    const UDP: &str = r#"{"match":{"op":"==","left":{"payload":{"protocol":"udp","field":"dport"}},
        "right":4433}},{"accept":null}"#;
    const OTHER_PORTS: &str = r#"{"match":{"op":"!=","left":{"payload":{"protocol":"udp",
        "field":"dport"}},"right":53}},{"drop":null}"#;
    const RANGE: &str = r#"{"match":{"op":"==","left":{"payload":{"protocol":"udp",
        "field":"dport"}},"right":{"set":[53,{"range":[4000,5000]}]}}},{"counter":{}},{"drop":null}"#;
    const NETWORK: &str = r#"{"match":{"op":"==","left":{"payload":{"protocol":"ip",
        "field":"saddr"}},"right":{"prefix":{"addr":"10.0.0.0","len":8}}}},{"reject":null}"#;
    const NAMED_SET: &str = r#"{"match":{"op":"==","left":{"payload":{"protocol":"th",
        "field":"dport"}},"right":"@open"}},{"accept":null}"#;
    const PORTS: &str = r#"{"vmap":{"key":{"payload":{"protocol":"th","field":"dport"}},
        "data":{"set":[[22,{"drop":null}],[4433,{"jump":{"target":"other"}}]]}}}"#;
    const LIMIT: &str = r#"{"limit":{"rate":10,"per":"second"}},{"accept":null}"#;
    const JUMP: &str = r#"{"jump":{"target":"other"}}"#;
    const GOTO: &str = r#"{"goto":{"target":"other"}}"#;
    const DROP: &str = r#"{"counter":{}},{"drop":null}"#;
    /// What iptables-nft shows of a match that nftables has no words for.
    const XT: &str = r#"{"xt":null}"#;
    const XT_ACCEPT: &str = r#"{"xt":null},{"accept":null}"#;

    fn traffic(passing: Passing) -> Traffic {
        Traffic {
            passing,
            protocols: vec!["udp", "tcp"],
            ports: vec![4433],
        }
    }

    fn verdict(policy: &str, rules: &[&str], passing: Passing) -> Verdict {
        let peers = match passing {
            Passing::Client => 32_768..=60_999,
            Passing::Server => 0..=u16::MAX,
        };
        let found = judge(&ruleset(policy, rules), &peers, &traffic(passing));
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].verdict
    }

    #[test]
    fn rules_are_followed_in_their_order() {
        use Passing::{Client, Server};
        let accept_in_other = format!("other:{PORT}");
        let udp_in_other = format!("other:{UDP}");
        for (policy, rules, of_server, of_client) in [
            ("accept", &[][..], Fine, Fine),
            ("drop", &[], Warning, Warning),
            ("drop", &[LO], Warning, Warning),
            ("drop", &[KNOWN], Warning, Fine),
            ("drop", &[KNOWN, PORT], Fine, Fine),
            ("drop", &[STATES, PORT], Fine, Fine),
            ("accept", &[NOT_NEW], Fine, Warning),
            ("drop", &[PORT], Fine, Warning),
            // TCP is closed.
            ("drop", &[UDP], Warning, Warning),
            ("accept", &[DROP, PORT], Warning, Warning),
            ("accept", &[PORT, DROP], Fine, Warning),
            ("accept", &[RANGE], Warning, Fine),
            ("accept", &[OTHER_PORTS], Warning, Warning),
            ("drop", &[JUMP, &accept_in_other], Fine, Warning),
            ("accept", &[GOTO, DROP, &udp_in_other], Fine, Fine),
            ("accept", &[JUMP, DROP], Warning, Warning),
            ("drop", &[PORTS, &accept_in_other], Fine, Warning),
        ] {
            assert_eq!(verdict(policy, rules, Server), of_server, "{rules:?}");
            assert_eq!(verdict(policy, rules, Client), of_client, "{rules:?}");
        }
    }

    #[test]
    fn what_is_not_understood_is_neither_fine_nor_a_warning() {
        let around = r#"{"jump":{"target":"in"}}"#;
        for (policy, rules) in [
            ("accept", &[NETWORK][..]),
            ("drop", &[NAMED_SET]),
            ("drop", &[LIMIT]),
            ("accept", &[XT]),
            ("drop", &[XT_ACCEPT]),
            ("accept", &[r#"{"queue":null}"#]),
            ("accept", &[r#"{"vmap":{"key":{},"data":"@map"}}"#]),
            ("accept", &["7"]),
            ("drop", &[r#"{"match":7},{"accept":null}"#]),
            ("accept", &[around]),
            ("odd", &[]),
        ] {
            let found = verdict(policy, rules, Passing::Server);
            assert_eq!(found, Unknown, "{policy} {rules:?}");
        }
    }

    #[test]
    fn what_the_server_does_not_take_need_not_pass() {
        let only_udp = Traffic {
            protocols: vec!["udp"],
            ..traffic(Passing::Server)
        };
        let found = judge(&ruleset("drop", &[UDP]), &(0..=u16::MAX), &only_udp);
        assert_eq!(found[0].verdict, Fine, "{found:?}");
    }

    #[test]
    fn odd_answers_are_unknown() {
        for odd in ["", "[]", "7", r#"{"nftables":7}"#] {
            let found = judge(odd.as_bytes(), &(0..=u16::MAX), &traffic(Passing::Server));
            assert_eq!(found[0].verdict, Unknown, "{odd}");
        }
    }

    #[test]
    fn tables_of_iptables_legacy_are_seen() {
        let (_folder, system) = made(&[
            ("proc/net/ip_tables_names", ""),
            ("proc/net/ip6_tables_names", "filter\nnat\n"),
        ]);
        let found = LEGACY.map(|(file, tool)| legacy(&system, file, tool));
        let expected = "ip6tables-legacy has tables, which are not read: filter, nat";
        let [None, Some(finding)] = found else {
            panic!("{found:?}");
        };
        assert_eq!((finding.verdict, &*finding.text), (Unknown, expected));
    }
}
