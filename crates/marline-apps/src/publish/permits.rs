//! Which ports a server opens for which client: `KEY=tcp:PORT[-PORT][+udp:PORT[-PORT]]...`.

use crate::destination::ServerPort;
use crate::proxy::Protocol;
use marline::identity::PublicKey;
use marline_base::text::Problem;
use std::collections::HashMap;
use std::num::NonZeroU16;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Ports of one protocol.
type Ports = (Protocol, RangeInclusive<NonZeroU16>);

/// Ports that one client may publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    /// The client.
    pub key: PublicKey,
    ports: Vec<Ports>,
}

impl Permit {
    /// What the client of this key may publish, as it stands behind `=`.
    ///
    /// # Errors
    /// A port that is none.
    pub fn of(key: PublicKey, ports: &str) -> Result<Self, Problem> {
        let ports = ports.split('+').map(|ports| read(ports.trim()));
        let ports = ports.collect::<Result<_, _>>()?;
        Ok(Permit { key, ports })
    }
}

/// What all clients may publish.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permits(HashMap<PublicKey, Vec<Ports>>);

impl Permits {
    /// These; a client may have several.
    pub fn new(permits: impl IntoIterator<Item = Permit>) -> Self {
        let mut all: HashMap<PublicKey, Vec<Ports>> = HashMap::new();
        for permit in permits {
            all.entry(permit.key).or_default().extend(permit.ports);
        }
        Permits(all)
    }

    /// All ports that somebody may publish.
    pub fn ports(&self) -> impl Iterator<Item = ServerPort> {
        let ranges = self.0.values().flatten();
        ranges.flat_map(|(protocol, range)| {
            let numbers = range.start().get()..=range.end().get();
            let numbers = numbers.filter_map(NonZeroU16::new);
            numbers.map(|number| ServerPort {
                protocol: *protocol,
                number,
            })
        })
    }

    /// May nobody publish anything?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn allow(&self, key: &PublicKey, port: ServerPort) -> bool {
        self.0.get(key).is_some_and(|ports| {
            let covers = |(protocol, range): &Ports| {
                *protocol == port.protocol && range.contains(&port.number)
            };
            ports.iter().any(covers)
        })
    }
}

impl FromStr for Permit {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let (key, ports) = text.split_once('=').ok_or_else(|| {
            Problem::new("it names no ports").hint(
                "write KEY=PORTS, the client's key and what it may publish, for example \
                 `marline-pub:...=tcp:8443+udp:9000-9010`",
            )
        })?;
        let key = key.trim().parse::<PublicKey>().map_err(|error| {
            Problem::new(error.to_string())
                .hint("`marline identity show` on the client prints its key")
        })?;
        Permit::of(key, ports)
    }
}

fn read(text: &str) -> Result<Ports, Problem> {
    let shape = || {
        Problem::new(format!("`{text}` is no port that can be published"))
            .hint("write tcp:PORT, udp:PORT or a range such as udp:9000-9010")
    };
    let (protocol, numbers) = text.split_once(':').ok_or_else(shape)?;
    let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
    let number = |text: &str| text.parse::<NonZeroU16>().map_err(|_| shape());
    let (first, last) = (number(first)?, number(last)?);
    if first > last {
        return Err(Problem::new(format!(
            "the range `{text}` ends before it begins"
        )));
    }
    Ok((protocol.parse()?, first..=last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline::identity::Identity;

    fn key() -> PublicKey {
        Identity::generate().unwrap().public_key()
    }

    #[test]
    fn a_client_has_its_own_ports_and_no_others() {
        let (one, other) = (key(), key());
        let permits = [
            format!("{one}=tcp:8443+udp:9000-9010"),
            format!("{one}=udp:53"),
            format!("{other}=tcp:80"),
        ];
        let permits = Permits::new(permits.iter().map(|text| text.parse().unwrap()));
        for (key, port, allowed) in [
            (one, "tcp:8443", true),
            (one, "udp:8443", false),
            (one, "udp:9000", true),
            (one, "udp:9010", true),
            (one, "udp:9011", false),
            (one, "udp:53", true),
            (one, "tcp:80", false),
            (other, "tcp:80", true),
            (other, "tcp:8443", false),
            (key(), "tcp:80", false),
        ] {
            assert_eq!(
                permits.allow(&key, port.parse().unwrap()),
                allowed,
                "{port}"
            );
        }
    }

    #[test]
    fn wrong_permits_are_refused_with_the_reason() {
        let key = key();
        for (text, reason) in [
            (key.to_string(), "names no ports"),
            ("marline-pub:x=tcp:1".to_owned(), "key"),
            (format!("{key}="), "no port that can be published"),
            (format!("{key}=8443"), "no port that can be published"),
            (format!("{key}=tcp:0"), "no port that can be published"),
            (format!("{key}=tcp:9-8"), "ends before it begins"),
            (format!("{key}=sctp:1"), "neither `tcp` nor `udp`"),
        ] {
            let problem = text.parse::<Permit>().expect_err(&text);
            assert!(problem.message.contains(reason), "{text}: {problem}");
        }
    }
}
