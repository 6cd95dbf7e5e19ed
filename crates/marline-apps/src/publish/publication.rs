//! One port that a client publishes: `tcp|udp:PORT=HOST:PORT`.

use crate::destination::{ServerPort, Target};
use marline_base::text::Problem;
use std::fmt;
use std::str::FromStr;

/// Most ports of one client. Each takes one of its flows at the server, and sockets there.
pub const MOST: usize = 32;

/// A port at the server, and what it leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The server's port.
    pub port: ServerPort,
    /// The service, as this client reaches it; of the port's protocol.
    pub target: Target,
}

impl FromStr for Publication {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let (port, target) = text.split_once('=').ok_or_else(|| {
            Problem::new("not a published port").hint(
                "write tcp:PORT=HOST:PORT or udp:PORT=HOST:PORT, first the server's port and then the service \
                 behind this client, for example `tcp:8443=127.0.0.1:443`",
            )
        })?;
        let port: ServerPort = port.trim().parse()?;
        let target = Target::parse(port.protocol, target.trim())?;
        Ok(Publication { port, target })
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
        )
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
        ] {
            let problem = text.parse::<Publication>().expect_err(text);
            assert!(problem.message.contains(reason), "{text}: {problem}");
        }
    }
}
