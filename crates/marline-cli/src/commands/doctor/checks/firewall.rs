//! Which chains of this host's firewall drop packets, and perhaps ours? It is only read.
//!
//! Chains are judged by themselves: where rules jump is not followed, and said.

use super::super::finding::Finding;
use super::super::programs::ask;
use super::super::system::System;
use serde_json::Value;

const NAME: &str = "firewall";

/// What has to pass.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Passing {
    /// To these ports, and the answers.
    Client,
    /// From anywhere to these ports of ours.
    Server,
}

/// `ports`: the server's.
pub(in super::super) async fn check(
    system: &System,
    passing: Passing,
    ports: &[u16],
) -> Vec<Finding> {
    let rules = ask("nft", &["-j", "list", "ruleset"]).await;
    let mut found = match rules {
        Ok(json) => judge(&json, passing, ports),
        Err(why) if why.contains("not permitted") => {
            vec![Finding::unknown(
                NAME,
                "only root may read it: run this as root",
            )]
        }
        Err(why) => vec![Finding::unknown(NAME, why)],
    };
    // Tables of the older interface, which nft does not show; of the newer there is no such list.
    let old = system.proc("net/ip_tables_names").unwrap_or_default();
    if !old.is_empty() {
        let text = "rules of iptables-legacy are there, too, and not read";
        found.push(Finding::unknown(NAME, text));
    }
    found
}

fn judge(json: &[u8], passing: Passing, ports: &[u16]) -> Vec<Finding> {
    let Ok(ruleset) = serde_json::from_slice::<Value>(json) else {
        return vec![Finding::unknown(NAME, "`nft` answers oddly")];
    };
    let objects = ruleset["nftables"].as_array();
    let objects: &[Value] = objects.map_or(&[], Vec::as_slice);
    let chains = objects.iter().filter_map(|object| object.get("chain"));
    let mut found: Vec<Finding> = chains
        .filter_map(|chain| {
            let rules: Vec<&Value> = objects
                .iter()
                .filter_map(|object| object.get("rule"))
                .filter(|rule| {
                    let same = |key: &str| rule[key] == chain[key];
                    same("family") && same("table") && rule["chain"] == chain["name"]
                })
                .collect();
            of_chain(chain, &rules, passing, ports)
        })
        .collect();
    if found.is_empty() {
        found.push(Finding::fine(
            NAME,
            "no chain of nftables drops what comes in or goes out",
        ));
    }
    found
}

/// What there is to say of a chain that drops something.
fn of_chain(chain: &Value, rules: &[&Value], passing: Passing, ports: &[u16]) -> Option<Finding> {
    let inward = match chain["hook"].as_str()? {
        "input" | "prerouting" | "ingress" => true,
        "output" | "postrouting" => false,
        _ => return None,
    };
    // What we send to the server's port is answered from it.
    let field = match (passing, inward) {
        (Passing::Client, true) | (Passing::Server, false) => "sport",
        _ => "dport",
    };
    let is_named = |rule: &Value| ports.iter().any(|port| names_port(rule, field, *port));
    let name = ["family", "table", "name"].map(|key| chain[key].as_str().unwrap_or("?"));
    let name = name.join(" ");
    let dropping: Vec<&&Value> = rules.iter().filter(|rule| drops(rule)).collect();
    let closes = chain["policy"] == "drop" || dropping.iter().any(|rule| is_of_all(rule));
    if !closes && dropping.is_empty() {
        return None;
    }
    let texts: Vec<String> = ports.iter().map(u16::to_string).collect();
    let ports = texts.join(", ");
    if dropping.iter().any(|rule| is_named(rule)) {
        return Some(
            Finding::warning(NAME, format!("a rule of {name} drops port {ports}")).mend(format!(
                "see `nft list chain {name}`, and take the rule out"
            )),
        );
    }
    if !closes {
        let count = dropping.len();
        let text = format!("{name} drops by {count} of its rules, none of which names our port");
        return Some(Finding::fine(NAME, text));
    }
    let mut accepts = rules.iter().filter(|rule| has(rule, "accept"));
    let answers = inward == matches!(passing, Passing::Client);
    let lets = |rule: &&Value| is_named(rule) || is_of_all(rule) || (answers && is_of_known(rule));
    if accepts.any(lets) {
        let text = format!("{name} drops what it does not name, and names what is needed");
        return Some(Finding::fine(NAME, text));
    }
    if rules
        .iter()
        .any(|rule| has(rule, "jump") || has(rule, "goto"))
    {
        let text =
            format!("{name} drops what its rules do not accept; where they jump is not read");
        return Some(Finding::unknown(NAME, text));
    }
    let mend = match answers {
        true => "ct state established,related".to_owned(),
        false => format!("meta l4proto {{ tcp, udp }} th dport {{ {ports} }}"),
    };
    let mend = format!("nft insert rule {name} {mend} accept");
    let text = format!("{name} drops what its rules do not accept, and none accepts port {ports}");
    Some(Finding::warning(NAME, text).mend(mend))
}

/// The statements of a rule.
fn statements(rule: &Value) -> &[Value] {
    rule["expr"].as_array().map_or(&[], Vec::as_slice)
}

fn has(rule: &Value, verdict: &str) -> bool {
    let mut statements = statements(rule).iter();
    statements.any(|statement| statement.get(verdict).is_some())
}

fn drops(rule: &Value) -> bool {
    has(rule, "drop") || has(rule, "reject")
}

