//! The connection string that a server prints, once this host has an address.

use super::networks::are_hidden;
use super::{CliError, output};
use crate::config::Advertised;
use marline::identity::{ConnectionString, DEFAULT_PORT, Host, HostPort, PublicKey};
use marline::interfaces::Changes;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;
use tokio::time::timeout;

/// An address of the public network (Cloudflare's resolver), for the route that leads there;
/// nothing is sent to it.
pub(super) const PUBLIC_IPV4: Ipv4Addr = Ipv4Addr::new(1, 0, 0, 1);

/// What clients have to know of a server.
#[derive(Debug)]
pub struct Announcement {
    /// Its key.
    pub key: PublicKey,
    /// The addresses that its configuration advertises.
    pub advertise: Vec<Advertised>,
    /// Those at which it listens.
    pub bound: Vec<SocketAddr>,
}

impl Announcement {
    /// The line with which clients reach the server: at the addresses that are advertised, of which
    /// those without a port have that of the first bound, or else at those bound. For the
    /// unspecified address, that of the route to the public network stands in; behind address
    /// translation this guess is wrong, which is what `advertise` is for. `None` as long as this
    /// host has no such address.
    ///
    /// # Errors
    /// There are too many.
    pub fn string(&self) -> Result<Option<ConnectionString>, CliError> {
        let addresses = reached_at(&self.advertise, &self.bound);
        if addresses.is_empty() {
            return Ok(None);
        }
        let string = ConnectionString::new(self.key, addresses).map_err(|error| {
            CliError::runtime(error).hint("name this host's addresses with --advertise HOST")
        })?;
        Ok(Some(string))
    }
}

