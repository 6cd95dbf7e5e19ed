//! One port that a client publishes: `tcp|udp:PORT=HOST:PORT[,live][,latency=TIME]`.

use crate::destination::{PortRole, ServerPort, Target};
use crate::options::{LIVE_LATENCY, live_latency};
use crate::proxy::Protocol;
use marline_base::text::units::show_time;
use marline_base::text::{Keys, Problem, Takes, list};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Most ports of one client. Each takes one of its flows at the server, and sockets there.
pub const MOST: usize = 32;

/// A port at the server, and what it leads to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Publication {
    /// The server's port.
    pub port: ServerPort,
    /// The service, as this client reaches it; of the port's protocol.
    pub target: Target,
    /// The latency budget of one that is carried as a live entry.
    pub live: Option<Duration>,
}

const OPTIONS: &Keys = &[("live", Takes::Nothing), ("latency", Takes::Value)];

impl Publication {
    /// What the server is asked for.
    pub(super) fn role(&self) -> PortRole {
        self.live.map_or(PortRole::Ask, PortRole::AskLive)
    }
}

impl FromStr for Publication {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let (head, options) = list(text, OPTIONS)?;
        let (port, target) = head.split_once('=').ok_or_else(|| {
            Problem::new("not a published port").hint(
                "write tcp:PORT=HOST:PORT or udp:PORT=HOST:PORT, first the server's port and then the service \
                 behind this client, for example `tcp:8443=127.0.0.1:443`",
            )
        })?;
        let port: ServerPort = port.trim().parse()?;
        let target = Target::parse(port.protocol, target.trim())?;
        let mut live = None;
        for (key, value) in options {
            if port.protocol == Protocol::Tcp {
                return Err(Problem::new(format!(
                    "a port of TCP cannot have `{key}`, which is for datagrams"
                ))
                .hint("leave it out, or publish a port of UDP"));
            }
            live = match key {
                "latency" => Some(live_latency(value)?),
                _ => live.or(Some(LIVE_LATENCY)),
            };
        }
        Ok(Publication { port, target, live })
    }
}

impl fmt::Display for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}={}:{}",
            self.port,
            self.target.host(),
            self.target.port()
        )?;
        match self.live {
            Some(LIVE_LATENCY) => f.write_str(",live"),
            Some(latency) => write!(f, ",latency={}", show_time(latency)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publications_are_read_and_shown_as_they_are_written() {
        for text in [
            "tcp:8443=127.0.0.1:443",
            "udp:53=[::1]:5353",
            "tcp:1=nas.lan:80",
            "udp:9000=127.0.0.1:9000,live",
            "udp:9000=127.0.0.1:9000,latency=150ms",
        ] {
            let publication: Publication = text.parse().unwrap();
            assert_eq!(publication.to_string(), text);
            assert_eq!(publication.target.protocol(), publication.port.protocol);
        }
        for (text, reason) in [
            ("8443", "not a published port"),
            ("8443=127.0.0.1:443", "no port of the server"),
            ("tcp:0=127.0.0.1:443", "no port of the server"),
            ("sctp:1=127.0.0.1:443", "neither `tcp` nor `udp`"),
            ("tcp:8443=127.0.0.1", "no port"),
            ("tcp:8443=ho st:1", "host name"),
            ("tcp:8443=a:1,live", "cannot have `live`"),
            ("udp:9000=a:1,latency=5ms", "between"),
            ("udp:9000=a:1,lively", "lively"),
        ] {
            let problem = text.parse::<Publication>().expect_err(text);
            assert!(problem.message.contains(reason), "{text}: {problem}");
        }
    }
}
