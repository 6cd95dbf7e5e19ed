//! What becomes of a packet in a chain of nftables, as `nft -j` shows it (libnftables-json(5)).
//!
//! Rules are followed in their order, jumps included. What is not understood may match or not, and
//! may accept or drop.

use serde_json::Value;
use std::cell::Cell;
use std::collections::HashMap;
use std::ops::RangeInclusive;

/// Jumps within jumps that the kernel allows (`NFT_JUMP_STACK_SIZE`, net/netfilter/nf_tables.h).
const DEPTH: usize = 16;
/// Rules that are followed for a packet at most, jumps included: some tenths of a second. Rule sets
/// that programs make have some ten thousand.
const MOST: usize = 1_000_000;

/// A packet as far as rules ask about it.
#[derive(Debug, Clone)]
pub struct Packet {
    /// `udp` or `tcp`.
    pub protocol: &'static str,
    /// What its source port may be.
    pub sport: RangeInclusive<u16>,
    /// What its destination port may be.
    pub dport: RangeInclusive<u16>,
    /// What connection tracking calls it: `new` or `established`.
    pub state: &'static str,
    /// The interface that it comes in by, where that is known.
    pub iif: Option<String>,
    /// The interface that it leaves by, where that is known.
    pub oif: Option<String>,
}

/// What may become of a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fate {
    /// It is accepted, perhaps.
    pub accepted: bool,
    /// It is dropped, perhaps.
    pub dropped: bool,
    /// It comes to the end of the chain.
    pub falls_through: bool,
}

impl Fate {
    const ANY: Self = Self {
        accepted: true,
        dropped: true,
        falls_through: true,
    };

    fn or(self, other: Self) -> Self {
        Self {
            accepted: self.accepted || other.accepted,
            dropped: self.dropped || other.dropped,
            falls_through: self.falls_through || other.falls_through,
        }
    }
}

/// Whether something matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    Yes,
    No,
    /// It depends on what is not known here.
    Maybe,
}

impl Match {
    fn of(known: bool) -> Self {
        if known { Self::Yes } else { Self::No }
    }

    fn not(self) -> Self {
        match self {
            Self::Yes => Self::No,
            Self::No => Self::Yes,
            Self::Maybe => Self::Maybe,
        }
    }

    fn any(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self::No, |one, other| match (one, other) {
            (Self::Yes, _) | (_, Self::Yes) => Self::Yes,
            (Self::No, Self::No) => Self::No,
            _ => Self::Maybe,
        })
    }
}

/// The rules of a rule set, by family, table and chain.
#[derive(Debug)]
pub struct Rules<'a>(HashMap<[&'a str; 3], Vec<&'a Value>>);

impl<'a> Rules<'a> {
    /// Of the objects of a list (`nftables`).
    pub fn of(objects: &'a [Value]) -> Self {
        let mut rules: HashMap<[&str; 3], Vec<&Value>> = HashMap::new();
        for rule in objects.iter().filter_map(|object| object.get("rule")) {
            let place = ["family", "table", "chain"].map(|key| rule[key].as_str());
            if let [Some(family), Some(table), Some(chain)] = place {
                rules.entry([family, table, chain]).or_default().push(rule);
            }
        }
        Self(rules)
    }

    /// What becomes of the packet in this chain, its policy included.
    pub fn fate(&'a self, chain: &'a Value, packet: &'a Packet) -> Fate {
        let text = |key: &str| chain[key].as_str().unwrap_or_default();
        let walk = Walk {
            rules: self,
            family: text("family"),
            table: text("table"),
            packet,
            left: Cell::new(MOST),
        };
        let mut fate = walk.follow(text("name"), 0);
        if fate.falls_through {
            match chain["policy"].as_str() {
                Some("drop") => fate.dropped = true,
                Some("accept") | None => fate.accepted = true,
                Some(_) => fate = fate.or(Fate::ANY),
            }
        }
        fate
    }
}

/// The way of a packet through the chains of a table.
#[derive(Debug)]
struct Walk<'a> {
    rules: &'a Rules<'a>,
    family: &'a str,
    table: &'a str,
    packet: &'a Packet,
    /// Rules that may still be followed.
    left: Cell<usize>,
}