/// Where clients reach a server that is `bound` there: as advertised, or else a guess.
pub(super) fn reached_at(advertise: &[Advertised], bound: &[SocketAddr]) -> Vec<HostPort> {
    let port = bound.first().map_or(DEFAULT_PORT, SocketAddr::port);
    let mut addresses: Vec<HostPort> = Vec::new();
    for address in advertise {
        let address = address.or_at(port);
        // One with the port and one without.
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() {
        for address in bound {
            let mut ips: Vec<IpAddr> = here(*address).into_iter().collect();
            if takes_ipv4(*address, bound) {
                let ipv4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port());
                ips.extend(here(ipv4));
            }
            for ip in ips {
                let address = HostPort {
                    host: Host::Ip(ip),
                    port: address.port(),
                };
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
        }
    }
    addresses
}

/// Does a server that listens at `all` of them take IPv4 at this IPv6 address? `[::]` does unless
/// an IPv4 address with its port is listed (`marline::carrier::ListenConfig`).
pub(super) fn takes_ipv4(address: SocketAddr, all: &[SocketAddr]) -> bool {
    let has_own = |it: &SocketAddr| it.is_ipv4() && it.port() == address.port();
    address.is_ipv6() && address.ip().is_unspecified() && !all.iter().any(has_own)
}

/// Prints the connection string as soon as there is one, within `wait` if that is bounded.
///
/// # Errors
/// That of [`Announcement::string`]; the time is over.
pub(super) async fn announced(
    announcement: Announcement,
    wait: Option<Duration>,
) -> Result<(), CliError> {
    let mut changes = Changes::watch();
    let found = async {
        let mut said = false;
        loop {
            if let Some(string) = announcement.string()? {
                return Ok(string);
            }
            if !said {
                tracing::warn!(
                    "{}: the connection string is printed as soon as that has come; or name where \
                     clients reach this host: --advertise HOST",
                    missing(&announcement.bound)
                );
                said = true;
            }
            changes.next().await;
        }
    };
    let string = match wait {
        None => found.await?,
        Some(wait) => timeout(wait, found).await.unwrap_or_else(|_| {
            Err(CliError::runtime(format!(
                "{} within {:.1} s",
                missing(&announcement.bound),
                wait.as_secs_f64()
            ))
            .hint("name where clients reach it with --advertise HOST, or wait longer with --wait"))
        })?,
    };
    if let Some(private) = only_here(string.addresses()) {
        tracing::warn!(
            "{private} is reached only from its own network: behind address translation, pass the \
             port on to this host, and name what clients reach: --advertise HOST"
        );
    }
    // The process that started the server may have closed its end of this; the server serves all
    // the same.
    if output::line(&string.to_string()).is_err() {
        tracing::warn!("standard output is closed; the connection string is {string}");
    }
    Ok(())
}

/// The first of `addresses` if no client of another network reaches any. A server at loopback alone
/// is not meant for others.
fn only_here(addresses: &[HostPort]) -> Option<&HostPort> {
    let is_loopback = |host: &Host| matches!(host, Host::Ip(ip) if ip.is_loopback());
    let mut others = addresses.iter().filter(|it| !is_loopback(&it.host));
    others.next().filter(|_| are_hidden(addresses))
}

/// What a server without an address waits for.
fn missing(bound: &[SocketAddr]) -> String {
    if bound.iter().any(|address| address.ip().is_unspecified()) {
        return "this host has no address with a route to the public network yet".to_owned();
    }
    let bound: Vec<String> = bound.iter().map(|it| it.ip().to_string()).collect();
    format!("this host does not have {} yet", bound.join(", "))
}

/// The address under which this host has `bound`: itself if it is there. For the unspecified one,
/// that of the same family that a packet to the public network would have. Nothing is sent.
fn here(bound: SocketAddr) -> Option<IpAddr> {
    let mut any_port = bound;
    any_port.set_port(0);
    let socket = UdpSocket::bind(any_port).ok()?;
    if !bound.ip().is_unspecified() {
        return Some(bound.ip());
    }
    let public: IpAddr = match bound.ip() {
        IpAddr::V4(_) => PUBLIC_IPV4.into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2606, 0x4700, 0, 0, 0, 0, 0, 1).into(),
    };
    // Connected, a socket asks the routing table.
    socket.connect((public, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_wildcard_takes_ipv4_unless_that_is_listed() {
        let [wildcard, four, other, six] =
            ["[::]:4433", "10.0.0.2:4433", "10.0.0.2:4434", "[::1]:4433"]
                .map(|address| address.parse().unwrap());
        assert!(takes_ipv4(wildcard, &[wildcard]));
        assert!(takes_ipv4(wildcard, &[wildcard, other]));
        assert!(!takes_ipv4(wildcard, &[wildcard, four]));
        assert!(!takes_ipv4(six, &[six]));
        assert!(!takes_ipv4(four, &[four]));
    }

    #[test]
    fn what_nobody_elsewhere_reaches_is_said() {
        let said = |addresses: &[&str]| {
            let read = |address: &&str| address.parse().unwrap();
            let addresses: Vec<HostPort> = addresses.iter().map(read).collect();
            only_here(&addresses).map(HostPort::to_string)
        };
        let private = said(&["127.0.0.1:4433", "192.168.1.4:4433"]);
        assert_eq!(private.as_deref(), Some("192.168.1.4:4433"));
        assert!(said(&["192.168.1.4:4433", "example.com:4433"]).is_none());
        assert!(said(&["127.0.0.1:4433", "[::1]:4433"]).is_none());
    }

    #[tokio::test]
    async fn a_server_without_an_address_waits_for_it_no_longer_than_its_limit() {
        // For documentation: no host has it.
        let bound = vec!["192.0.2.77:4433".parse().unwrap()];
        let announcement = Announcement {
            key: PublicKey::from_bytes([1; 32]),
            advertise: Vec::new(),
            bound,
        };
        assert!(announcement.string().unwrap().is_none());
        let ended = announced(announcement, Some(Duration::from_millis(1))).await;
        let error = ended.unwrap_err().in_one();
        assert!(error.contains("192.0.2.77 yet within 0.0 s"), "{error}");
        assert!(error.contains("--advertise HOST"), "{error}");
    }
}
