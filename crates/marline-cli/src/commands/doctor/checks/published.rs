//! Do published ports lead anywhere, and can the server have them?

use super::super::finding::Finding;
use super::super::running::Running;
use super::listening::bind;
use crate::control::status::PublishedState;
use marline_apps::destination::ServerPort;
use marline_apps::proxy::Protocol;
use marline_apps::publish::{Permits, Publication};
use socket2::Type;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

const NAME: &str = "publish";
/// A service of this host or its network answers within milliseconds.
const ANSWER: Duration = Duration::from_secs(2);
/// Ports of a server that are tried at most.
const MOST: usize = 64;

/// What a client publishes: as `running`, a client of this user, knows it of the server, and
/// whether the service is there.
pub(in super::super) async fn of_client(all: &[Publication], running: &Running) -> Vec<Finding> {
    let mut findings = Vec::new();
    for publication in all {
        let connected = match publication.port.protocol {
            Protocol::Tcp => Some(connect(publication).await),
            Protocol::Udp => None,
        };
        findings.push(judge(publication, connected, running));
    }
    findings
}

async fn connect(publication: &Publication) -> io::Result<()> {
    let (host, port) = (publication.target.host(), publication.target.port());
    let connecting = TcpStream::connect((host.to_string(), port));
    let connected = timeout(ANSWER, connecting).await;
    connected
        .unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
        .map(drop)
}

fn judge(
    publication: &Publication,
    connected: Option<io::Result<()>>,
    running: &Running,
) -> Finding {
    let (port, target) = (publication.port.to_string(), &publication.target);
    let stands = match running {
        Running::Answers(status) => status.published.iter().find(|shown| shown.port == port),
        _ => None,
    };
    let about = |why: &Option<String>| why.clone().unwrap_or_default();
    if let Some(Err(error)) = connected {
        let text = format!("{port} leads to {target}, where nothing answers: {error}");
        return Finding::warning(NAME, text)
            .fix("start the service, or let --publish name where it is");
    }
    match stands.map(|shown| (shown.state, about(&shown.about))) {
        Some((PublishedState::Refused, why)) => {
            Finding::failure(NAME, format!("{port} is not published: {why}"))
                .fix(format!("at the server: --allow-publish KEY={port}"))
        }
        Some((PublishedState::SetAside, _)) => Finding::warning(
            NAME,
            format!("{port} leads to a newer session of this client's key"),
        )
        .fix("give each machine a key of its own: marline identity new"),
        Some((PublishedState::Open, at)) => Finding::fine(
            NAME,
            format!("{port} of the server, at {at}, leads to {target}"),
        ),
        Some((PublishedState::Asking, _)) | None => match connected {
            Some(_) => Finding::fine(NAME, format!("{target} answers, to which {port} leads")),
            None => Finding::unknown(
                NAME,
                format!("{port} leads to {target}, which cannot be asked"),
            ),
        },
    }
}

/// Ports that a server's clients may publish at these of its addresses, unless `running`, a server
/// of this user, may have them.
pub(in super::super) fn of_server(
    permits: &Permits,
    addresses: &[IpAddr],
    running: &Running,
) -> Option<Finding> {
    if permits.is_empty() {
        return None;
    }
    if !matches!(running, Running::None) {
        let text = "the server that runs has the ports of clients, or opens them as they come";
        return Some(Finding::fine(NAME, text));
    }
    let any = [IpAddr::V4(Ipv4Addr::UNSPECIFIED)];
    let addresses = if addresses.is_empty() {
        &any
    } else {
        addresses
    };
    let ports = permits.ports().take(MOST);
    let mut failed = ports.flat_map(|port| {
        addresses.iter().filter_map(move |ip| {
            let at = SocketAddr::new(*ip, port.number.get());
            let kind = match port.protocol {
                Protocol::Tcp => Type::STREAM,
                Protocol::Udp => Type::DGRAM,
            };
            Some((port, at, bind(at, kind, false).err()?))
        })
    });
    Some(match failed.next() {
        None => Finding::fine(NAME, "the ports that clients may publish can be had"),
        Some((port, at, error)) => unavailable(port, at, &error),
    })
}

fn unavailable(port: ServerPort, at: SocketAddr, error: &io::Error) -> Finding {
    let text = format!("{port}, which a client may publish, cannot be had at {at}: {error}");
    match error.kind() {
        ErrorKind::AddrInUse => Finding::warning(NAME, text)
            .fix("see whose it is (ss -lnp), and let clients have another port"),
        ErrorKind::PermissionDenied => Finding::failure(NAME, text)
            .fix("setcap cap_net_bind_service+ep \"$(command -v marline)\", or ports above 1023"),
        _ => Finding::warning(NAME, text).fix("give --publish-address an address of this host"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::*;
    use crate::control::status::tests::example;
    use std::net::TcpListener;

    fn running(state: PublishedState) -> Running {
        let mut status = example();
        status.published[0].state = state;
        Running::Answers(Box::new(status))
    }

    #[tokio::test]
    async fn a_service_that_is_not_there_and_a_server_that_refuses_are_told_apart() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at =
            |address: SocketAddr| -> Publication { format!("tcp:8443={address}").parse().unwrap() };
        let there = at(listener.local_addr().unwrap());
        let verdict = async |one: &Publication, running: &Running| {
            let found = of_client(std::slice::from_ref(one), running).await;
            (found[0].verdict, found[0].fix.is_some())
        };
        for (state, expected) in [
            (PublishedState::Open, (Verdict::Fine, false)),
            (PublishedState::Asking, (Verdict::Fine, false)),
            (PublishedState::SetAside, (Verdict::Warning, true)),
            (PublishedState::Refused, (Verdict::Failure, true)),
        ] {
            assert_eq!(
                verdict(&there, &running(state)).await,
                expected,
                "{state:?}"
            );
        }
        assert_eq!(
            verdict(&there, &Running::None).await,
            (Verdict::Fine, false)
        );
        let udp: Publication = "udp:9000=127.0.0.1:9".parse().unwrap();
        assert_eq!(
            verdict(&udp, &Running::None).await,
            (Verdict::Unknown, false)
        );
        drop(listener);
        let gone = verdict(&there, &running(PublishedState::Open)).await;
        assert_eq!(gone, (Verdict::Warning, true));
    }

    #[test]
    fn a_port_in_use_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let key = marline::identity::PublicKey::from_bytes([7; 32]);
        let permit = format!("{key}=tcp:{port}").parse().unwrap();
        let permits = Permits::new([permit]);
        let own = [Ipv4Addr::LOCALHOST.into()];
        let found = of_server(&permits, &own, &Running::None).unwrap();
        assert_eq!(found.verdict, Verdict::Warning);
        assert!(
            found.text.contains(&format!("tcp:{port}")),
            "{}",
            found.text
        );
        let found = of_server(&permits, &own, &running(PublishedState::Open)).unwrap();
        assert_eq!(found.verdict, Verdict::Fine);
        drop(listener);
        let found = of_server(&permits, &own, &Running::None).unwrap();
        assert_eq!(found.verdict, Verdict::Fine);
        assert!(of_server(&Permits::default(), &own, &Running::None).is_none());
    }
}
