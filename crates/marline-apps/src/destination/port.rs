//! A port at the server that leads to a service behind a client:
//!
//! ```text
//! version (1) = 4 | role (1): 0 ask, 1 visit | protocol (1): 6 TCP, 17 UDP | port (2), big endian
//! ```
//! Role 2, UDP only, asks for a port that is carried as a live entry: behind the port is the
//! latency budget in milliseconds (4, big endian), 1 at least. A visit names the port and no
//! address: where it leads is the client's business alone.

use super::Protocol;
use bytes::Bytes;
use marline_base::text::Problem;
use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;
use std::time::Duration;

pub(super) const VERSION: u8 = 4;
const ASK: u8 = 0;
const VISIT: u8 = 1;
const ASK_LIVE: u8 = 2;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// A port of the server's host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerPort {
    /// Whose port it is.
    pub protocol: Protocol,
    /// Its number.
    pub number: NonZeroU16,
}

/// What a flow is for that concerns a port of the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortRole {
    /// The client asks for the port.
    Ask,
    /// The same for one whose datagrams are carried in order, each given up this long after it
    /// came; whole milliseconds.
    AskLive(Duration),
    /// Somebody has come to the port; the server opens these.
    Visit,
}

impl PortRole {
    /// The bytes that open the flow.
    pub fn encode(self, port: ServerPort) -> Bytes {
        let role = match self {
            PortRole::Ask => ASK,
            PortRole::AskLive(_) => ASK_LIVE,
            PortRole::Visit => VISIT,
        };
        let protocol = match port.protocol {
            Protocol::Tcp => TCP,
            Protocol::Udp => UDP,
        };
        let [high, low] = port.number.get().to_be_bytes();
        let mut bytes = vec![VERSION, role, protocol, high, low];
        if let PortRole::AskLive(latency) = self {
            let millis = u32::try_from(latency.as_millis()).unwrap_or(u32::MAX);
            bytes.extend(millis.max(1).to_be_bytes());
        }
        bytes.into()
    }

    /// Reads what [`encode`](Self::encode) wrote; `None` for everything else.
    pub fn decode(bytes: &[u8]) -> Option<(Self, ServerPort)> {
        let [VERSION, role, protocol, high, low, latency @ ..] = bytes else {
            return None;
        };
        let role = match (*role, latency) {
            (ASK, []) => PortRole::Ask,
            (VISIT, []) => PortRole::Visit,
            (ASK_LIVE, latency) if *protocol == UDP => {
                let millis = u32::from_be_bytes(latency.try_into().ok()?);
                PortRole::AskLive(Duration::from_millis(u64::from(millis)))
            }
            _ => return None,
        };
        if role == PortRole::AskLive(Duration::ZERO) {
            return None;
        }
        let protocol = match *protocol {
            TCP => Protocol::Tcp,
            UDP => Protocol::Udp,
            _ => return None,
        };
        let number = NonZeroU16::new(u16::from_be_bytes([*high, *low]))?;
        Some((role, ServerPort { protocol, number }))
    }
}

impl fmt::Display for ServerPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.protocol, self.number)
    }
}

impl FromStr for ServerPort {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let shape = || {
            Problem::new(format!("`{text}` is no port of the server"))
                .hint("write tcp:PORT or udp:PORT, for example `tcp:8443`")
        };
        let (protocol, number) = text.split_once(':').ok_or_else(shape)?;
        Ok(ServerPort {
            protocol: protocol.parse()?,
            number: number.parse().map_err(|_| shape())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LiveName, Role, Target};
    use super::*;

    #[test]
    fn ports_open_flows_and_are_nothing_else() {
        let port: ServerPort = "tcp:8443".parse().unwrap();
        assert_eq!(port.to_string(), "tcp:8443");
        assert_eq!(PortRole::Ask.encode(port)[..], [4, 0, 6, 0x20, 0xfb]);
        let live = PortRole::AskLive(Duration::from_millis(300));
        for (role, text) in [
            (PortRole::Ask, "udp:53"),
            (PortRole::Visit, "tcp:65535"),
            (live, "udp:9000"),
        ] {
            let port = text.parse().unwrap();
            let bytes = role.encode(port);
            assert_eq!(PortRole::decode(&bytes), Some((role, port)));
            assert!(Target::decode(&bytes).is_err());
            assert_eq!(LiveName::decode(&bytes), None);
            assert_eq!(Role::decode(&bytes), None);
        }
        for wrong in [
            &b""[..],
            &[4],
            &[4, 0, 6, 0, 0],
            &[4, 3, 6, 0, 1],
            &[4, 0, 7, 0, 1],
            &[4, 0, 6, 0, 1, 0],
            &[4, 2, 17, 0, 1],
            &[4, 2, 17, 0, 1, 0, 0, 0, 0],
            &[4, 2, 6, 0, 1, 0, 0, 0, 1],
            &[4, 2, 17, 0, 1, 0, 0, 0, 1, 0],
            &[3, 0, 6, 0, 1],
        ] {
            assert_eq!(PortRole::decode(wrong), None, "{wrong:?}");
        }
        for wrong in ["8443", "tcp:0", "tcp:65536", "sctp:1", "tcp:", "tcp:1-2"] {
            assert!(wrong.parse::<ServerPort>().is_err(), "{wrong}");
        }
    }
}
