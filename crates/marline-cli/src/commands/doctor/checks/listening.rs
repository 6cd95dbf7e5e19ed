//! Can the server have its addresses, and do clients find them?

use super::super::finding::Finding;
use super::super::running::Running;
use crate::commands::announce::takes_ipv4;
use crate::commands::networks::are_hidden;
use marline::identity::HostPort;
use socket2::{Domain, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

const NAME: &str = "listen";

/// `all`: the addresses that the server listens at, `tcp`: over TCP too. `running`: a server of
/// this user, which has them.
pub(in super::super) fn check(all: &[SocketAddr], tcp: bool, running: &Running) -> Vec<Finding> {
    let kinds: &[(&str, Type)] = match tcp {
        true => &[("UDP", Type::DGRAM), ("TCP", Type::STREAM)],
        false => &[("UDP", Type::DGRAM)],
    };
    let of = |address: &SocketAddr| {
        let failed = kinds.iter().find_map(|(protocol, kind)| {
            let error = bind(*address, *kind, takes_ipv4(*address, all)).err()?;
            Some((*protocol, error))
        });
        judge(*address, failed, running)
    };
    all.iter().map(of).collect()
}

/// Takes the port, and gives it back at once.
pub(super) fn bind(address: SocketAddr, kind: Type, dual: bool) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), kind, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(!dual)?;
    }
    if kind == Type::STREAM {
        socket.set_reuse_address(true)?;
    }
    socket.bind(&address.into())
}

fn judge(address: SocketAddr, failed: Option<(&str, io::Error)>, running: &Running) -> Finding {
    let Some((protocol, error)) = failed else {
        return Finding::fine(NAME, format!("{address} can be had"));
    };
    let ip = address.ip();
    match (error.kind(), running) {
        (ErrorKind::AddrInUse, Running::Answers(_)) => Finding::fine(
            NAME,
            format!("{address} is in use, and a server of this user runs"),
        ),
        (ErrorKind::AddrInUse, Running::Unclear(why)) => Finding::warning(
            NAME,
            format!("{protocol} {address} is in use, perhaps by a server of this user: {why}"),
        )
        .fix("see whose it is: ss -lnp"),
        (ErrorKind::AddrInUse, Running::None) => Finding::failure(
            NAME,
            format!(
                "{protocol} {address} is in use, by another program or a server without a control \
                 socket of this user"
            ),
        )
        .fix("see whose it is (ss -lnp), and stop it or give another --listen"),
        (ErrorKind::AddrNotAvailable, _) => Finding::warning(
            NAME,
            format!("this host does not have {ip} now: the server waits for it"),
        )
        .fix("give --listen an address that this host has"),
        (ErrorKind::PermissionDenied, _) => {
            Finding::failure(NAME, format!("{protocol} {address} cannot be had: {error}")).fix(
                "give --listen a port above 1023, or: setcap cap_net_bind_service+ep \"$(command \
                 -v marline)\"",
            )
        }
        _ => Finding::failure(NAME, format!("{protocol} {address} cannot be had: {error}"))
            .fix("give another --listen, such as 0.0.0.0:4433 on a host without IPv6"),
    }
}

/// `found`: where clients will look for the server. `guessed`: nobody said where that is.
pub(in super::super) fn advertised(found: &[HostPort], guessed: bool) -> Finding {
    const NAME: &str = "advertise";
    let texts: Vec<String> = found.iter().map(HostPort::to_string).collect();
    let texts = texts.join(", ");
    let hint = "name the address that clients reach: --advertise HOST";
    match (found.is_empty(), guessed && are_hidden(found)) {
        (true, _) => Finding::failure(
            NAME,
            "this host has no address with a route to the public network",
        )
        .fix(hint),
        (_, true) => Finding::warning(
            NAME,
            format!("not public: {texts}; clients in other networks do not reach it"),
        )
        .fix(hint),
        (_, false) => Finding::fine(NAME, format!("clients look for it at {texts}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict::{self, Failure, Fine, Warning};
    use super::*;
    use crate::control::status::tests::example;
    use std::net::UdpSocket;

    #[test]
    fn a_port_in_use_is_a_failure_unless_it_is_ours() {
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let verdict = |running| check(&[address], true, &running)[0].verdict;
        assert_eq!(verdict(Running::None), Failure);
        assert_eq!(verdict(Running::Answers(Box::new(example()))), Fine);
        assert_eq!(verdict(Running::Unclear("silent".into())), Warning);
        let free = ["127.0.0.1:0".parse().unwrap()];
        assert_eq!(check(&free, true, &Running::None)[0].verdict, Fine);
        // The server takes it as soon as it comes.
        let later = ["192.0.2.77:0".parse().unwrap()];
        assert_eq!(check(&later, false, &Running::None)[0].verdict, Warning);
        let verdict = |kind: ErrorKind| -> Verdict {
            judge(address, Some(("UDP", kind.into())), &Running::None).verdict
        };
        assert_eq!(verdict(ErrorKind::PermissionDenied), Failure);
        assert_eq!(verdict(ErrorKind::Unsupported), Failure);
    }

    #[test]
    fn an_ipv6_wildcard_does_not_need_the_ipv4_port_beside_it() {
        // An IPv4 address of the same port is another program's.
        let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let wildcard = SocketAddr::new("::".parse().unwrap(), port);
        let Ok(()) = bind(wildcard, Type::DGRAM, false) else {
            // Without IPv6 there is nothing to be in the way of.
            return;
        };
        let beside = [
            wildcard,
            SocketAddr::new("127.0.0.2".parse().unwrap(), port),
        ];
        let found = check(&beside, false, &Running::None);
        assert_eq!(
            [found[0].verdict, found[1].verdict],
            [Fine, Fine],
            "{found:?}"
        );
        let alone = check(&beside[..1], false, &Running::None);
        assert_eq!(alone[0].verdict, Failure);
    }

    #[test]
    fn a_private_guess_is_a_warning_and_a_private_choice_is_not() {
        let private = ["10.0.0.2:4433", "[fd00::2]:4433"].map(|host| host.parse().unwrap());
        assert_eq!(advertised(&private, true).verdict, Warning);
        assert_eq!(advertised(&private, false).verdict, Fine);
        let public = ["203.0.113.5:4433".parse().unwrap()];
        assert_eq!(advertised(&public, true).verdict, Fine);
        assert_eq!(advertised(&[], true).verdict, Failure);
    }
}
