//! Where clients reach a server, as its `advertise` says: `HOST[:PORT]`.

use marline::identity::{Host, HostPort};
use marline_base::text::Problem;
use std::str::FromStr;

/// An address for the connection string, whose port may be that at which the server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advertised {
    host: Host,
    port: Option<u16>,
}

impl Advertised {
    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The address, at `port` unless it names its own.
    pub fn or_at(&self, port: u16) -> HostPort {
        HostPort {
            host: self.host.clone(),
            port: self.port.unwrap_or(port),
        }
    }

    /// The host's name, if it is no address.
    pub fn name(&self) -> Option<String> {
        match &self.host {
            Host::Name(name) => Some(name.clone()),
            Host::Ip(_) => None,
        }
    }
}

impl FromStr for Advertised {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let parts = HostPort::parts(text);
        let (host, port) = parts.map_err(|error| Problem::new(error.to_string()))?;
        Ok(Advertised { host, port })
    }
}
