//! One name server is asked for the addresses of a name.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use simple_dns::TYPE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout, timeout_at};

use super::message::{Answer, Question};
use crate::carrier::SocketSpec;

/// Questions are sent this often, one this long after the other: a loss costs about what a dial
/// waits before it is begun again, and most round trips are shorter.
const SENT: u32 = 3;
/// See [`SENT`].
const AGAIN: Duration = Duration::from_secs(1);
/// When there are addresses of one kind, those of the other are waited for this much longer
/// (RFC 8305 section 3).
const OTHER_KIND: Duration = Duration::from_millis(50);
/// What an answer over TCP may take.
const BY_TCP: Duration = Duration::from_secs(3);
/// The longest message that is read (bytes): what resolvers send over UDP at most, and over TCP
/// more addresses than are dialled.
const MAX_MESSAGE: usize = 4096;

/// Asks `server` for the addresses of `name`; at least one is found.
///
/// # Errors
/// It does not answer, or knows of no address: in words that name it.
pub(super) async fn ask(
    name: &str,
    socket: &SocketSpec,
    server: SocketAddr,
) -> Result<Vec<IpAddr>, String> {
    let of_server = |what: String| format!("name server {}: {what}", server.ip());
    let questions = [
        Question::new(name, TYPE::AAAA)?,
        Question::new(name, TYPE::A)?,
    ];
    let udp = socket
        .connected(server)
        .map_err(|error| of_server(error.to_string()))?;
    let mut asking = Asking {
        udp: UdpSocket::from_std(udp).map_err(|error| of_server(error.to_string()))?,
        answers: [None, None],
    };
    let ran = asking.run(&questions, socket, server).await;
    let mut found = Vec::new();
    let mut failure = ran.err().map(|error| error.to_string());
    for answer in asking.answers {
        match answer {
            Some(Answer::Addresses(ips)) => found.extend(ips),
            Some(Answer::Refused(why)) => failure = failure.or(Some(why)),
            Some(Answer::Truncated) => {
                failure = failure.or_else(|| Some("its answer is cut off".to_owned()));
            }
            None => failure = failure.or_else(|| Some("no answer".to_owned())),
        }
    }
    match found.is_empty() {
        false => Ok(found),
        true => Err(of_server(
            failure.unwrap_or_else(|| "the name has no address".to_owned()),
        )),
    }
}

struct Asking {
    /// Connected, so that only what comes from the server is received.
    udp: UdpSocket,
    /// One for each question.
    answers: [Option<Answer>; 2],
}

