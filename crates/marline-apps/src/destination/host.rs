//! A target behind the server: a protocol, a host and a port.
//!
//! ```text
//! version (1) = 1 | protocol (1): 6 TCP, 17 UDP | port (2), big endian | host type (1) | host
//! host type 4: IPv4 address (4) | 6: IPv6 address (16) | 0: name (1 to 254), to the end
//! ```
//! Every target has exactly one encoding: names are lower case, and an address is never written as
//! a name.

use bytes::{BufMut, Bytes, BytesMut};
use marline_base::text::{self, Problem};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

const VERSION: u8 = 1;
const HEAD: usize = 5;
/// Longest host name (RFC 1035 section 2.3.4) with its closing dot.
const MAX_NAME: usize = 254;
const MAX_LABEL: usize = 63;
const HOST_NAME: u8 = 0;
const HOST_V4: u8 = 4;
const HOST_V6: u8 = 6;

/// How the server reaches the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// By a TCP connection; the flow is a stream.
    Tcp,
    /// By UDP datagrams; the flow carries messages.
    Udp,
}

/// A host as the client named it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// An address.
    Ip(IpAddr),
    /// A name, which the server resolves. Lower case, letters, digits, hyphens and underscores in
    /// labels of 1 to 63.
    Name(String),
}

/// A target behind the server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    protocol: Protocol,
    host: Host,
    port: u16,
}

/// Why bytes or a text are no target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Another version of the encoding.
    #[error("target version {0} is not known, this program speaks {VERSION}")]
    Version(u8),
    /// Too few or too many bytes for what they begin.
    #[error("a target of {0} bytes is cut off or too long")]
    Length(usize),
    /// Neither TCP nor UDP.
    #[error("target protocol {0} is neither TCP (6) nor UDP (17)")]
    Protocol(u8),
    /// Not a type of host.
    #[error("host type {0} is not known")]
    HostType(u8),
    /// Not a host name.
    #[error("`{0}` is not a host name")]
    Name(String),
    /// Port 0.
    #[error("port 0 cannot be connected to")]
    Port,
}

impl Target {
    /// A target; a name that is an address in text is taken as the address.
    ///
    /// # Errors
    /// When the name is no host name or the port is 0.
    pub fn new(protocol: Protocol, host: Host, port: u16) -> Result<Self, TargetError> {
        let host = match host {
            Host::Name(name) => match name.parse::<IpAddr>() {
                Ok(address) => Host::Ip(address),
                Err(_) => Host::Name(checked_name(&name.to_ascii_lowercase())?),
            },
            address @ Host::Ip(_) => address,
        };
        if port == 0 {
            return Err(TargetError::Port);
        }
        Ok(Target {
            protocol,
            host,
            port,
        })
    }

    /// Reads `HOST:PORT`.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(protocol: Protocol, text: &str) -> Result<Self, Problem> {
        let (host, port) = text::split_host_port(text)?;
        Target::new(protocol, Host::Name(host.to_owned()), port)
            .map_err(|error| Problem::new(error.to_string()))
    }

    /// How the server reaches it.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The port, not 0.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The bytes that open a flow to it, at most 259.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(HEAD + MAX_NAME);
        out.put_u8(VERSION);
        out.put_u8(match self.protocol {
            Protocol::Tcp => 6,
            Protocol::Udp => 17,
        });
        out.put_u16(self.port);
        match &self.host {
            Host::Ip(IpAddr::V4(address)) => {
                out.put_u8(HOST_V4);
                out.put_slice(&address.octets());
            }
            Host::Ip(IpAddr::V6(address)) => {
                out.put_u8(HOST_V6);
                out.put_slice(&address.octets());
            }
            Host::Name(name) => {
                out.put_u8(HOST_NAME);
                out.put_slice(name.as_bytes());
            }
        }
        out.freeze()
    }

    /// Reads what [`encode`](Self::encode) wrote. Any bytes are a target or an error.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, TargetError> {
        let length = TargetError::Length(bytes.len());
        let (version, rest) = bytes.split_first().ok_or(length.clone())?;
        if *version != VERSION {
            return Err(TargetError::Version(*version));
        }
        let [protocol, high, low, host_type, host @ ..] = rest else {
            return Err(length);
        };
        let protocol = match protocol {
            6 => Protocol::Tcp,
            17 => Protocol::Udp,
            other => return Err(TargetError::Protocol(*other)),
        };
        let port = u16::from_be_bytes([*high, *low]);
        if port == 0 {
            return Err(TargetError::Port);
        }
        let host = match *host_type {
            HOST_V4 => {
                Host::Ip(Ipv4Addr::from(<[u8; 4]>::try_from(host).map_err(|_| length)?).into())
            }
            HOST_V6 => {
                Host::Ip(Ipv6Addr::from(<[u8; 16]>::try_from(host).map_err(|_| length)?).into())
            }
            HOST_NAME if host.len() > MAX_NAME => return Err(length),
            HOST_NAME => Host::Name(checked_name(&String::from_utf8_lossy(host))?),
            other => return Err(TargetError::HostType(other)),
        };
        Ok(Target {
            protocol,
            host,
            port,
        })
    }
}

