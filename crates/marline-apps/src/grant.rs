//! What an operator grants one client: the words before its key in the list of clients, such as
//! `down=20mbit,publish=tcp:8443 marline-pub:... van in Turin`.

use crate::proxy::policy::{Policy, Rule};
use crate::publish::Permit;
use crate::tun::Prefix;
use marline::endpoint::ClientLimits;
use marline::identity::PublicKey;
use marline_base::Rate;
use marline_base::text::{Problem, rate, suggest};
use std::net::IpAddr;

/// The options, each with an example.
pub const OPTIONS: [(&str, &str); 7] = [
    ("down", "down=20mbit"),
    ("up", "up=5mbit"),
    ("allow-target", "allow-target=10.1.0.0/16:443"),
    ("deny-target", "deny-target=*:25"),
    ("publish", "publish=tcp:8443+udp:9000-9010"),
    ("prefix", "prefix=192.168.7.0/24"),
    ("address", "address=10.77.0.9"),
];
/// The lowest rate of a client: a packet of 1,500 bytes takes an eighth of a second.
const SLOWEST: Rate = Rate::from_kbps(100);

/// What is granted to one client; the default is what all have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    /// Rates that it is kept to.
    pub limits: ClientLimits,
    /// Targets that it may reach, in place of the server's `--allow-target`, and that it may not
    /// reach, beside the server's `--deny-target`; `None` without any of its own.
    pub targets: Option<Policy>,
    /// Ports that it may publish, beside `--allow-publish`.
    pub publish: Vec<Permit>,
    /// Networks behind it, beside `--allow-prefix`.
    pub prefixes: Vec<Prefix>,
    /// Its address in the tunnel.
    pub address: Option<IpAddr>,
}

/// An option that cannot be granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantError {
    /// Its name.
    pub option: String,
    /// What is wrong with it.
    pub problem: Problem,
}

/// `NAME=VALUE` pairs as they are written, separated by commas.
///
/// # Errors
/// A word without a name or a value, or with a name that no option has.
pub fn pairs(options: &str) -> Result<Vec<(&str, &str)>, GrantError> {
    let words = options.split(',').filter(|word| !word.is_empty());
    words.map(pair).collect()
}

/// One of them.
///
/// # Errors
/// As [`pairs`].
pub fn pair(word: &str) -> Result<(&str, &str), GrantError> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    let fault = |problem| GrantError {
        option: name.to_owned(),
        problem,
    };
    let Some((_, example)) = OPTIONS.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
        let problem = Problem::new(format!("there is no option `{name}` of a client"));
        return Err(fault(problem.hint(suggest(name, &names, "option"))));
    };
    match value.is_empty() {
        true => Err(fault(
            Problem::new("it has no value").hint(format!("write `{example}`")),
        )),
        false => Ok((name, value)),
    }
}

impl Grant {
    /// Reads the options of the client `key`.
    ///
    /// # Errors
    /// The first option that is none, or that is given twice and cannot be.
    pub fn read(key: PublicKey, options: &str) -> Result<Self, GrantError> {
        let mut grant = Grant::default();
        let (mut allow, mut deny) = (Vec::new(), Vec::new());
        for (name, value) in pairs(options)? {
            let rules = || value.split('+').map(str::parse::<Rule>);
            let taken = match name {
                "allow-target" => rules().try_for_each(|rule| rule.map(|rule| allow.push(rule))),
                "deny-target" => rules().try_for_each(|rule| rule.map(|rule| deny.push(rule))),
                _ => grant.take(key, name, value),
            };
            taken.map_err(|problem| GrantError {
                option: name.to_owned(),
                problem,
            })?;
        }
        if !(allow.is_empty() && deny.is_empty()) {
            grant.targets = Some(Policy::new(allow, deny));
        }
        Ok(grant)
    }

    fn take(&mut self, key: PublicKey, name: &str, value: &str) -> Result<(), Problem> {
        match name {
            "down" => once(&mut self.limits.down, limit(value)?)?,
            "up" => once(&mut self.limits.up, limit(value)?)?,
            "publish" => self.publish.push(Permit::of(key, value)?),
            "prefix" => self.prefixes.push(Prefix::of(key, value)?),
            _ => {
                let address = value.parse().map_err(|_| {
                    Problem::new(format!("`{value}` is no address"))
                        .hint("write one of the tunnel's pool, such as `10.77.0.9`")
                })?;
                once(&mut self.address, address)?;
            }
        }
        Ok(())
    }
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<(), Problem> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Problem::new("it is given twice").hint("leave one of them out")),
    }
}

fn limit(text: &str) -> Result<Rate, Problem> {
    let rate = rate(text)?;
    match rate < SLOWEST {
        true => Err(Problem::new(format!("`{text}` is too slow for a session"))
            .hint("write at least `100kbit`")),
        false => Ok(rate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::Permits;
    use proptest::prelude::*;

    fn key() -> PublicKey {
        PublicKey::from_bytes([7; 32])
    }

    #[test]
    fn every_option_is_read_as_its_example_shows() {
        let all: Vec<&str> = OPTIONS.iter().map(|(_, example)| *example).collect();
        let grant = Grant::read(key(), &all.join(",")).unwrap();
        assert_eq!(grant.limits.down, Some(Rate::from_mbps(20)));
        assert_eq!(grant.limits.up, Some(Rate::from_mbps(5)));
        let rules = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let own = Policy::new(rules(&["10.1.0.0/16:443"]), rules(&["*:25"]));
        assert_eq!(grant.targets, Some(own));
        let permit = format!("{}=tcp:8443+udp:9000-9010", key());
        assert_eq!(
            Permits::new(grant.publish),
            Permits::new([permit.parse().unwrap()])
        );
        let prefix = format!("{}=192.168.7.0/24", key());
        assert_eq!(grant.prefixes, [prefix.parse().unwrap()]);
        assert_eq!(grant.address, Some("10.77.0.9".parse().unwrap()));
        assert_eq!(Grant::read(key(), "").unwrap(), Grant::default());
        let all = "deny-target=*:25,deny-target=[fd00::/8]:80+*:26";
        let own = Policy::new(Vec::new(), rules(&["*:25", "[fd00::/8]:80", "*:26"]));
        assert_eq!(Grant::read(key(), all).unwrap().targets, Some(own));
    }

    #[test]
    fn wrong_options_are_refused_by_name_with_the_mend() {
        for (options, option, message, hint) in [
            ("dwon=1mbit", "dwon", "there is no option `dwon`", "down"),
            ("down", "down", "no value", "down=20mbit"),
            ("up=", "up", "no value", "up=5mbit"),
            ("up=fast", "up", "fast", ""),
            ("up=9kbit", "up", "too slow", "100kbit"),
            ("up=1mbit,up=2mbit", "up", "twice", "leave one"),
            ("publish=8443", "publish", "no port", "tcp:PORT"),
            (
                "prefix=192.168.7.1/24",
                "prefix",
                "bits set",
                "192.168.7.0/24",
            ),
            ("address=here", "address", "no address", "10.77.0.9"),
            ("allow-target=a b", "allow-target", "neither", "CIDR"),
        ] {
            let error = Grant::read(key(), options).expect_err(options);
            assert_eq!(error.option, option, "{options}");
            let problem = error.problem;
            assert!(problem.message.contains(message), "{options}: {problem}");
            let said = problem.hint.unwrap_or_default();
            assert!(said.contains(hint), "{options}: {said}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_options_or_an_error(text in "[a-z=,+:./0-9-]{0,40}") {
            let _ = Grant::read(key(), &text);
        }
    }
}
