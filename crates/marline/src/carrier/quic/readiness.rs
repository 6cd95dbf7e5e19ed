//! When a UDP socket can be read and written.
//!
//! On Unix the runtime is asked to report packets that come alone. It would otherwise be woken for
//! each packet that has left, too, as that makes room to send, which is hardly ever waited for.

use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// Waits until a socket takes packets; any number of these can, each for a task of its own.
pub(super) type Writable = Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// What a call has received, and whether it left nothing behind: to say so saves the call that
/// would find the socket empty. What comes after it makes the socket readable again.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) emptied: bool,
}

#[cfg(unix)]
pub(super) use unix::Watched;
#[cfg(windows)]
pub(super) use windows::Watched;

#[cfg(unix)]
mod unix {
    use super::*;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// A socket that does not block, with the runtime's notices of packets that come.
    #[derive(Debug)]
    pub(in super::super) struct Watched(AsyncFd<UdpSocket>);

    #[expect(
        deprecated,
        reason = "its successor is unsafe, for descriptors that change; here they do not"
    )]
    fn register(socket: UdpSocket, interest: Interest) -> io::Result<AsyncFd<UdpSocket>> {
        AsyncFd::with_interest(socket, interest)
    }

    impl Watched {
        pub(in super::super) fn new(socket: UdpSocket) -> io::Result<Self> {
            socket.set_nonblocking(true)?;
            register(socket, Interest::READABLE).map(Self)
        }

        fn get(&self) -> &UdpSocket {
            self.0.get_ref()
        }

        /// Calls `receive` when something may have come, until it does not find the socket empty.
        pub(in super::super) fn poll_recv(
            &self,
            cx: &mut Context<'_>,
            mut receive: impl FnMut(&UdpSocket) -> io::Result<Received>,
        ) -> Poll<io::Result<()>> {
            loop {
                let mut ready = ready!(self.0.poll_read_ready(cx))?;
                match receive(self.get()) {
                    Ok(received) => {
                        if received.emptied {
                            ready.clear_ready();
                        }
                        return Poll::Ready(Ok(()));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
        }

        /// Calls `send`, which fails only where it would block.
        pub(in super::super) fn send(
            &self,
            send: impl FnOnce(&UdpSocket) -> io::Result<()>,
        ) -> io::Result<()> {
            send(self.get())
        }

        /// Completes when it takes packets again.
        pub(in super::super) fn writable(&self) -> Writable {
            // By a descriptor of its own, for as long as that takes.
            let other = self.get().try_clone();
            let other = other.and_then(|it| register(it, Interest::WRITABLE));
            Box::pin(async move {
                match other {
                    // An error shows when something is sent.
                    Ok(other) => drop(other.writable().await),
                    // No descriptor is left: a moment later it may take packets, or there is one.
                    Err(_) => tokio::time::sleep(std::time::Duration::from_millis(1)).await,
                }
            })
        }
    }
}

#[cfg(windows)]
mod windows {
    use super::*;
    use std::sync::Arc;
    use tokio::io::Interest;

    /// A socket that does not block, with the runtime's notices. The runtime's own socket does the
    /// bookkeeping.
    #[derive(Debug)]
    pub(in super::super) struct Watched {
        notices: Arc<tokio::net::UdpSocket>,
        socket: UdpSocket,
    }

    impl Watched {
        pub(in super::super) fn new(socket: UdpSocket) -> io::Result<Self> {
            socket.set_nonblocking(true)?;
            let notices = Arc::new(tokio::net::UdpSocket::from_std(socket.try_clone()?)?);
            Ok(Self { notices, socket })
        }

        /// Calls `receive` when something may have come, until it does not find the socket empty.
        pub(in super::super) fn poll_recv(
            &self,
            cx: &mut Context<'_>,
            mut receive: impl FnMut(&UdpSocket) -> io::Result<Received>,
        ) -> Poll<io::Result<()>> {
            loop {
                ready!(self.notices.poll_recv_ready(cx))?;
                let mut done = false;
                let received = self.notices.try_io(Interest::READABLE, || {
                    let received = receive(&self.socket)?;
                    done = true;
                    match received.emptied {
                        true => Err(io::ErrorKind::WouldBlock.into()),
                        false => Ok(()),
                    }
                });
                match received {
                    _ if done => return Poll::Ready(Ok(())),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    received => return Poll::Ready(received),
                }
            }
        }

        /// Calls `send`, which fails only where it would block.
        pub(in super::super) fn send(
            &self,
            send: impl FnOnce(&UdpSocket) -> io::Result<()>,
        ) -> io::Result<()> {
            self.notices
                .try_io(Interest::WRITABLE, || send(&self.socket))
        }

        /// Completes when it takes packets again.
        pub(in super::super) fn writable(&self) -> Writable {
            let notices = Arc::clone(&self.notices);
            Box::pin(async move {
                // An error shows when something is sent.
                let _ = notices.writable().await;
            })
        }
    }
}
