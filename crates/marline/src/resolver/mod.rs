//! Names, looked up by one path: the system's name servers are asked from sockets that are bound as
//! the path's are.
//!
//! The system's own resolver goes by the routing table, which may lead to a link that is dead. What
//! a path asks by itself is found where that path works. Only addresses are asked for (A and AAAA,
//! RFC 1035, RFC 3596), over UDP, and over TCP where an answer did not fit. An answer is taken from
//! the server and the port that were asked, by a random id. It need not be true: whoever answers
//! at the address must prove the server's key. Questions are plain, as most resolvers' are.
//!
//! | file | what |
//! | --- | --- |
//! | `servers.rs` | which name servers there are for a path |
//! | `message.rs` | a question, and what answers it |
//! | `ask.rs` | one server is asked |

mod ask;
mod message;
mod servers;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::carrier::{Bind, SocketSpec};
use servers::Servers;

/// Head start of a name server over the next: more than most take to answer; one that is dead
/// costs no more (RFC 8305 section 5 has it for addresses).
const HEAD_START: Duration = Duration::from_millis(250);
/// Most addresses that are taken of one name: as many as are dialled.
const MAX_ADDRESSES: usize = 16;

/// Asks the name servers of the system, or others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resolver(Servers);

impl Resolver {
    /// Asks these servers alone.
    #[cfg(test)]
    pub(crate) const fn of(servers: Vec<SocketAddr>) -> Self {
        Self(Servers::Given(servers))
    }

    /// Has a path so bound a way of its own, and `name` an address in DNS? What has no dot is
    /// completed by the system alone, and some names are never DNS's (RFC 6761, RFC 6762).
    pub(crate) fn takes(name: &str, bind: &Bind) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name);
        let last = name.rsplit_once('.').map(|(_, last)| last);
        let is_dns = last.is_some_and(|last| {
            let others = ["local", "localhost", "onion"];
            !others.iter().any(|other| last.eq_ignore_ascii_case(other))
        });
        is_dns && matches!(bind, Bind::Interface(_) | Bind::Address(_))
    }

    /// The addresses of `name`, at least one, those that this path has a way to first. Takes at
    /// most some seconds.
    ///
    /// # Errors
    /// There is no server to ask, none answers, or those that do know of no address: in words.
    pub(crate) async fn look_up(
        &self,
        name: &str,
        socket: &SocketSpec,
    ) -> Result<Vec<IpAddr>, String> {
        let mut asked = JoinSet::new();
        for (index, server) in self.0.of(socket).into_iter().enumerate() {
            let (name, socket) = (name.to_owned(), socket.clone());
            asked.spawn(async move {
                sleep(HEAD_START * index as u32).await;
                ask::ask(&name, &socket, server).await
            });
        }
        let mut failure = None;
        while let Some(done) = asked.join_next().await {
            match done {
                Ok(Ok(found)) => return Ok(sorted(found, socket)),
                Ok(Err(error)) => failure = failure.or(Some(error)),
                Err(error) => failure = failure.or(Some(error.to_string())),
            }
        }
        Err(failure.unwrap_or_else(|| "this host names no server for it".to_owned()))
    }
}

/// No more than are dialled; those that there is no route to come last, for they fail at once.
fn sorted(mut found: Vec<IpAddr>, socket: &SocketSpec) -> Vec<IpAddr> {
    found.truncate(MAX_ADDRESSES);
    // UDP port 9 discards what it is sent (RFC 863); nothing is sent.
    found.sort_by_cached_key(|ip| socket.egress(SocketAddr::new(*ip, 9)).is_err());
    found
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use simple_dns::rdata::{A, RData};
    use simple_dns::{CLASS, Packet, QTYPE, ResourceRecord, TYPE};
    use tokio::net::UdpSocket;

    /// The answer to a message: this address, which is the only one of any name.
    pub(crate) fn answer(message: &[u8], ip: IpAddr, change: impl Fn(&mut Packet<'_>)) -> Vec<u8> {
        let mut packet = Packet::parse(message).unwrap().into_reply();
        let question = packet.questions[0].clone();
        if let (QTYPE::TYPE(TYPE::A), IpAddr::V4(ip)) = (question.qtype, ip) {
            let data = RData::A(A { address: ip.into() });
            let record = ResourceRecord::new(question.qname, CLASS::IN, 60, data);
            packet.answers.push(record);
        }
        change(&mut packet);
        packet.build_bytes_vec().unwrap()
    }

    /// Answers so for ever.
    pub(crate) async fn serve(server: UdpSocket, ip: IpAddr) {
        let mut bytes = [0; 512];
        loop {
            let (length, from) = server.recv_from(&mut bytes).await.unwrap();
            let whole = answer(&bytes[..length], ip, |_| ());
            server.send_to(&whole, from).await.unwrap();
        }
    }

    #[test]
    fn dns_is_asked_for_its_own_names_by_paths_with_a_way_of_their_own() {
        let modem = Bind::Interface("wwan0".into());
        let address = Bind::Address([192, 0, 2, 1].into());
        for (name, bind, expected) in [
            ("server.example", &modem, true),
            ("server.example.", &address, true),
            ("server.example", &Bind::Any, false),
            ("server", &modem, false),
            ("server.", &modem, false),
            ("server.local", &modem, false),
            ("a.localhost", &modem, false),
        ] {
            assert_eq!(Resolver::takes(name, bind), expected, "{name} by {bind}");
        }
    }
}
