use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use marline_proto::congestion::CarrierState;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsStream;
use tokio_util::io::poll_read_buf;

use super::frame::{self, Frame};
use super::kernel::Kernel;
use super::{LINGER, TcpLink, farewell};
use crate::carrier::strangers::Place;
use crate::carrier::{Carrier, CarrierEnd, CarrierKind, MAX_CLOSE_REASON, SendError, printable};

/// Bytes that wait to be encrypted before `send` answers `Full`; TLS and the kernel hold as much
/// again and 64 KiB.
const SEND_BUFFER: usize = 32 << 10;
/// Encrypted bytes that TLS may hold while the kernel takes none.
const TLS_BUFFER: usize = 16 << 10;
/// Bytes read at once.
const READ: usize = 16 << 10;

/// A carrier that is one TLS connection over TCP.
///
/// The kernel answers for retransmission and congestion control, and reports how the latter stands.
/// Everything arrives, and in order, so one lost segment delays what follows it: QUIC is better
/// wherever UDP passes.
pub struct TcpCarrier {
    /// `None` once it is closed.
    stream: Option<Box<TlsStream<TcpStream>>>,
    kernel: Option<Kernel>,
    remote: SocketAddr,
    local: SocketAddr,
    max_datagram: usize,
    outgoing: BytesMut,
    incoming: BytesMut,
    idle: Duration,
    heard: Instant,
    timer: Pin<Box<Sleep>>,
    ended: Option<CarrierEnd>,
    leaving: Option<JoinHandle<()>>,
    _place: Option<Arc<Place>>,
}

impl fmt::Debug for TcpCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpCarrier")
            .field("remote", &self.remote)
            .field("max_datagram", &self.max_datagram)
            .field("outgoing", &self.outgoing.len())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl TcpCarrier {
    /// Its first bytes are `first`: the last words of the handshake.
    pub(in super::super) fn new(link: TcpLink, first: &[u8]) -> Self {
        let mut stream = Box::new(link.stream);
        match &mut *stream {
            TlsStream::Client(tls) => tls.get_mut().1.set_buffer_limit(Some(TLS_BUFFER)),
            TlsStream::Server(tls) => tls.get_mut().1.set_buffer_limit(Some(TLS_BUFFER)),
        }
        let mut carrier = Self {
            kernel: Kernel::of(stream.get_ref().0),
            stream: Some(stream),
            remote: link.remote,
            local: link.local,
            max_datagram: link.max_datagram,
            outgoing: BytesMut::from(first),
            incoming: BytesMut::new(),
            idle: link.idle,
            heard: Instant::now(),
            timer: Box::pin(tokio::time::sleep(link.idle)),
            ended: None,
            leaving: None,
            _place: link.place,
        };
        // The peer waits for the handshake's end, whenever the first datagram comes.
        let _ = carrier.poll_flush(&mut Context::from_waker(Waker::noop()));
        carrier
    }

    /// The kernel's smoothed round-trip time, once it has one.
    pub fn rtt(&self) -> Option<Duration> {
        Kernel::rtt(self.stream.as_ref()?.get_ref().0)
    }

    fn end(&mut self, end: CarrierEnd) -> CarrierEnd {
        self.stream = None;
        self.ended.get_or_insert(end).clone()
    }

    /// Takes what has been received off the stream, at most `limit` datagrams.
    fn take_frames(&mut self, out: &mut Vec<Bytes>, limit: usize) -> usize {
        let mut count = 0;
        while count < limit && self.ended.is_none() {
            match frame::take(&mut self.incoming) {
                Ok(Some(Frame::Datagram(datagram))) => {
                    out.push(datagram);
                    count += 1;
                }
                Ok(None) => break,
                Ok(Some(Frame::Close { code, reason })) => {
                    let code = code.into();
                    self.end(CarrierEnd::Peer { code, reason });
                }
                Err(end) => {
                    self.end(end);
                }
            }
        }
        count
    }

    /// Ready when nothing has come for the whole idle limit.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let limit = self.heard + self.idle;
            if limit <= Instant::now() {
                return Poll::Ready(());
            }
            self.timer.as_mut().reset(limit);
        }
    }
}

