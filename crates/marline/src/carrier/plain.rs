//! UDP where the system lacks options that quinn's sockets ask for, as wine 8 does.
//!
//! A packet costs a call of the kernel each, packets may be fragmented on their way, so QUIC does
//! not look for larger ones, and an answer leaves by the address that the routing table picks.

use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Once};
use std::task::{Context, Poll, ready};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;

/// `WSAEMSGSIZE`, by which Windows says that a packet was longer than the buffer. Elsewhere its end
/// is cut off, which QUIC notices, and no error has this number.
const TOO_LONG: i32 = 10040;

/// A socket that sends and receives, and can do nothing else.
#[derive(Debug)]
pub(super) struct Plain(UdpSocket);

impl Plain {
    /// Takes a socket into the runtime, since this error keeps it from being more than that. The
    /// first time it is logged.
    ///
    /// # Errors
    /// The runtime's.
    pub(super) fn wrap(socket: std::net::UdpSocket, because: &io::Error) -> io::Result<Arc<Self>> {
        static SAID: Once = Once::new();
        SAID.call_once(|| {
            tracing::warn!(
                "this system lacks options of UDP sockets ({because}): packets are sent one by one \
                 and have no more than 1200 bytes"
            );
        });
        socket.set_nonblocking(true)?;
        Ok(Arc::new(Self(UdpSocket::from_std(socket)?)))
    }
}

impl AsyncUdpSocket for Plain {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable {
            socket: self,
            wait: None,
        })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        match self.0.try_send_to(transmit.contents, transmit.destination) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            // As if the network had lost it.
            Err(error) => {
                tracing::debug!(%error, to = %transmit.destination, "a packet was not sent");
                Ok(())
            }
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let (Some(buffer), Some(meta)) = (bufs.first_mut(), meta.first_mut()) else {
            return Poll::Ready(Ok(0));
        };
        loop {
            let mut packet = ReadBuf::new(buffer);
            match ready!(self.0.poll_recv_from(cx, &mut packet)) {
                Ok(addr) => {
                    let len = packet.filled().len();
                    *meta = RecvMeta {
                        addr,
                        len,
                        stride: len,
                        ecn: None,
                        dst_ip: None,
                    };
                    return Poll::Ready(Ok(1));
                }
                Err(error) if error.raw_os_error() == Some(TOO_LONG) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

type Wait = dyn Future<Output = io::Result<()>> + Send + Sync;

/// Waits until the socket takes packets; any number of these can, each for a task of its own.
struct Writable {
    socket: Arc<Plain>,
    wait: Option<Pin<Box<Wait>>>,
}

impl UdpPoller for Writable {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let wait = this.wait.get_or_insert_with(|| {
            let socket = Arc::clone(&this.socket);
            Box::pin(async move { socket.0.writable().await })
        });
        let writable = ready!(wait.as_mut().poll(cx));
        this.wait = None;
        Poll::Ready(writable)
    }
}

impl fmt::Debug for Writable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Writable").field(&self.socket).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[tokio::test]
    async fn packets_come_whole_with_their_sender_and_one_that_is_too_long_ends_nothing() {
        let socket = || {
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            Plain::wrap(socket, &io::ErrorKind::Unsupported.into()).unwrap()
        };
        let (here, there) = (socket(), socket());
        let to = there.local_addr().unwrap();
        let mut poller = Arc::clone(&here).create_io_poller();
        for len in [1200, 2000, 7] {
            poll_fn(|cx| poller.as_mut().poll_writable(cx))
                .await
                .unwrap();
            here.try_send(&Transmit {
                destination: to,
                ecn: None,
                contents: &vec![len as u8; len],
                segment_size: None,
                src_ip: None,
            })
            .unwrap();
        }
        let mut received = Vec::new();
        while received.last() != Some(&7) {
            let (mut buffer, mut meta) = ([0; 1500], [RecvMeta::default()]);
            let mut bufs = [IoSliceMut::new(&mut buffer)];
            let count = poll_fn(|cx| there.poll_recv(cx, &mut bufs, &mut meta)).await;
            assert_eq!(count.unwrap(), 1);
            let [RecvMeta { addr, len, .. }] = meta;
            assert_eq!(addr, here.local_addr().unwrap());
            assert_eq!(buffer[len - 1], received_byte(len));
            received.push(len);
        }
        received.retain(|len| *len < 1500);
        assert_eq!(received, [1200, 7]);
    }

    /// What the packet of that length was filled with; a longer one is cut to 1500 bytes.
    fn received_byte(len: usize) -> u8 {
        match len {
            1500 => 2000_usize as u8,
            len => len as u8,
        }
    }
}
