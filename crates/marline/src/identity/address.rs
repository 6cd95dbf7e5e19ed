use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use super::key::{KeyTextError, PublicKey};

/// The UDP port of a server when none is given.
pub const DEFAULT_PORT: u16 = 4433;

/// Most addresses that a connection string may list.
pub const MAX_ADDRESSES: usize = 16;

const SCHEME: &str = "marline://";

/// A host as a user writes it: an address, or a name that is looked up when dialling.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A literal address.
    Ip(IpAddr),
    /// A host name, at most 253 characters (RFC 1035 section 2.3.4).
    Name(String),
}

/// A host and its UDP port. Text form `host`, `host:port` or `[IPv6]:port`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// The host.
    pub host: Host,
    /// The UDP port, never 0; [`DEFAULT_PORT`] when the text has none.
    pub port: u16,
}

/// Why a text is not `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostPortError {
    /// Nothing before the port.
    #[error("the host is missing")]
    NoHost,
    /// Not a port.
    #[error("`{0}` is not a port: write a number from 1 to 65535")]
    Port(String),
    /// `[` without `]`.
    #[error("the bracket around the IPv6 address is not closed: write `[address]:port`")]
    Bracket,
    /// An IPv6 address without brackets, whose port could not be distinguished from it.
    #[error("an IPv6 address stands in brackets: write `[{0}]` or `[{0}]:port`")]
    BareIpv6(Ipv6Addr),
    /// What stands in brackets is no IPv6 address.
    #[error("`{0}` is not an IPv6 address")]
    Ipv6(String),
    /// Neither an address nor a possible host name.
    #[error(
        "`{0}` is neither an address nor a host name (letters, digits, `-`, `_` and dots, at most \
         63 characters between two dots and 253 in all)"
    )]
    Name(String),
}

impl FromStr for HostPort {
    type Err = HostPortError;

    fn from_str(text: &str) -> Result<Self, HostPortError> {
        let (host, port) = Self::parts(text)?;
        Ok(Self {
            host,
            port: port.unwrap_or(DEFAULT_PORT),
        })
    }
}

impl HostPort {
    /// The host, and the port if the text has one: for callers with another default than
    /// [`DEFAULT_PORT`].
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parts(text: &str) -> Result<(Host, Option<u16>), HostPortError> {
        if let Ok(ip) = text.parse::<Ipv6Addr>() {
            return Err(HostPortError::BareIpv6(ip));
        }
        if let Some(rest) = text.strip_prefix('[') {
            let (ip, port) = rest.split_once(']').ok_or(HostPortError::Bracket)?;
            let ip = ip
                .parse::<Ipv6Addr>()
                .map_err(|_| HostPortError::Ipv6(ip.to_owned()))?;
            let port = match port.strip_prefix(':') {
                Some(port) => Some(parse_port(port)?),
                None if port.is_empty() => None,
                None => return Err(HostPortError::Port(port.to_owned())),
            };
            return Ok((Host::Ip(ip.into()), port));
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(parse_port(port)?)),
            None => (text, None),
        };
        if host.is_empty() {
            return Err(HostPortError::NoHost);
        }
        let host = match host.parse::<IpAddr>() {
            Ok(ip) => Host::Ip(ip),
            Err(_) if is_name(host) => Host::Name(host.to_ascii_lowercase()),
            Err(_) => return Err(HostPortError::Name(host.to_owned())),
        };
        Ok((host, port))
    }
}

fn parse_port(text: &str) -> Result<u16, HostPortError> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|&port| digits && port != 0)
        .ok_or_else(|| HostPortError::Port(text.to_owned()))
}

fn is_name(host: &str) -> bool {
    let host_without_root = host.strip_suffix('.').unwrap_or(host);
    // A last label of digits only is a mistyped IPv4 address, not a name (RFC 1123 section 2.1).
    let last = host_without_root.rsplit('.').next().unwrap_or_default();
    host_without_root.len() <= 253
        && !last.bytes().all(|b| b.is_ascii_digit())
        && host_without_root.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        })
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]:{}", self.port),
            Host::Ip(ip) => write!(f, "{ip}:{}", self.port),
            Host::Name(name) => write!(f, "{name}:{}", self.port),
        }
    }
}

/// All that a client must know of a server, in one line that can be pasted:
/// `marline://KEY@host:port,host2:port2`, with the server's key in its bare form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionString {
    server: PublicKey,
    addresses: Vec<HostPort>,
}

/// Why a text is not a connection string.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionStringError {
    /// Another scheme, or none.
    #[error("a connection string starts with `{SCHEME}`; ask the server's owner for it")]
    Scheme,
    /// There is no `@`.
    #[error("the connection string has no `@` between the server's key and its address")]
    NoKey,
    /// What stands before `@` is no public key.
    #[error("the connection string's key, before `@`: {0}")]
    Key(#[from] KeyTextError),
    /// Nothing stands behind `@`.
    #[error("the connection string has no address behind `@`: write `host:port`")]
    NoAddress,
    /// One of the addresses is wrong.
    #[error("the connection string's address {number}, `{text}`: {source}")]
    Address {
        /// Which address, counted from 1.
        number: usize,
        /// What stands there.
        text: String,
        /// What is wrong with it.
        source: HostPortError,
    },
    /// More than [`MAX_ADDRESSES`] addresses.
    #[error("the connection string has {0} addresses; {MAX_ADDRESSES} are the most")]
    TooMany(usize),
}