impl Walk<'_> {
    fn follow(&self, chain: &str, depth: usize) -> Fate {
        if depth > DEPTH {
            return Fate::ANY;
        }
        let mut fate = Fate::default();
        let rules = self.rules.0.get(&[self.family, self.table, chain]);
        for rule in rules.into_iter().flatten() {
            let Some(left) = self.left.get().checked_sub(1) else {
                return Fate::ANY;
            };
            self.left.set(left);
            match self.rule(rule, depth) {
                (after, Match::Yes) => return fate.or(after),
                (after, Match::Maybe) => fate = fate.or(after),
                (_, Match::No) => {}
            }
        }
        fate.falls_through = true;
        fate
    }

    /// What a rule decides, and whether it decides at all.
    fn rule(&self, rule: &Value, depth: usize) -> (Fate, Match) {
        let Some(statements) = rule["expr"].as_array() else {
            return (Fate::ANY, Match::Maybe);
        };
        let mut holds = Match::Yes;
        for (at, statement) in statements.iter().enumerate() {
            let (name, value) = match statement.as_object().and_then(|it| it.iter().next()) {
                Some((name, value)) => (&**name, value),
                None => return (Fate::ANY, Match::Maybe),
            };
            match name {
                "counter" | "log" | "comment" | "mangle" | "notrack" => {}
                "match" => match self.compared(value) {
                    Match::Yes => {}
                    Match::No => return (Fate::default(), Match::No),
                    Match::Maybe => holds = Match::Maybe,
                },
                "limit" | "quota" | "ct count" => holds = Match::Maybe,
                // A match of iptables, as something follows.
                "xt" if at + 1 < statements.len() => holds = Match::Maybe,
                "vmap" => match self.mapped(value, depth) {
                    (_, Match::No) => return (Fate::default(), Match::No),
                    (fate, Match::Yes) => return (fate, holds),
                    (fate, Match::Maybe) => return (fate, Match::Maybe),
                },
                _ => {
                    let (fate, decides) = self.verdict(name, value, depth);
                    let decides = match (holds, decides) {
                        (Match::Yes, decides) | (Match::Maybe, decides @ Match::No) => decides,
                        _ => Match::Maybe,
                    };
                    return (fate, decides);
                }
            }
        }
        // It only counts, or logs.
        (Fate::default(), Match::No)
    }

    /// What a verdict decides, and whether rules after it are not asked.
    fn verdict(&self, name: &str, value: &Value, depth: usize) -> (Fate, Match) {
        let accepted = Fate {
            accepted: true,
            ..Fate::default()
        };
        let dropped = Fate {
            dropped: true,
            ..Fate::default()
        };
        let through = Fate {
            falls_through: true,
            ..Fate::default()
        };
        let target = value["target"].as_str().unwrap_or_default();
        match name {
            // They translate the source, and let pass.
            "accept" | "masquerade" | "snat" => (accepted, Match::Yes),
            "drop" | "reject" => (dropped, Match::Yes),
            "return" => (through, Match::Yes),
            "continue" => (Fate::default(), Match::No),
            // A target of iptables that nftables has no words for (LOG, TCPMSS, REJECT): what
            // accepts has words.
            "xt" => (dropped, Match::Maybe),
            "goto" => (self.follow(target, depth + 1), Match::Yes),
            "jump" => {
                let mut fate = self.follow(target, depth + 1);
                let comes_back = std::mem::take(&mut fate.falls_through);
                let decides = match (comes_back, fate.accepted || fate.dropped) {
                    (false, _) => Match::Yes,
                    (true, true) => Match::Maybe,
                    (true, false) => Match::No,
                };
                (fate, decides)
            }
            _ => (Fate::ANY, Match::Maybe),
        }
    }

    /// What the verdict map decides for the packet.
    fn mapped(&self, vmap: &Value, depth: usize) -> (Fate, Match) {
        let Some(elements) = vmap["data"]["set"].as_array() else {
            return (Fate::ANY, Match::Maybe);
        };
        let mut fate = Fate::default();
        let mut decides = Match::No;
        for element in elements {
            let verdict = element[1].as_object().and_then(|it| it.iter().next());
            let matched = self.equal(&vmap["key"], &element[0]);
            let (after, decided) = match (matched, verdict) {
                (Match::No, _) => continue,
                (_, Some((name, value))) => self.verdict(name, value, depth),
                (_, None) => (Fate::ANY, Match::Maybe),
            };
            if matched == Match::Yes && decides == Match::No {
                return (after, decided);
            }
            fate = fate.or(after);
            decides = Match::Maybe;
        }
        (fate, decides)
    }

    fn compared(&self, compared: &Value) -> Match {
        let equal = self.equal(&compared["left"], &compared["right"]);
        match compared["op"].as_str() {
            Some("==" | "in") => equal,
            // Of another protocol there is no such field to compare.
            Some("!=") if self.is_of_another_protocol(&compared["left"]) => Match::No,
            Some("!=") => equal.not(),
            _ => Match::Maybe,
        }
    }

    fn is_of_another_protocol(&self, left: &Value) -> bool {
        let protocol = left["payload"]["protocol"].as_str();
        protocol.is_some_and(|it| ["udp", "tcp"].contains(&it) && it != self.packet.protocol)
    }

    fn equal(&self, left: &Value, right: &Value) -> Match {
        let word = |object: &str, key: &str| left[object][key].as_str();
        if self.is_of_another_protocol(left) {
            return Match::No;
        }
        match (word("payload", "protocol"), word("payload", "field")) {
            (Some("udp" | "tcp" | "th"), Some("sport")) => spans(right, &self.packet.sport),
            (Some("udp" | "tcp" | "th"), Some("dport")) => spans(right, &self.packet.dport),
            (Some("ip"), Some("protocol")) if self.family == "ip" => {
                holds(right, self.packet.protocol)
            }
            (None, None) => match (word("meta", "key"), word("ct", "key")) {
                (Some("l4proto"), None) => holds(right, self.packet.protocol),
                (Some("iif" | "iifname"), None) => is_interface(right, &self.packet.iif),
                (Some("oif" | "oifname"), None) => is_interface(right, &self.packet.oif),
                (None, Some("state")) => holds(right, self.packet.state),
                _ => Match::Maybe,
            },
            _ => Match::Maybe,
        }
    }
}