/// Does the rule hold for every packet?
fn is_of_all(rule: &Value) -> bool {
    let free = ["counter", "log", "accept", "drop", "reject", "comment"];
    let of_all = |statement: &Value| free.iter().any(|word| statement.get(word).is_some());
    statements(rule).iter().all(of_all)
}

/// Does the rule hold for connections that are known?
fn is_of_known(rule: &Value) -> bool {
    matches_of(rule)
        .any(|(left, right)| left["ct"]["key"] == "state" && holds(right, "established"))
}

/// Does the rule name this port in this field?
fn names_port(rule: &Value, field: &str, port: u16) -> bool {
    matches_of(rule).any(|(left, right)| left["payload"]["field"] == field && spans(right, port))
}

/// Left and right side of each comparison for equality.
fn matches_of(rule: &Value) -> impl Iterator<Item = (&Value, &Value)> {
    statements(rule).iter().filter_map(|statement| {
        let compared = statement.get("match")?;
        (compared["op"] != "!=").then_some((&compared["left"], &compared["right"]))
    })
}

/// Is a word among values?
fn holds(value: &Value, word: &str) -> bool {
    match value {
        Value::String(text) => text == word,
        Value::Array(values) => values.iter().any(|value| holds(value, word)),
        Value::Object(fields) => fields.get("set").is_some_and(|set| holds(set, word)),
        _ => false,
    }
}

/// Is a port among numbers and ranges?
fn spans(value: &Value, port: u16) -> bool {
    match value {
        Value::Number(number) => number.as_u64() == Some(port.into()),
        Value::Array(values) => values.iter().any(|value| spans(value, port)),
        Value::Object(fields) => {
            let end = |index: usize| fields.get("range")?.get(index)?.as_u64();
            let within = |from: u64, to: u64| (from..=to).contains(&port.into());
            fields.get("set").is_some_and(|set| spans(set, port))
                || matches!((end(0), end(1)), (Some(from), Some(to)) if within(from, to))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::*;

    /// A chain of input with these rules, as `nft -j` shows them.
    fn ruleset(policy: &str, rules: &[&str]) -> Vec<u8> {
        let place = r#""family":"inet","table":"t""#;
        let chain =
            format!(r#"{{"chain":{{{place},"name":"in","hook":"input","policy":"{policy}"}}}}"#);
        let rule = |expr: &&str| format!(r#"{{"rule":{{{place},"chain":"in","expr":[{expr}]}}}}"#);
        let parts: Vec<String> = [chain].into_iter().chain(rules.iter().map(rule)).collect();
        format!(
            r#"{{"nftables":[{{"metainfo":{{}}}},{}]}}"#,
            parts.join(",")
        )
        .into_bytes()
    }

    const KNOWN: &str = r#"{"match":{"op":"in","left":{"ct":{"key":"state"}},
        "right":["established","related"]}},{"accept":null}"#;
    const PORT: &str = r#"{"match":{"op":"==","left":{"payload":{"protocol":"udp","field":"dport"}},
        "right":4433}},{"accept":null}"#;
    const RANGE: &str = r#"{"match":{"op":"==","left":{"payload":{"protocol":"udp",
        "field":"dport"}},"right":{"set":[53,{"range":[4000,5000]}]}}},{"counter":{}},{"drop":null}"#;
    const NETWORK: &str = r#"{"match":{"op":"==","left":{"payload":{"protocol":"ip",
        "field":"saddr"}},"right":{"prefix":{"addr":"10.0.0.0","len":8}}}},{"reject":null}"#;
    const JUMP: &str = r#"{"jump":{"target":"other"}}"#;

    fn verdict(policy: &str, rules: &[&str], passing: Passing) -> Verdict {
        let found = judge(&ruleset(policy, rules), passing, &[4433]);
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].verdict
    }

    #[test]
    fn a_chain_that_drops_has_to_name_what_is_needed() {
        use Passing::{Client, Server};
        use Verdict::{Fine, Unknown, Warning};
        assert_eq!(verdict("accept", &[], Server), Fine);
        assert_eq!(verdict("drop", &[], Server), Warning);
        assert_eq!(verdict("drop", &[KNOWN], Server), Warning);
        assert_eq!(verdict("drop", &[KNOWN, PORT], Server), Fine);
        assert_eq!(verdict("drop", &[KNOWN], Client), Fine);
        assert_eq!(verdict("drop", &[PORT], Client), Warning);
        assert_eq!(verdict("drop", &[JUMP], Server), Unknown);
        assert_eq!(verdict("accept", &[RANGE], Server), Warning);
        assert_eq!(verdict("accept", &[NETWORK], Server), Fine);
        assert_eq!(
            verdict("accept", &[r#"{"counter":{}},{"drop":null}"#], Server),
            Warning
        );
    }

    #[test]
    fn odd_answers_are_no_panic() {
        for odd in [
            "",
            "[]",
            "7",
            r#"{"nftables":7}"#,
            r#"{"nftables":[7,{"chain":7}]}"#,
        ] {
            let found = judge(odd.as_bytes(), Passing::Server, &[4433]);
            assert!(found[0].verdict <= Verdict::Unknown, "{odd}");
        }
        let odd = ruleset(
            "drop",
            &[
                "7",
                r#"{"match":7}"#,
                r#"{"match":{"right":{"range":[7]}}}"#,
            ],
        );
        judge(&odd, Passing::Client, &[4433]);
    }
}
