//! The server's side of a flow to a target: connects, relays, exchanges datagrams.

use super::associations::send;
use super::eyeballs;
use super::find::Find;
use super::idle::Idle;
use super::ports::Port;
use super::relay::{ResetOnDrop, relay};
use super::reply::{self, Refusal};
use super::udp::{MAX_DATAGRAM, hand_over, pause_after, roomy};
use super::{ByteFlow, PacketFlow, Protocol, Target};
use bytes::Bytes;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, UdpSocket};
use tokio::time::timeout;

/// How long all addresses of a target together may take to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a refused client may take to close its end.
const REFUSED: Duration = Duration::from_secs(5);
/// A UDP flow without a datagram in either direction for this long is closed; longer than the
/// client's own limit.
const UDP_IDLE: Duration = Duration::from_secs(150);

/// Connects a stream to its target, or reports to its client why not. It keeps what it takes of the
/// host for as long as that lasts.
pub(crate) async fn stream<S, H>(
    mut flow: S,
    target: Target,
    (_place, port): (H, Port),
    finder: &impl Find,
) where
    S: ByteFlow,
{
    let connecting = async {
        let addresses = finder.find(&target, Protocol::Tcp).await?;
        connect(&target, &addresses, finder).await
    };
    let connected = tokio::select! {
        connected = connecting => connected,
        () = poll_fn(|cx| flow.poll_given_up(cx)) => return,
    };
    match connected {
        Ok(connected) => {
            if let Err(error) = answer_and_relay(flow, connected, port).await {
                tracing::debug!(%error, "a stream ended early");
            }
        }
        Err(refusal) => refuse(flow, refusal).await,
    }
}

/// Reports to a stream's client why it is not connected.
pub(crate) async fn refuse<S>(mut flow: S, refusal: Refusal)
where
    S: ByteFlow,
{
    let answer = async {
        flow.write_all(&reply::encode(Err(refusal))).await?;
        flow.shutdown().await
    };
    if let Err(error) = answer.await {
        tracing::debug!(%error, "a refused stream ended early");
        return;
    }
    // Dropped now, the flow would be reset, and the reset might overtake the answer.
    let gone = async {
        let mut ignored = [0; 256];
        while flow.read(&mut ignored).await.is_ok_and(|read| read > 0) {}
    };
    let _ = timeout(REFUSED, gone).await;
}

async fn answer_and_relay<S>(
    mut flow: S,
    (connection, bound): (ResetOnDrop, SocketAddr),
    port: Port,
) -> io::Result<()>
where
    S: ByteFlow,
{
    flow.write_all(&reply::encode(Ok(bound))).await?;
    // What the target says is another object.
    flow.flush().await?;
    relay(connection, &mut flow).await?;
    port.wait();
    Ok(())
}

/// Connects to the first of `addresses` that answers.
async fn connect(
    target: &Target,
    addresses: &[SocketAddr],
    finder: &impl Find,
) -> Result<(ResetOnDrop, SocketAddr), Refusal> {
    let mut refusal = Refusal::Failed;
    let attempt = |address: SocketAddr| async move {
        match dial(address).await {
            // Become one of this host meanwhile, it was answered by a service of this host.
            Ok(_) if !finder.allows(target, address) => Err(Refusal::NotAllowed),
            Ok(connection) => {
                let bound = connection.0.local_addr().map_err(|_| Refusal::Failed)?;
                Ok((connection, bound))
            }
            Err(error) => {
                tracing::debug!(%target, %address, %error, "cannot connect");
                Err(Refusal::of_connect(&error))
            }
        }
    };
    let attempts = eyeballs::first(addresses, attempt, |failed| refusal = failed);
    match timeout(CONNECT, attempts).await {
        Ok(Some(connected)) => Ok(connected),
        Ok(None) => Err(refusal),
        Err(_) => Err(Refusal::TimedOut),
    }
}

/// Connects to one address. Given up on the way, the connection is reset: the target might have
/// accepted it already, and an orderly end would keep the port for as long as the target likes.
async fn dial(address: SocketAddr) -> io::Result<ResetOnDrop> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_zero_linger()?;
    ResetOnDrop::new(socket.connect(address).await?)
}

/// Exchanges datagrams with a target.
pub(crate) async fn datagrams<P: PacketFlow>(flow: P, target: Target, finder: &impl Find) {
    // A flow of messages has no first answer: refused ones are closed, and the reason is in the
    // log.
    let Ok(addresses) = finder.find(&target, Protocol::Udp).await else {
        return;
    };
    let Some(address) = addresses.first() else {
        return;
    };
    let allowed = || finder.still_allows(&target, *address);
    if let Err(error) = exchange(&flow, *address, allowed).await {
        tracing::debug!(%target, %error, "a flow of datagrams ended early");
    }
}

/// Carries datagrams both ways for as long as they are `allowed`: the address may become one of
/// this host.
async fn exchange<P: PacketFlow>(
    flow: &P,
    address: SocketAddr,
    allowed: impl Fn() -> bool,
) -> io::Result<()> {
    let any: IpAddr = match address.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    // Connected: the kernel drops what comes from anybody else.
    socket.connect(address).await?;
    roomy(&socket);
    let idle = Idle::new(UDP_IDLE);
    let outgoing = async {
        while let Some(message) = flow.recv().await {
            idle.touch();
            if !allowed() {
                break;
            }
            if let Err(error) = hand_over(&socket, &message).await {
                tracing::trace!(%error, "a datagram could not be sent");
            }
        }
        io::Result::Ok(())
    };
    let incoming = async {
        let mut buffer = vec![0; MAX_DATAGRAM];
        loop {
            match socket.recv(&mut buffer).await {
                Ok(length) => {
                    idle.touch();
                    send(flow, Bytes::copy_from_slice(&buffer[..length])).await?;
                }
                Err(error) => pause_after(error).await,
            }
        }
    };
    tokio::select! {
        result = outgoing => result,
        result = incoming => result,
        () = idle.expired() => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::places::Places;
    use super::super::ports::Ports;
    use super::super::resolve::tests::targets;
    use super::*;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
    use tokio::net::TcpListener;
    use tokio::time::{Instant, Sleep, sleep};

    /// A flow that its client resets after a while.
    struct ResetAfter(Pin<Box<Sleep>>);

    impl ByteFlow for ResetAfter {
        fn poll_given_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            self.0.as_mut().poll(cx)
        }
    }

    impl AsyncRead for ResetAfter {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for ResetAfter {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_connection_that_nobody_waits_for_any_more_is_reset() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let mut dialling = Box::pin(dial(listener.local_addr().unwrap()));
        let begun = poll_fn(|cx| Poll::Ready(dialling.as_mut().poll(cx))).await;
        let (mut accepted, _) = listener.accept().await.unwrap();
        drop((begun, dialling));
        let end = accepted.read_u8().await.unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::ConnectionReset);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reset_flow_waits_for_no_name() {
        let (targets, _) = targets(&[]);
        let target = Target::parse(Protocol::Tcp, "a.silent:80").unwrap();
        let after = Duration::from_millis(100);
        let start = Instant::now();
        let flow = ResetAfter(Box::pin(sleep(after)));
        let held = (Places::new(2, 1).take(None), Ports::new(2).take(None));
        let held = (held.0.unwrap(), held.1.unwrap());
        stream(flow, target, held, &targets.of(None)).await;
        assert_eq!(start.elapsed(), after);
    }
}
