//! Which conversations are carried how:
//!
//! ```text
//! [dscp=N][,proto=P][,port=N[-N]][,net=CIDR][,scheduler=SCHEDULER]
//!     [,priority=N][,lifetime=TIME][,ordered|unordered]
//! ```

use super::packet::{ICMP, ICMP_V6, Packet, TCP, UDP};
use crate::options::flow_to;
use crate::options::{priority, scheduler};
use bytes::Bytes;
use ipnet::IpNet;
use marline_base::text::{self, Keys, Problem, Takes, pairs};
use marline_proto::FlowOptions;
use marline_proto::sched::Choice;
use marline_proto::wire::FlowKind;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

const KEYS: &Keys = &[
    ("dscp", Takes::Value),
    ("proto", Takes::Value),
    ("port", Takes::Value),
    ("net", Takes::Value),
    ("scheduler", Takes::Value),
    ("priority", Takes::Value),
    ("lifetime", Takes::Value),
    ("ordered", Takes::Nothing),
    ("unordered", Takes::Nothing),
];
/// TCP asks again for what it misses, so a packet is worth carrying only about as long as that
/// takes.
const TCP_LIFETIME: Duration = Duration::from_secs(1);
/// Others would rather have the next packet.
const LIFETIME: Duration = Duration::from_millis(500);
const LIFETIME_RANGE: RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(60);

/// One rule: what it is for, and how that is carried.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    dscp: Option<u8>,
    protocol: Option<Protocol>,
    /// Of either end.
    ports: Option<RangeInclusive<u16>>,
    /// Of the end that is not this host.
    net: Option<IpNet>,
    scheduler: Option<Choice>,
    priority: Option<u8>,
    lifetime: Option<Duration>,
    ordered: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Number(u8),
    /// ICMP of either family.
    Icmp,
}

/// Rules in the order of the configuration; the first that a packet meets holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// The rules.
    pub rules: Vec<Rule>,
    /// The scheduler where no rule names one; `None` for the session's default.
    pub scheduler: Option<Choice>,
}

impl Rule {
    fn meets(&self, packet: &Packet) -> bool {
        let protocol = match self.protocol {
            None => true,
            Some(Protocol::Number(number)) => packet.protocol == number,
            Some(Protocol::Icmp) => matches!(packet.protocol, ICMP | ICMP_V6),
        };
        let ports = self.ports.as_ref().is_none_or(|range| {
            packet
                .ports
                .is_some_and(|(a, b)| range.contains(&a) || range.contains(&b))
        });
        let net = |net: &IpNet| net.contains(&packet.destination);
        protocol
            && ports
            && self.dscp.is_none_or(|dscp| dscp == packet.dscp)
            && self.net.as_ref().is_none_or(net)
    }
}

impl Rules {
    /// The number of the first rule that a packet of this host meets; `None` when it meets none.
    pub fn find(&self, packet: &Packet) -> Option<usize> {
        self.rules.iter().position(|rule| rule.meets(packet))
    }

    /// How a conversation that begins with `packet` is carried by the rule of this number.
    pub fn options(&self, rule: Option<usize>, packet: &Packet, target: Bytes) -> FlowOptions {
        let tcp = packet.protocol == TCP;
        let rule = rule.and_then(|number| self.rules.get(number));
        let said = rule.cloned().unwrap_or_default();
        let lifetime = if tcp { TCP_LIFETIME } else { LIFETIME };
        FlowOptions {
            priority: said.priority.unwrap_or(FlowOptions::MIDDLE_PRIORITY),
            scheduler: said.scheduler.or(self.scheduler),
            lifetime: Some(said.lifetime.unwrap_or(lifetime)),
            // Only TCP is slowed by packets that overtake each other.
            ordered: said.ordered.unwrap_or(tcp),
            ..flow_to(FlowKind::Packets, target)
        }
    }
}