impl Carrier for TcpCarrier {
    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<Bytes>,
        limit: usize,
    ) -> Poll<Result<usize, CarrierEnd>> {
        loop {
            if let Some(end) = &self.ended {
                return Poll::Ready(Err(end.clone()));
            }
            match self.take_frames(out, limit) {
                0 if self.ended.is_some() => continue,
                0 => {}
                count => return Poll::Ready(Ok(count)),
            }
            let Some(stream) = &mut self.stream else {
                return Poll::Ready(Err(self.end(CarrierEnd::Local)));
            };
            self.incoming.reserve(READ);
            match poll_read_buf(Pin::new(stream), cx, &mut self.incoming) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(self.end(CarrierEnd::Reset))),
                Poll::Ready(Ok(_)) => self.heard = Instant::now(),
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Err(self.end(ended(&error))));
                }
                Poll::Pending => {
                    ready!(self.poll_idle(cx));
                    return Poll::Ready(Err(self.end(CarrierEnd::Idle)));
                }
            }
        }
    }

    fn send(&mut self, datagram: Bytes) -> Result<(), SendError> {
        let len = datagram.len();
        if let Some(end) = &self.ended {
            return Err(SendError::Ended(end.clone()));
        }
        if len > self.max_datagram {
            let max = self.max_datagram;
            return Err(SendError::TooLarge { len, max });
        }
        if self.outgoing.len() + frame::OVERHEAD + len > SEND_BUFFER {
            return Err(SendError::Full(datagram));
        }
        // An empty datagram says nothing and has no frame.
        if len > 0 {
            frame::put_datagram(&mut self.outgoing, &datagram);
        }
        Ok(())
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(());
        };
        let mut stream = Pin::new(stream);
        let result = loop {
            if self.outgoing.is_empty() {
                break ready!(stream.as_mut().poll_flush(cx));
            }
            match ready!(stream.as_mut().poll_write(cx, &self.outgoing)) {
                Ok(count) => self.outgoing.advance(count),
                Err(error) => break Err(error),
            }
        };
        if let Err(error) = result {
            // `poll_recv` reports, unless the peer's last words are still to be read there.
            if self.incoming.is_empty() {
                tracing::debug!("{}: {error}", self.remote);
            }
            self.outgoing.clear();
            cx.waker().wake_by_ref();
        }
        Poll::Ready(())
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _ = self.poll_flush(cx);
        let room = self.outgoing.len() + frame::OVERHEAD + self.max_datagram <= SEND_BUFFER;
        match room || self.stream.is_none() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn max_datagram(&mut self) -> usize {
        self.max_datagram
    }

    fn remote_addr(&self) -> SocketAddr {
        self.remote
    }

    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn kind(&self) -> CarrierKind {
        CarrierKind::Tcp
    }

    fn congestion(&mut self) -> Option<CarrierState> {
        let stream = self.stream.as_ref()?.get_ref().0;
        self.kernel.as_mut()?.state(stream, self.outgoing.len())
    }

    fn close(&mut self, code: u32, reason: &str) {
        let Some(stream) = self.stream.take() else {
            return;
        };
        self.ended = Some(CarrierEnd::Local);
        // Frames that were begun have to be finished, so all that waits goes before the close.
        let mut words = std::mem::take(&mut self.outgoing);
        frame::put_close(&mut words, code, reason);
        self.leaving = farewell(*stream, words, LINGER);
    }

    fn poll_drained(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.leaving {
            Some(leaving) => Pin::new(leaving).poll(cx).map(|_| self.leaving = None),
            None => Poll::Ready(()),
        }
    }
}

impl Drop for TcpCarrier {
    fn drop(&mut self) {
        self.close(0, "");
    }
}

/// Why a connection ended, by the error that says so.
fn ended(error: &io::Error) -> CarrierEnd {
    match error.kind() {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::UnexpectedEof => CarrierEnd::Reset,
        io::ErrorKind::TimedOut => CarrierEnd::Idle,
        _ => CarrierEnd::Protocol(printable(
            error.to_string().as_bytes(),
            2 * MAX_CLOSE_REASON,
        )),
    }
}