/// Is a word among values?
fn holds(value: &Value, word: &str) -> Match {
    match value {
        // What a named set holds is not read.
        Value::String(text) if text.starts_with('@') => Match::Maybe,
        Value::String(text) => Match::of(text == word),
        Value::Array(values) => Match::any(values.iter().map(|value| holds(value, word))),
        Value::Object(fields) => fields
            .get("set")
            .map_or(Match::Maybe, |set| holds(set, word)),
        _ => Match::Maybe,
    }
}

/// Is an interface among names? What comes from elsewhere comes by no loopback interface.
fn is_interface(value: &Value, name: &Option<String>) -> Match {
    match (value, name) {
        (Value::String(text), _) if text == "lo" => Match::No,
        (_, None) => Match::Maybe,
        (Value::String(text), Some(name)) if !text.starts_with('@') => match text.strip_suffix('*')
        {
            Some(start) => Match::of(name.starts_with(start)),
            None => Match::of(text == name),
        },
        (Value::Array(values), _) => {
            Match::any(values.iter().map(|value| is_interface(value, name)))
        }
        (Value::Object(fields), _) => fields
            .get("set")
            .map_or(Match::Maybe, |set| is_interface(set, name)),
        _ => Match::Maybe,
    }
}

/// Is a port that is one of these among numbers and ranges?
fn spans(value: &Value, ports: &RangeInclusive<u16>) -> Match {
    let (first, last) = (u64::from(*ports.start()), u64::from(*ports.end()));
    let within = |from: u64, to: u64| match () {
        () if from <= first && last <= to => Match::Yes,
        () if to < first || last < from => Match::No,
        () => Match::Maybe,
    };
    match value {
        Value::Number(number) => number.as_u64().map_or(Match::Maybe, |it| within(it, it)),
        Value::Array(values) => Match::any(values.iter().map(|value| spans(value, ports))),
        Value::Object(fields) => {
            let end = |index: usize| fields.get("range")?.get(index)?.as_u64();
            match (fields.get("set"), end(0), end(1)) {
                (Some(set), ..) => spans(set, ports),
                (None, Some(from), Some(to)) => within(from, to),
                _ => Match::Maybe,
            }
        }
        _ => Match::Maybe,
    }
}