/// A lower-case host name that is not an address.
fn checked_name(name: &str) -> Result<String, TargetError> {
    let label = |label: &str| {
        (1..=MAX_LABEL).contains(&label.len())
            && label
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
    };
    let body = name.strip_suffix('.').unwrap_or(name);
    let fine =
        body.len() < MAX_NAME && body.split('.').all(label) && name.parse::<IpAddr>().is_err();
    if fine {
        Ok(name.to_owned())
    } else {
        Err(TargetError::Name(name.chars().take(MAX_NAME).collect()))
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        })
    }
}

impl FromStr for Protocol {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        match text {
            "tcp" => Ok(Protocol::Tcp),
            "udp" => Ok(Protocol::Udp),
            other => Err(Problem::new(format!(
                "`{other}` is neither `tcp` nor `udp`"
            ))),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Ip(IpAddr::V4(address)) => write!(f, "{address}"),
            Host::Ip(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Host::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.protocol, self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(text: &str) -> Result<Target, TargetError> {
        Target::new(Protocol::Tcp, Host::Name(text.to_owned()), 80)
    }

    #[test]
    fn the_bytes_are_the_documented_ones() {
        let target = Target::parse(Protocol::Tcp, "A.example:443").unwrap();
        assert_eq!(&target.encode()[..], b"\x01\x06\x01\xbb\x00a.example");
        let target = Target::parse(Protocol::Udp, "192.0.2.1:53").unwrap();
        assert_eq!(&target.encode()[..], [1, 17, 0, 53, 4, 192, 0, 2, 1]);
        assert_eq!(
            Target::parse(Protocol::Udp, "[2001:db8::1]:53")
                .unwrap()
                .to_string(),
            "udp:[2001:db8::1]:53"
        );
    }

    #[test]
    fn an_address_in_a_name_is_the_address() {
        assert_eq!(
            name("127.0.0.1").unwrap().host(),
            &Host::Ip(Ipv4Addr::LOCALHOST.into())
        );
        assert_eq!(
            name("::1").unwrap().host(),
            &Host::Ip(Ipv6Addr::LOCALHOST.into())
        );
        // On the wire it would be a second encoding of the same target.
        assert_eq!(
            Target::decode(b"\x01\x06\0\x50\x00127.0.0.1"),
            Err(TargetError::Name("127.0.0.1".into()))
        );
    }

    #[test]
    fn names_are_checked() {
        for fine in [
            "localhost",
            "a-b.example.",
            "_sip._udp.example",
            "xn--bcher-kva.example",
            &"a".repeat(63),
        ] {
            assert!(name(fine).is_ok(), "{fine}");
        }
        let long = [
            vec!["a".repeat(63); 4].join("."),
            "b".repeat(64),
            format!("{}.", "a.".repeat(126)),
        ];
        for wrong in [
            "",
            ".",
            "a..b",
            ".a",
            "a b",
            "bücher.example",
            "a\0b",
            "a/b",
            "a:b",
            &long[0],
            &long[1],
            &long[2],
        ] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn wrong_bytes_say_what_is_wrong() {
        for (bytes, error) in [
            (&b""[..], TargetError::Length(0)),
            (&b"\x02"[..], TargetError::Version(2)),
            (&b"\x01\x06\0\x50"[..], TargetError::Length(4)),
            (
                &b"\x01\x07\0\x50\x04\x01\x02\x03\x04"[..],
                TargetError::Protocol(7),
            ),
            (&b"\x01\x06\0\0\x04\x01\x02\x03\x04"[..], TargetError::Port),
            (
                &b"\x01\x06\0\x50\x04\x01\x02\x03\x04\x05"[..],
                TargetError::Length(10),
            ),
            (&b"\x01\x06\0\x50\x09"[..], TargetError::HostType(9)),
            (&b"\x01\x06\0\x50\x00A"[..], TargetError::Name("A".into())),
        ] {
            assert_eq!(Target::decode(bytes), Err(error), "{bytes:?}");
        }
        assert!(Target::decode(&[[1, 6, 0, 80, 0].as_slice(), &[b'a'; 300]].concat()).is_err());
    }

    fn any_target() -> impl Strategy<Value = Target> {
        let host = prop_oneof![
            any::<u32>().prop_map(|bits| Host::Ip(Ipv4Addr::from_bits(bits).into())),
            any::<u128>().prop_map(|bits| Host::Ip(Ipv6Addr::from_bits(bits).into())),
            "[a-z0-9_-]{1,20}(\\.[a-zA-Z0-9_-]{1,20}){0,4}\\.?".prop_map(Host::Name),
        ];
        (any::<bool>(), host, 1..=u16::MAX).prop_filter_map(
            "an address-like name",
            |(tcp, host, port)| {
                Target::new(if tcp { Protocol::Tcp } else { Protocol::Udp }, host, port).ok()
            },
        )
    }

    proptest! {
        #[test]
        fn targets_survive_the_wire(target in any_target()) {
            let bytes = target.encode();
            prop_assert!(bytes.len() <= 259);
            prop_assert_eq!(Target::decode(&bytes), Ok(target));
        }

        #[test]
        fn any_bytes_fail_or_are_the_only_encoding(
            head in prop_oneof![Just(vec![]), Just(vec![1, 6, 0, 80]), Just(vec![1, 17, 0, 80, 0])],
            tail in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let bytes = [head, tail].concat();
            if let Ok(target) = Target::decode(&bytes) {
                prop_assert_eq!(&target.encode()[..], &bytes[..]);
            }
        }
    }
}
