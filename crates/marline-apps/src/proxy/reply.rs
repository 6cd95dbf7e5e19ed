//! The server's first bytes on a stream: whether it reached the target.
//!
//! ```text
//! status (1) | address type (1): 0 none, 4, 6 | address (0, 4, 16) | port (0, 2), big endian
//! ```
//! Status 0 is success and carries the server's own end of the connection; others carry no address.

use super::ByteFlow;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// Why the server did not connect the flow. Codes 1 to 5 are those of RFC 1928 section 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
pub enum Refusal {
    /// Any other failure at the server.
    #[error("the server failed")]
    Failed = 1,
    /// The server's rules forbid the target.
    #[error("the server's rules do not allow this target")]
    NotAllowed = 2,
    /// No route to the target's network.
    #[error("network unreachable from the server")]
    NetworkUnreachable = 3,
    /// The target's host cannot be reached.
    #[error("host unreachable from the server")]
    HostUnreachable = 4,
    /// The target refused the connection.
    #[error("the target refused the connection")]
    ConnectionRefused = 5,
    /// The target did not answer in time.
    #[error("the target did not answer the server in time")]
    TimedOut = 6,
    /// The name has no address.
    #[error("the server cannot resolve the host name")]
    NameNotFound = 7,
    /// The client has too many flows open.
    #[error("too many flows are open at the server")]
    TooManyFlows = 8,
    /// The target's bytes make no sense to the server.
    #[error("the server does not understand the target")]
    BadTarget = 9,
    /// The port that the client asks for is taken.
    #[error("another client or program has that port at the server")]
    PortTaken = 10,
}

impl Refusal {
    const ALL: [Refusal; 10] = [
        Refusal::Failed,
        Refusal::NotAllowed,
        Refusal::NetworkUnreachable,
        Refusal::HostUnreachable,
        Refusal::ConnectionRefused,
        Refusal::TimedOut,
        Refusal::NameNotFound,
        Refusal::TooManyFlows,
        Refusal::BadTarget,
        Refusal::PortTaken,
    ];

    /// An unknown code of a newer server means failure all the same.
    fn from_code(code: u8) -> Refusal {
        Refusal::ALL
            .into_iter()
            .find(|refusal| *refusal as u8 == code)
            .unwrap_or(Refusal::Failed)
    }

    /// What an error of `connect` means.
    pub(super) fn of_connect(error: &io::Error) -> Refusal {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Refusal::ConnectionRefused,
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => {
                Refusal::NetworkUnreachable
            }
            io::ErrorKind::HostUnreachable => Refusal::HostUnreachable,
            io::ErrorKind::TimedOut => Refusal::TimedOut,
            _ => Refusal::Failed,
        }
    }

    /// The error that a reader of the flow gets.
    fn into_error(self) -> io::Error {
        let kind = match self {
            Refusal::NotAllowed => io::ErrorKind::PermissionDenied,
            Refusal::NetworkUnreachable => io::ErrorKind::NetworkUnreachable,
            Refusal::HostUnreachable | Refusal::NameNotFound => io::ErrorKind::HostUnreachable,
            Refusal::TimedOut => io::ErrorKind::TimedOut,
            Refusal::ConnectionRefused => io::ErrorKind::ConnectionRefused,
            Refusal::Failed | Refusal::TooManyFlows | Refusal::BadTarget | Refusal::PortTaken => {
                io::ErrorKind::Other
            }
        };
        io::Error::new(kind, self)
    }
}

/// The server's answer: its end of the connection to the target, or why there is none.
pub type Reply = Result<SocketAddr, Refusal>;

/// The answer's bytes, 2 to 20.
pub fn encode(reply: Reply) -> Vec<u8> {
    match reply {
        Ok(bound) => {
            let mut out = vec![0];
            match bound.ip() {
                IpAddr::V4(address) => {
                    out.push(4);
                    out.extend(address.octets());
                }
                IpAddr::V6(address) => {
                    out.push(6);
                    out.extend(address.octets());
                }
            }
            out.extend(bound.port().to_be_bytes());
            out
        }
        Err(refusal) => vec![refusal as u8, 0],
    }
}

/// Reads the answer from the beginning of `stream`.
///
/// # Errors
/// Those of the stream; `InvalidData` when the bytes are no answer.
pub async fn read<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Reply> {
    let mut partial = Partial::default();
    loop {
        let missing = partial.missing();
        if missing == 0 {
            return partial.decode();
        }
        let end = partial.filled + missing;
        stream
            .read_exact(&mut partial.bytes[partial.filled..end])
            .await?;
        partial.filled = end;
    }
}

