//! Where the program listens, by key: no two may have one port, and one that cannot be had is named
//! by where it stands.

use super::error::{ConfigError, Place, Placed as _};
use super::keys::Raw;
use super::raw::{RawClient, RawServer};
use super::source::Source;
use super::tun;
use super::written::Written;
use marline::identity::DEFAULT_PORT;
use marline_apps::live;
use marline_apps::proxy::Forward;
use marline_apps::proxy::Protocol;
use marline_base::text::Problem;
use marline_base::text::listen_address;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The SOCKS5 proxy's address when none is given.
pub(super) const SOCKS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1080);
/// A server's addresses when none is given.
pub(super) const SERVER: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), DEFAULT_PORT),
    SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), DEFAULT_PORT),
];

/// A raw configuration that says where the program listens.
pub trait Listens: Raw {
    /// As far as that can be read.
    fn listening(&self) -> Vec<Listening<'_>>;
}

impl Listens for RawClient {
    fn listening(&self) -> Vec<Listening<'_>> {
        of_client(self)
    }
}

impl Listens for RawServer {
    fn listening(&self) -> Vec<Listening<'_>> {
        of_server(self)
    }
}

/// An address that one value asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listening<'a> {
    key: &'static str,
    protocol: Protocol,
    address: SocketAddr,
    /// `None` for a default.
    written: Option<&'a Written>,
}

impl<'a> Listening<'a> {
    fn new(key: &'static str, protocol: Protocol, address: SocketAddr) -> Self {
        Listening {
            key,
            protocol,
            address,
            written: None,
        }
    }

    /// What `written` asks for; `None` if that is no address, which is reported when it is read for
    /// real.
    fn written(
        key: &'static str,
        written: &'a Written,
        read: impl FnOnce(&str) -> Result<(Protocol, SocketAddr), Problem>,
    ) -> Option<Self> {
        let (protocol, address) = read(&written.text).ok()?;
        Some(Listening {
            written: Some(written),
            ..Listening::new(key, protocol, address)
        })
    }

    fn same_port(&self, other: &Self) -> bool {
        let port = self.address.port();
        self.protocol == other.protocol && port == other.address.port() && port != 0
    }

    /// Whether the system surely refuses one of the two. Of an IPv6 wildcard and an IPv4 address
    /// only the system knows.
    fn excludes(&self, other: &Self) -> bool {
        let (one, two) = (self.address.ip(), other.address.ip());
        let overlap = one == two
            || one.is_ipv4() == two.is_ipv4() && (one.is_unspecified() || two.is_unspecified());
        self.same_port(other) && overlap
    }

    /// What asks for it, within a sentence about another.
    fn shown<R: Raw>(&self, source: &Source<R>) -> String {
        match self.written {
            Some(written) => source.place(self.key, written).brief(),
            None => format!("{}, the default of `{}`", self.address, self.key),
        }
    }
}

fn tcp(text: &str) -> Result<(Protocol, SocketAddr), Problem> {
    Ok((Protocol::Tcp, listen_address(text)?))
}

fn of_client(raw: &RawClient) -> Vec<Listening<'_>> {
    let socks = match &raw.socks {
        None => Some(Listening::new("socks", Protocol::Tcp, SOCKS)),
        Some(value) => Listening::written("socks", value, tcp),
    };
    let metrics = raw
        .metrics
        .iter()
        .map(|value| Listening::written("metrics", value, tcp));
    let web = raw.web.iter();
    let web = web.map(|value| Listening::written("web", value, tcp));
    let forwards = raw.forward.iter().map(|value| {
        Listening::written("forward", value, |text| {
            let forward: Forward = text.parse()?;
            Ok((forward.target.protocol(), forward.listen))
        })
    });
    let live = raw.live.iter().map(|value| {
        Listening::written("live", &value.0, |text| {
            Ok((Protocol::Udp, live::listen(text)?))
        })
    });
    let all = [socks]
        .into_iter()
        .chain(metrics)
        .chain(web)
        .chain(forwards)
        .chain(live);
    all.flatten().collect()
}

fn of_server(raw: &RawServer) -> Vec<Listening<'_>> {
    let mut all: Vec<Listening<'_>> = Vec::new();
    if raw.listen.is_empty() {
        all.extend(SERVER.map(|address| Listening::new("listen", Protocol::Udp, address)));
    }
    let given = raw.listen.iter().filter_map(|value| {
        Listening::written("listen", value, |text| {
            Ok((Protocol::Udp, listen_address(text)?))
        })
    });
    all.extend(given);
    let off = |value: &Written| tun::switch(&value.text) == Ok(false);
    if !raw.tcp.as_ref().is_some_and(off) {
        let too: Vec<_> = all
            .iter()
            .map(|one| Listening {
                protocol: Protocol::Tcp,
                ..*one
            })
            .collect();
        all.extend(too);
    }
    let metrics = raw
        .metrics
        .iter()
        .filter_map(|value| Listening::written("metrics", value, tcp));
    all.extend(metrics);
    let web = raw.web.iter();
    all.extend(web.filter_map(|value| Listening::written("web", value, tcp)));
    all
}

/// Refuses a port that two values ask for.
pub(super) fn apart<R: Listens>(source: &Source<R>) -> Result<(), ConfigError> {
    let all = source.raw.listening();
    for (index, one) in all.iter().enumerate() {
        let Some(other) = all[..index].iter().find(|other| other.excludes(one)) else {
            continue;
        };
        let (wrong, other) = match one.written {
            Some(written) => ((one.key, written), other),
            None => match other.written {
                Some(written) => ((other.key, written), one),
                None => continue,
            },
        };
        return Err(
            Problem::new(format!("that port is taken by {}", other.shown(source)))
                .hint("choose another port for one of them")
                .at(source.place(wrong.0, wrong.1)),
        );
    }
    Ok(())
}

impl<R: Listens> Source<R> {
    /// Where `key` asks for listening at `address`; a default is shown as if it were a flag.
    pub fn place_of(&self, key: &str, address: SocketAddr) -> Place {
        let all = self.raw.listening();
        let mut own = all
            .iter()
            .filter(|one| one.key == key && one.address == address);
        match own.find_map(|one| one.written) {
            Some(written) => self.place(key, written),
            None => Place::Flag {
                key: key.to_owned(),
                value: address.to_string(),
            },
        }
    }

    /// What else asks for the port that the system refused `key` at `address`, which was fit to be
    /// asked for.
    pub fn rival(&self, key: &str, address: SocketAddr) -> Option<String> {
        let all = self.raw.listening();
        let own = |one: &&Listening<'_>| one.key == key && one.address == address;
        let mut rivals = all.iter().filter(|one| !own(one));
        let rival = rivals.find(|rival| all.iter().filter(own).any(|own| own.same_port(rival)));
        rival.map(|rival| rival.shown(self))
    }
}