impl ConnectionString {
    /// A connection string for this server at these addresses, 1 to [`MAX_ADDRESSES`] of them.
    pub fn new(server: PublicKey, addresses: Vec<HostPort>) -> Result<Self, ConnectionStringError> {
        match addresses.len() {
            0 => Err(ConnectionStringError::NoAddress),
            1..=MAX_ADDRESSES => Ok(Self { server, addresses }),
            count => Err(ConnectionStringError::TooMany(count)),
        }
    }

    /// The server's key, which the client pins.
    pub const fn server(&self) -> PublicKey {
        self.server
    }

    /// Where the server listens, in the order written; never empty.
    pub fn addresses(&self) -> &[HostPort] {
        &self.addresses
    }
}

impl FromStr for ConnectionString {
    type Err = ConnectionStringError;

    fn from_str(text: &str) -> Result<Self, ConnectionStringError> {
        let rest = text
            .strip_prefix(SCHEME)
            .ok_or(ConnectionStringError::Scheme)?;
        let (key, addresses) = rest.split_once('@').ok_or(ConnectionStringError::NoKey)?;
        // People paste the prefixed form too, and it can mean nothing else.
        let server = if key.contains(':') {
            key.parse()?
        } else {
            PublicKey::from_bare(key)?
        };
        if addresses.is_empty() {
            return Err(ConnectionStringError::NoAddress);
        }
        let count = addresses.split(',').count();
        if count > MAX_ADDRESSES {
            return Err(ConnectionStringError::TooMany(count));
        }
        let addresses = addresses
            .split(',')
            .enumerate()
            .map(|(index, text)| {
                text.parse()
                    .map_err(|source| ConnectionStringError::Address {
                        number: index + 1,
                        text: text.to_owned(),
                        source,
                    })
            })
            .collect::<Result<Vec<_>, _>>()?;
        Self::new(server, addresses)
    }
}

impl fmt::Display for ConnectionString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}@", self.server.bare())?;
        for (index, address) in self.addresses.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(f, "{separator}{address}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key() -> PublicKey {
        PublicKey::from_bytes([7; 32])
    }

    #[test]
    fn hosts_ports_and_defaults_are_read() {
        for (text, shown) in [
            ("example.org", "example.org:4433"),
            ("Example.ORG:1", "example.org:1"),
            ("192.0.2.1:65535", "192.0.2.1:65535"),
            ("[2001:db8::1]", "[2001:db8::1]:4433"),
            ("[::1]:99", "[::1]:99"),
            ("my_host", "my_host:4433"),
        ] {
            assert_eq!(text.parse::<HostPort>().unwrap().to_string(), shown);
        }
    }

    #[test]
    fn wrong_addresses_say_what_is_wrong() {
        for (text, error) in [
            ("", HostPortError::NoHost),
            (":4433", HostPortError::NoHost),
            ("host:", HostPortError::Port(String::new())),
            ("host:0", HostPortError::Port("0".into())),
            ("host:65536", HostPortError::Port("65536".into())),
            ("host:+1", HostPortError::Port("+1".into())),
            ("[::1", HostPortError::Bracket),
            ("[::1]99", HostPortError::Port("99".into())),
            ("[1.2.3.4]:1", HostPortError::Ipv6("1.2.3.4".into())),
            ("::1", HostPortError::BareIpv6(Ipv6Addr::LOCALHOST)),
            ("192.0.2.256", HostPortError::Name("192.0.2.256".into())),
            ("a..b", HostPortError::Name("a..b".into())),
            ("a b", HostPortError::Name("a b".into())),
        ] {
            assert_eq!(text.parse::<HostPort>(), Err(error), "{text}");
        }
    }

    #[test]
    fn a_connection_string_survives_its_text() {
        let text = format!(
            "marline://{}@vpn.example:4433,[2001:db8::1]:5",
            key().bare()
        );
        let parsed = text.parse::<ConnectionString>().unwrap();
        assert_eq!(parsed.server(), key());
        assert_eq!(parsed.addresses().len(), 2);
        assert_eq!(parsed.to_string(), text);
        let prefixed = format!("marline://{}@vpn.example", key());
        assert_eq!(
            prefixed.parse::<ConnectionString>().unwrap().to_string(),
            format!("marline://{}@vpn.example:4433", key().bare())
        );
    }

    #[test]
    fn a_wrong_connection_string_names_the_part() {
        let bare = key().bare();
        for (text, part) in [
            (format!("http://{bare}@host"), "starts with `marline://`"),
            (format!("marline://{bare}"), "no `@`"),
            (
                format!("marline://{}@host", &bare[1..]),
                "before `@`: a key has 56",
            ),
            (format!("marline://{bare}@"), "no address"),
            (format!("marline://{bare}@a,b:x"), "address 2, `b:x`"),
            (
                format!("marline://{bare}@a,"),
                "address 2, ``: the host is missing",
            ),
            (
                format!("marline://{bare}@{}", ["a"; 17].join(",")),
                "17 addresses",
            ),
        ] {
            let error = text.parse::<ConnectionString>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_connection_string_or_an_error(text: String, tail in "[a-z0-9:.,\\[\\]@-]{0,80}") {
            let _ = text.parse::<ConnectionString>();
            if let Ok(parsed) = format!("marline://{}@{tail}", key().bare()).parse::<ConnectionString>() {
                prop_assert_eq!(parsed.to_string().parse::<ConnectionString>().unwrap(), parsed);
            }
        }
    }
}