/// A stream whose first bytes are the server's answer, which reading takes off: so what the
/// application sends first need not wait a round trip for the answer. A refusal is an error of the
/// first read.
#[derive(Debug)]
pub(super) struct ReplyFirst<S> {
    stream: S,
    /// `None` once the answer has been read.
    partial: Option<Partial>,
}

impl<S> ReplyFirst<S> {
    pub(super) fn new(stream: S) -> Self {
        ReplyFirst {
            stream,
            partial: Some(Partial::default()),
        }
    }
}

/// The beginning of an answer.
#[derive(Debug, Default)]
struct Partial {
    bytes: [u8; 20],
    filled: usize,
}

impl Partial {
    /// How many more bytes are certainly part of the answer.
    fn missing(&self) -> usize {
        let length = match (self.filled, self.bytes[1]) {
            (0 | 1, _) => 2,
            (_, 4) => 8,
            (_, 6) => 20,
            _ => 2,
        };
        length - self.filled
    }

    fn decode(&self) -> io::Result<Reply> {
        let port = |at: usize| u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]]);
        match (self.bytes[0], self.bytes[1]) {
            (0, 4) => {
                let [a, b, c, d] = [self.bytes[2], self.bytes[3], self.bytes[4], self.bytes[5]];
                Ok(Ok((Ipv4Addr::new(a, b, c, d), port(6)).into()))
            }
            (0, 6) => {
                let mut octets = [0; 16];
                octets.copy_from_slice(&self.bytes[2..18]);
                Ok(Ok((Ipv6Addr::from(octets), port(18)).into()))
            }
            (code @ 1.., 0) => Ok(Err(Refusal::from_code(code))),
            (status, kind) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "the server's answer makes no sense (status {status}, address type {kind})"
                ),
            )),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReplyFirst<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while let Some(partial) = &mut this.partial {
            let missing = partial.missing();
            if missing == 0 {
                match partial.decode()? {
                    Ok(_) => this.partial = None,
                    Err(refusal) => return Poll::Ready(Err(refusal.into_error())),
                }
                break;
            }
            let mut part =
                ReadBuf::new(&mut partial.bytes[partial.filled..partial.filled + missing]);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut part))?;
            let read = part.filled().len();
            if read == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            partial.filled += read;
        }
        Pin::new(&mut this.stream).poll_read(cx, buf)
    }
}

impl<S: ByteFlow> ByteFlow for ReplyFirst<S> {
    fn poll_given_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.stream.poll_given_up(cx)
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        self.stream.poll_room(cx)
    }

    fn retain(&mut self, bytes: usize) {
        self.stream.retain(bytes);
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReplyFirst<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;

    fn block_on<F: Future>(future: F) -> F::Output {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(future)
    }

    fn any_reply() -> impl Strategy<Value = Reply> {
        prop_oneof![
            (any::<u32>(), any::<u16>())
                .prop_map(|(ip, port)| Ok((Ipv4Addr::from_bits(ip), port).into())),
            (any::<u128>(), any::<u16>()).prop_map(|(ip, port)| Ok((
                Ipv6Addr::from_bits(ip),
                port
            )
                .into())),
            (0..10_usize).prop_map(|index| Err(Refusal::ALL[index])),
        ]
    }

    proptest! {
        #[test]
        fn an_answer_is_taken_off_and_the_rest_is_left(reply in any_reply(), rest in any::<[u8; 3]>()) {
            let bytes = [encode(reply), rest.to_vec()].concat();
            let mut reader = &bytes[..];
            prop_assert_eq!(block_on(read(&mut reader)).unwrap(), reply);
            prop_assert_eq!(reader, rest);
        }

        #[test]
        fn any_bytes_are_an_answer_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..24)) {
            let _ = block_on(read(&mut &bytes[..]));
        }
    }

    #[tokio::test]
    async fn data_follows_the_answer_however_it_is_cut() {
        let bound: SocketAddr = "[2001:db8::1]:9".parse().unwrap();
        let bytes = [encode(Ok(bound)), b"data".to_vec()].concat();
        let (mut server, client) = tokio::io::duplex(1);
        tokio::spawn(async move { server.write_all(&bytes).await });
        let mut text = String::new();
        ReplyFirst::new(client)
            .read_to_string(&mut text)
            .await
            .unwrap();
        assert_eq!(text, "data");
    }

    #[tokio::test]
    async fn a_refusal_is_an_error_of_the_first_read() {
        let bytes = encode(Err(Refusal::NotAllowed));
        let mut stream = ReplyFirst::new(&bytes[..]);
        let error = stream.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        let cut = ReplyFirst::new(&b"\0"[..])
            .read(&mut [0; 8])
            .await
            .unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_code_from_the_future_is_a_failure() {
        assert_eq!(
            block_on(read(&mut &[200, 0][..])).unwrap(),
            Err(Refusal::Failed)
        );
    }
}
