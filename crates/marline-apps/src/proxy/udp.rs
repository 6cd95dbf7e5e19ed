//! UDP forwards: a local port whose datagrams end at one target behind the server. One flow for
//! each local address.

use super::asker::{AskedSocket, Asker};
use super::associations::{Associations, ReturnPath, carry_held};
use super::{Tasks, Tunnel};
use bytes::Bytes;
use marline_proto::FlowOptions;
use std::io;
use std::time::Duration;
use tokio::net::UdpSocket;

/// Largest UDP payload, bytes.
pub(crate) const MAX_DATAGRAM: usize = 65_535;

/// Receive buffer of a socket that local programs or targets send to. The usual default holds less
/// than a hundred datagrams of full size, fewer than arrive while a busy machine lets this process
/// wait.
const RECV_BUFFER: usize = 1 << 20;

/// After a failed receive: short enough that nothing overflows meanwhile ([`RECV_BUFFER`] at 800
/// Mb/s), and an error that stays takes no more than a hundred turns a second.
const RECV_PAUSE: Duration = Duration::from_millis(10);

/// Nothing was received: mostly an ICMP error about a datagram that was sent earlier. Others may
/// come, after a pause.
pub(crate) async fn pause_after(error: io::Error) {
    tracing::debug!(%error, "cannot receive a datagram");
    tokio::time::sleep(RECV_PAUSE).await;
}

/// Gives `socket` room for a burst, as far as the system grants it.
pub(crate) fn roomy(socket: &UdpSocket) {
    if let Err(error) = socket2::SockRef::from(socket).set_recv_buffer_size(RECV_BUFFER) {
        tracing::debug!(%error, "cannot enlarge a socket's receive buffer");
    }
}

/// Sends a datagram over a connected socket.
///
/// If nobody took an earlier datagram, the system reports that here and does not send this one, so
/// it is sent once more.
///
/// # Errors
/// The system does not send it.
pub(crate) async fn hand_over(socket: &UdpSocket, datagram: &[u8]) -> io::Result<()> {
    match socket.send(datagram).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            socket.send(datagram).await.map(drop)
        }
        sent => sent.map(drop),
    }
}

/// Carries every datagram to `socket` over flows opened with `options`, and the answers back, until
/// the tasks drain.
///
/// At most 1024 local addresses have a flow at a time; one that is quiet for two minutes is closed.
pub async fn forward<T: Tunnel>(socket: UdpSocket, tunnel: T, options: FlowOptions, tasks: Tasks) {
    let flows = Associations::new(tasks.clone());
    forward_held(socket, tunnel, options, &tasks, flows, usize::MAX, || {
        Some(())
    })
    .await;
}

/// Carries datagrams as [`forward`] does, over these `flows`, each for as long as it holds what
/// `hold` gives. A datagram is dropped where it and as many of its length as wait for its flow come
/// to more than `most` bytes: so what waits never comes to more than some times that.
pub(crate) async fn forward_held<T, H>(
    socket: UdpSocket,
    tunnel: T,
    options: FlowOptions,
    tasks: &Tasks,
    mut flows: Associations<Asker, Bytes>,
    most: usize,
    hold: impl Fn() -> Option<H> + Clone + Send + 'static,
) where
    T: Tunnel,
    H: Send + 'static,
{
    roomy(&socket);
    let socket = AskedSocket::new(socket);
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        let received = tokio::select! {
            () = tasks.draining() => return,
            received = socket.recv(&mut buffer) => received,
        };
        match received {
            Ok((length, asker)) if flows.waiting(&asker) * length > most => {
                tracing::trace!(%length, "a datagram was dropped: too much waits for its flow");
            }
            Ok((length, asker)) => {
                let datagram = Bytes::copy_from_slice(&buffer[..length]);
                flows
                    .send(&asker, datagram, |waiting| {
                        let back = ReturnPath {
                            socket: socket.clone(),
                            asker,
                            header: Bytes::new(),
                        };
                        let (tunnel, options) = (tunnel.clone(), options.clone());
                        carry_held(hold.clone(), tunnel, options, waiting, back)
                    })
                    .await;
            }
            Err(error) => pause_after(error).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_nobody_took_costs_no_later_datagram() {
        // Another program may have the port meanwhile: then with the next.
        for _ in 0..16 {
            let listener = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            drop(listener);
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            socket.connect(address).await.unwrap();
            hand_over(&socket, b"lost").await.unwrap();
            if let Ok(listener) = UdpSocket::bind(address).await {
                return the_next_arrives(&socket, &listener).await;
            }
        }
        panic!("every port was taken at once");
    }

    async fn the_next_arrives(socket: &UdpSocket, listener: &UdpSocket) {
        hand_over(socket, b"taken").await.unwrap();
        let mut buffer = [0; 16];
        let received = tokio::time::timeout(Duration::from_secs(10), listener.recv(&mut buffer));
        let length = received.await.expect("it came").unwrap();
        assert_eq!(&buffer[..length], b"taken");
    }
}