impl Asking {
    /// Asks until both questions are answered, or one of them and nothing came of the other for a
    /// while.
    async fn run(
        &mut self,
        questions: &[Question; 2],
        socket: &SocketSpec,
        server: SocketAddr,
    ) -> io::Result<()> {
        let mut enough: Option<Instant> = None;
        for _ in 0..SENT {
            for (question, answer) in questions.iter().zip(&self.answers) {
                if answer.is_none() {
                    self.udp.send(question.bytes()).await?;
                }
            }
            let again = Instant::now() + AGAIN;
            loop {
                let until = enough.unwrap_or(again);
                let Ok(taken) = timeout_at(until, self.take(questions)).await else {
                    break;
                };
                let index = taken?;
                if self.answers[index] == Some(Answer::Truncated)
                    && let Ok(Ok(whole)) =
                        timeout(BY_TCP, by_tcp(&questions[index], socket, server)).await
                {
                    self.answers[index] = Some(whole);
                }
                if self.answers.iter().all(Option::is_some) {
                    return Ok(());
                }
                if matches!(&self.answers[index], Some(Answer::Addresses(ips)) if !ips.is_empty()) {
                    enough = Some(Instant::now() + OTHER_KIND);
                }
            }
            if enough.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Waits for an answer to one of the questions that have none, and returns which.
    async fn take(&mut self, questions: &[Question; 2]) -> io::Result<usize> {
        let mut bytes = [0; MAX_MESSAGE];
        loop {
            let length = self.udp.recv(&mut bytes).await?;
            for (index, question) in questions.iter().enumerate() {
                if self.answers[index].is_none()
                    && let Some(answer) = question.answered(&bytes[..length])
                {
                    self.answers[index] = Some(answer);
                    return Ok(index);
                }
            }
        }
    }
}

/// Asks over TCP (RFC 7766).
async fn by_tcp(
    question: &Question,
    socket: &SocketSpec,
    server: SocketAddr,
) -> io::Result<Answer> {
    let socket = socket.open_tcp(server, None).map_err(io::Error::other)?;
    let mut stream = socket.connect(server).await?;
    // A question is a name and a few bytes.
    let length = u16::try_from(question.bytes().len()).map_err(io::Error::other)?;
    let message = [&length.to_be_bytes(), question.bytes()].concat();
    stream.write_all(&message).await?;
    let length = usize::from(stream.read_u16().await?);
    if length > MAX_MESSAGE {
        return Err(io::Error::other("the answer is too long"));
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer).await?;
    let answer = question.answered(&answer);
    answer.ok_or_else(|| io::Error::other("that answers another question"))
}

#[cfg(test)]
mod tests {
    use super::super::{Resolver, tests};
    use super::*;
    use crate::carrier::Bind;
    use simple_dns::{Packet, PacketFlag};
    use std::net::Ipv4Addr;
    use tokio::net::TcpListener;

    const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    const FOUND: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    fn path() -> SocketSpec {
        SocketSpec {
            bind: Bind::Address(LOCAL.ip()),
            ..SocketSpec::default()
        }
    }

    fn answer(message: &[u8], change: impl Fn(&mut Packet<'_>)) -> Vec<u8> {
        tests::answer(message, FOUND.into(), change)
    }

    #[tokio::test]
    async fn a_forged_answer_is_passed_over_and_a_lost_one_asked_for_again() {
        let server = UdpSocket::bind(LOCAL).await.unwrap();
        let stranger = UdpSocket::bind(LOCAL).await.unwrap();
        let address = server.local_addr().unwrap();
        let mut bytes = [0; 512];
        let serving = async {
            // Both questions are lost.
            for _ in 0..2 {
                server.recv_from(&mut bytes).await.unwrap();
            }
            for _ in 0..2 {
                let (length, from) = server.recv_from(&mut bytes).await.unwrap();
                let whole = answer(&bytes[..length], |_| ());
                let forged = answer(&bytes[..length], |it| it.set_id(it.id().wrapping_add(1)));
                stranger.send_to(&whole, from).await.unwrap();
                server.send_to(&forged, from).await.unwrap();
                server.send_to(&whole, from).await.unwrap();
            }
        };
        let path = path();
        let (found, ()) = tokio::join!(ask("server.example", &path, address), serving);
        assert_eq!(found, Ok(vec![FOUND.into()]));
    }

    #[tokio::test]
    async fn what_was_cut_off_is_asked_for_over_tcp() {
        let listener = TcpListener::bind(LOCAL).await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = UdpSocket::bind(address).await.unwrap();
        let mut bytes = [0; 512];
        let serving = async {
            for _ in 0..2 {
                let (length, from) = server.recv_from(&mut bytes).await.unwrap();
                let cut = answer(&bytes[..length], |packet| {
                    if !packet.answers.is_empty() {
                        packet.answers.clear();
                        packet.set_flags(PacketFlag::TRUNCATION);
                    }
                });
                server.send_to(&cut, from).await.unwrap();
            }
            let (mut stream, _) = listener.accept().await.unwrap();
            let length = stream.read_u16().await.unwrap();
            let mut message = vec![0; length.into()];
            stream.read_exact(&mut message).await.unwrap();
            let whole = answer(&message, |_| ());
            stream.write_u16(whole.len() as u16).await.unwrap();
            stream.write_all(&whole).await.unwrap();
        };
        let path = path();
        let (found, ()) = tokio::join!(ask("server.example", &path, address), serving);
        assert_eq!(found, Ok(vec![FOUND.into()]));
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_does_not_keep_the_next_one_from_answering() {
        let absent = UdpSocket::bind(LOCAL).await.unwrap().local_addr().unwrap();
        let server = UdpSocket::bind(LOCAL).await.unwrap();
        let resolver = Resolver::of(vec![absent, server.local_addr().unwrap()]);
        tokio::spawn(tests::serve(server, FOUND.into()));
        let path = path();
        let found = resolver.look_up("server.example", &path).await;
        assert_eq!(found, Ok(vec![FOUND.into()]));
        let of = |servers| {
            let path = path.clone();
            async move { Resolver::of(servers).look_up("server.example", &path).await }
        };
        let why = of(vec![absent]).await.unwrap_err();
        assert!(why.starts_with("name server 127.0.0.1: "), "{why}");
        let none = Err("this host names no server for it".to_owned());
        assert_eq!(of(Vec::new()).await, none);
    }
}