impl FromStr for Rule {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let mut rule = Rule::default();
        for (key, value) in pairs(text, KEYS)? {
            match key {
                "dscp" => rule.dscp = Some(dscp(value)?),
                "proto" => rule.protocol = Some(value.parse()?),
                "port" => rule.ports = Some(ports(value)?),
                "net" => rule.net = Some(net(value)?),
                "scheduler" => rule.scheduler = scheduler(value, FlowKind::Packets)?,
                "priority" => rule.priority = Some(priority(value)?),
                "lifetime" => rule.lifetime = Some(lifetime(value)?),
                _ => match rule.ordered.replace(key == "ordered") {
                    None => {}
                    Some(_) => {
                        return Err(Problem::new("it cannot be both ordered and unordered"));
                    }
                },
            }
        }
        if rule.dscp.is_none()
            && rule.protocol.is_none()
            && rule.ports.is_none()
            && rule.net.is_none()
        {
            return Err(Problem::new("the rule does not say what it is for").hint(
                "add one or more of dscp=, proto=, port= and net=, for example `dscp=46,priority=0`",
            ));
        }
        Ok(rule)
    }
}

impl FromStr for Protocol {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        Ok(match text {
            "tcp" => Protocol::Number(TCP),
            "udp" => Protocol::Number(UDP),
            "icmp" => Protocol::Icmp,
            number => Protocol::Number(number.parse().map_err(|_| {
                Problem::new(format!("`{number}` is no protocol"))
                    .hint("write tcp, udp, icmp, or a number from 0 to 255")
            })?),
        })
    }
}

/// A code point by its number or its name: `ef`, `cs0` to `cs7`, `af11` to `af43` (RFC 2474, RFC
/// 2597, RFC 3246).
fn dscp(text: &str) -> Result<u8, Problem> {
    let digits = |text: &str| -> Option<u8> { text.parse().ok() };
    let named = match text.as_bytes() {
        b"ef" => Some(46),
        [b'c', b's', class @ b'0'..=b'7'] => Some((class - b'0') * 8),
        [b'a', b'f', class @ b'1'..=b'4', drop @ b'1'..=b'3'] => {
            Some((class - b'0') * 8 + (drop - b'0') * 2)
        }
        _ => digits(text).filter(|number| *number < 64),
    };
    named.ok_or_else(|| {
        Problem::new(format!("`{text}` is no code point"))
            .hint("write a number from 0 to 63, or ef, cs0 to cs7, af11 to af43")
    })
}

fn ports(text: &str) -> Result<RangeInclusive<u16>, Problem> {
    let wrong = || {
        Problem::new(format!("`{text}` is neither a port nor a range of ports"))
            .hint("write `5060` or `5060-5099`")
    };
    let port = |text: &str| text.parse::<u16>().map_err(|_| wrong());
    let range = match text.split_once('-') {
        Some((low, high)) => port(low)?..=port(high)?,
        None => port(text)?..=port(text)?,
    };
    if range.is_empty() {
        Err(wrong())
    } else {
        Ok(range)
    }
}

/// A network, or one address.
fn net(text: &str) -> Result<IpNet, Problem> {
    let address = |_| text.parse::<IpAddr>().map(IpNet::from);
    let net = text.parse::<IpNet>().or_else(address).map_err(|_| {
        Problem::new(format!("`{text}` is not a network"))
            .hint("write `192.0.2.0/24`, `2001:db8::/32` or an address")
    })?;
    Ok(net.trunc())
}

