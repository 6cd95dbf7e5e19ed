//! Can the server have its addresses, and do clients find them?

use super::super::finding::Finding;
use marline::identity::{Host, HostPort};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};

const NAME: &str = "listen";

/// `running`: a server answers at the control socket, and has the addresses.
pub(in super::super) fn check(address: SocketAddr, tcp: bool, running: bool) -> Finding {
    let udp = UdpSocket::bind(address).map(drop);
    let tcp = match tcp {
        true => TcpListener::bind(address).map(drop),
        false => Ok(()),
    };
    let failed = [("UDP", udp), ("TCP", tcp)]
        .into_iter()
        .find_map(|(protocol, bound)| Some((protocol, bound.err()?)));
    match failed {
        None => Finding::fine(NAME, format!("{address} can be had")),
        Some((_, error)) if error.kind() == ErrorKind::AddrInUse && running => Finding::fine(
            NAME,
            format!("{address} is in use, and a server of yours runs"),
        ),
        Some((protocol, error)) if error.kind() == ErrorKind::AddrInUse => Finding::failure(
            NAME,
            format!("{protocol} {address} is in use by another program"),
        )
        .mend(format!(
            "find it (ss -lnp), or give another --listen; {error}"
        )),
        Some((protocol, error)) => {
            Finding::failure(NAME, format!("{protocol} {address} cannot be had: {error}"))
                .mend("give --listen an address that this host has, and a port above 1023")
        }
    }
}

/// `found`: where clients will look for the server. `guessed`: nobody said where that is.
pub(in super::super) fn advertised(found: &[HostPort], guessed: bool) -> Finding {
    const NAME: &str = "advertise";
    let texts: Vec<String> = found.iter().map(HostPort::to_string).collect();
    let texts = texts.join(", ");
    let hidden = |host: &HostPort| match host.host {
        Host::Ip(IpAddr::V4(ip)) => ip.is_private() || ip.is_loopback() || ip.is_link_local(),
        Host::Ip(IpAddr::V6(ip)) => ip.is_loopback(),
        Host::Name(_) => false,
    };
    let hint = "name the address that clients reach: --advertise HOST";
    match (found.is_empty(), guessed && found.iter().all(hidden)) {
        (true, _) => {
            Finding::failure(NAME, "this host has no address that clients could use").mend(hint)
        }
        (_, true) => Finding::warning(
            NAME,
            format!("{texts} is private: clients elsewhere do not reach it"),
        )
        .mend(hint),
        (_, false) => Finding::fine(NAME, format!("clients are told {texts}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_port_in_use_is_a_failure_unless_it_is_ours() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        assert_eq!(check(address, true, false).verdict, Verdict::Failure);
        assert_eq!(check(address, true, true).verdict, Verdict::Fine);
        let foreign = "192.0.2.77:0".parse().unwrap();
        assert_eq!(check(foreign, false, false).verdict, Verdict::Failure);
        let free = "127.0.0.1:0".parse().unwrap();
        assert_eq!(check(free, true, false).verdict, Verdict::Fine);
    }

    #[test]
    fn a_private_guess_is_a_warning_and_a_private_choice_is_not() {
        let private = ["10.0.0.2:4433".parse().unwrap()];
        assert_eq!(advertised(&private, true).verdict, Verdict::Warning);
        assert_eq!(advertised(&private, false).verdict, Verdict::Fine);
        let public = ["203.0.113.5:4433".parse().unwrap()];
        assert_eq!(advertised(&public, true).verdict, Verdict::Fine);
        assert_eq!(advertised(&[], true).verdict, Verdict::Failure);
    }
}
