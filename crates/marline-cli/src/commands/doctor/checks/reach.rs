//! Does the server answer over UDP and over TCP on a path? Both ends prove their keys; no session
//! begins.

use super::super::finding::Finding;
use super::super::limits::PATIENCE;
use marline::carrier::{CarrierChoice, Dial, DialError, SocketSpec};
use marline::identity::{Identity, PublicKey};
use marline::{Bind, Path};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const UDP: &str = "udp";
const TCP: &str = "tcp";

/// How it went: after how long, or why not.
type Reached = Result<Duration, DialError>;

pub(in super::super) async fn check(
    path: &Path,
    server: PublicKey,
    remote: SocketAddr,
    identity: &Identity,
) -> Vec<Finding> {
    let (udp, tcp) = tokio::join!(
        dial(path, server, remote, identity, CarrierChoice::Quic),
        dial(path, server, remote, identity, CarrierChoice::Tcp),
    );
    judge(path.carrier, remote, udp, tcp)
}

async fn dial(
    path: &Path,
    server: PublicKey,
    remote: SocketAddr,
    identity: &Identity,
    carrier: CarrierChoice,
) -> Option<Reached> {
    if path.carrier != CarrierChoice::Auto && path.carrier != carrier {
        return None;
    }
    let bind: Bind = path.local.clone();
    let dial = Dial {
        socket: SocketSpec {
            bind,
            ..SocketSpec::default()
        },
        carrier,
        tcp_congestion: path.tcp_cc.clone(),
        timeout: PATIENCE,
        ..Dial::new(remote, server)
    };
    let began = Instant::now();
    Some(dial.connect(identity).await.map(|_| began.elapsed()))
}

fn judge(
    choice: CarrierChoice,
    remote: SocketAddr,
    udp: Option<Reached>,
    tcp: Option<Reached>,
) -> Vec<Finding> {
    let up = |way: &Option<Reached>| matches!(way, Some(Ok(_)));
    let (udp_up, tcp_up) = (up(&udp), up(&tcp));
    let mut found = Vec::new();
    for (name, way, other_up) in [(UDP, udp, tcp_up), (TCP, tcp, udp_up)] {
        let port = remote.port();
        let finding = match way {
            None => Finding::fine(name, format!("not asked: the path has carrier={choice}")),
            Some(Ok(after)) => Finding::fine(
                name,
                format!("{remote} answers after {} ms", after.as_millis()),
            ),
            Some(Err(error)) if other_up && name == UDP => Finding::warning(name, said(&error))
                .fix(format!(
                    "open UDP port {port} in the server's firewall, or use another network: until \
                     then TCP carries the path"
                )),
            Some(Err(error)) if other_up => Finding::warning(name, said(&error)).fix(format!(
                "open TCP port {port} in the server's firewall, for networks that block UDP"
            )),
            Some(Err(error)) => Finding::failure(name, said(&error)).fix(
                "where other paths reach it, look at this one's network; else run `marline doctor \
                 server` at the server",
            ),
        };
        found.push(finding);
    }
    found
}

/// The error's first sentence: its questions are what the other checks answer.
fn said(error: &DialError) -> String {
    match error {
        DialError::Unreachable { addr, after } => {
            format!("no answer from {addr} within {:.1} s", after.as_secs_f64())
        }
        error => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict::{Failure, Fine, Warning};
    use super::*;

    #[test]
    fn one_way_is_a_warning_and_none_a_failure() {
        let remote: SocketAddr = "203.0.113.5:4433".parse().unwrap();
        let up = || Some(Ok(Duration::from_millis(42)));
        let down = || {
            let after = PATIENCE;
            Some(Err(DialError::Unreachable {
                addr: remote,
                after,
            }))
        };
        let verdicts = |udp, tcp| {
            let found = judge(CarrierChoice::Auto, remote, udp, tcp);
            [found[0].verdict, found[1].verdict]
        };
        assert_eq!(verdicts(up(), up()), [Fine, Fine]);
        assert_eq!(verdicts(down(), up()), [Warning, Fine]);
        assert_eq!(verdicts(up(), down()), [Fine, Warning]);
        assert_eq!(verdicts(down(), down()), [Failure, Failure]);
        assert_eq!(verdicts(up(), None), [Fine, Fine]);
        let found = judge(CarrierChoice::Auto, remote, down(), up());
        assert_eq!(
            found[0].text,
            "no answer from 203.0.113.5:4433 within 4.0 s"
        );
    }
}