fn lifetime(text: &str) -> Result<Duration, Problem> {
    let lifetime = text::duration(text)?;
    if LIFETIME_RANGE.contains(&lifetime) {
        Ok(lifetime)
    } else {
        Err(Problem::new(format!(
            "`{text}` is not between 10ms and 60s"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::tests::{v4, v6};
    use super::*;

    fn rules(texts: &[&str]) -> Rules {
        Rules {
            rules: texts.iter().map(|text| text.parse().unwrap()).collect(),
            scheduler: Some("brim".parse().unwrap()),
        }
    }

    fn found(rules: &Rules, bytes: &[u8]) -> Option<usize> {
        rules.find(&Packet::parse(bytes).unwrap())
    }

    /// From port 12345 to port 53, code point 46.
    const HEAD: [u8; 8] = [0x30, 0x39, 0, 53, 0, 8, 0, 0];

    #[test]
    fn the_first_rule_that_a_packet_meets_holds() {
        let rules = rules(&[
            "proto=tcp,port=443,ordered",
            "net=2001:db8::/32,priority=1",
            "port=50-60,priority=0,scheduler=redundant,lifetime=100ms",
            "dscp=ef,priority=2",
        ]);
        assert_eq!(found(&rules, &v4(UDP, &HEAD)), Some(2));
        assert_eq!(found(&rules, &v6(UDP, &HEAD)), Some(1));
        assert_eq!(found(&rules, &v4(TCP, &HEAD)), Some(2));
        assert_eq!(found(&rules, &v4(UDP, &[0, 1, 0, 2, 0, 8, 0, 0])), Some(3));
        let mut plain = v4(UDP, &[0, 1, 0, 2, 0, 8, 0, 0]);
        plain[1] = 0;
        assert_eq!(found(&rules, &plain), None);
        let icmp: Rules = Rules {
            rules: vec!["proto=icmp".parse().unwrap()],
            scheduler: None,
        };
        assert_eq!(found(&icmp, &v4(ICMP, &HEAD)), Some(0));
        assert_eq!(found(&icmp, &v6(ICMP_V6, &HEAD)), Some(0));
        assert_eq!(found(&icmp, &v4(UDP, &HEAD)), None);
    }

    #[test]
    fn a_conversation_is_carried_as_its_rule_says_or_else_as_its_protocol_likes() {
        let rules = rules(&["port=53,priority=0,scheduler=redundant,lifetime=100ms,ordered"]);
        let packet = Packet::parse(&v4(UDP, &HEAD)).unwrap();
        let said = rules.options(Some(0), &packet, Bytes::new());
        assert_eq!(said.scheduler, Some("redundant".parse().unwrap()));
        assert_eq!((said.priority, said.ordered), (0, true));
        assert_eq!(said.lifetime, Some(Duration::from_millis(100)));
        let default = rules.options(None, &packet, Bytes::new());
        assert_eq!(default.scheduler, Some("brim".parse().unwrap()));
        assert_eq!((default.priority, default.ordered), (3, false));
        assert_eq!(default.lifetime, Some(LIFETIME));
        let tcp = Packet::parse(&v4(TCP, &HEAD)).unwrap();
        let default = rules.options(None, &tcp, Bytes::new());
        assert!(default.ordered);
        assert_eq!(default.lifetime, Some(TCP_LIFETIME));
    }

    #[test]
    fn wrong_rules_are_refused_with_the_reason() {
        for (text, reason) in [
            ("", "unknown option ``"),
            ("priority=0", "does not say what it is for"),
            ("dscp=64", "no code point"),
            ("dscp=af14", "no code point"),
            ("dscp", "needs a value"),
            ("proto=http", "no protocol"),
            ("port=9-3", "neither a port nor a range"),
            ("net=10.0.0.0/33", "not a network"),
            ("port=1,scheduler=edfp", "unknown scheduler"),
            ("port=1,priority=8", "0 (served first) to 7"),
            ("port=1,lifetime=5ms", "between 10ms and 60s"),
            ("port=1,ordered=yes", "takes no value"),
            ("port=1,ordered,unordered", "both"),
            ("port=1,port=2", "twice"),
            ("port=1,prioriti=2", "unknown option `prioriti`"),
        ] {
            let problem = text.parse::<Rule>().expect_err(text);
            assert!(problem.message.contains(reason), "{text}: {problem}");
        }
        for (text, number) in [("ef", 46), ("cs5", 40), ("af41", 34), ("0", 0), ("63", 63)] {
            assert_eq!(dscp(text), Ok(number), "{text}");
        }
    }
}
