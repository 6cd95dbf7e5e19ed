//! A TCP connection and a flow, joined.

use std::cell::RefCell;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::{ByteFlow, keepalive};

/// Most bytes that a direction holds between its reader and its writer. 8 KiB, the usual default,
/// costs a third of the speed; more than this was not faster
/// (`cargo bench -p marline-cli --bench goodput`).
const BUFFER: usize = 64 << 10;

thread_local! {
    /// What all relays of a thread read into. Most of it is written at once; one buffer for each
    /// connection would be made, cleared and given back for every few packets.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; BUFFER].into_boxed_slice());
}

/// A connection that is reset when it is dropped, unless it was finished: whatever ends a relay
/// early, the other side must not take what it got for the whole.
#[derive(Debug)]
pub(super) struct ResetOnDrop(pub(super) TcpStream);

impl ResetOnDrop {
    /// # Errors
    /// When the socket does not take the option, which does not happen on a living one.
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        keepalive::enable(&stream)?;
        // close() then sends RST. shutdown() is not affected: a half-close is still a FIN.
        stream.set_zero_linger()?;
        Ok(ResetOnDrop(stream))
    }

    /// Both directions ended in order: let close() deliver what the kernel still holds.
    fn finished(self) -> io::Result<()> {
        socket2::SockRef::from(&self.0).set_linger(None::<Duration>)
    }
}

/// Copies both ways until both directions have ended, keeping half-closes. An error on one side is
/// a reset on the other: the caller drops the flow, we drop the connection.
pub(super) async fn relay<S>(mut connection: ResetOnDrop, flow: &mut S) -> io::Result<(u64, u64)>
where
    S: ByteFlow,
{
    let (mut up, mut down) = (Way::default(), Way::default());
    let copied = std::future::poll_fn(|cx| {
        // What a flow does not take stays in its socket, what a target does not take in its flow,
        // whose memory is counted.
        let to_flow = up.poll(cx, &mut connection.0, flow, |flow, cx| flow.poll_room(cx))?;
        let writable = connection.0.poll_write_ready(cx)?.is_ready();
        let to_connection = match writable || down.over {
            true => down.poll(cx, flow, &mut connection.0, any)?,
            false => Poll::Pending,
        };
        flow.retain(down.held.len() - down.written);
        if to_connection.is_pending() && flow.poll_given_up(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Poll::Ready(io::Result::Ok((ready!(to_flow), ready!(to_connection))))
    });
    let copied = pin!(copied).await?;
    connection.finished()?;
    Ok(copied)
}

/// A writer that says nothing about its room.
fn any<W>(_: &mut W, _: &mut Context<'_>) -> Poll<usize> {
    Poll::Ready(BUFFER)
}

/// One direction of a relay. It has a buffer only while it holds something: most connections of a
/// busy host are idle.
#[derive(Debug, Default)]
struct Way {
    /// What was read and the writer did not take.
    held: Vec<u8>,
    /// What of `held` was written.
    written: usize,
    flushed: bool,
    ended: bool,
    over: bool,
    bytes: u64,
}

impl Way {
    fn holds_some(&self) -> bool {
        self.written < self.held.len()
    }

    /// It has passed on all that it held.
    fn let_go(&mut self) {
        self.held = Vec::new();
        self.written = 0;
    }

    /// Copies what there is, but reads no more than the writer has `room` for; ready with the count
    /// of bytes when the reader has ended and the writer knows.
    fn poll<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
        mut room: impl FnMut(&mut W, &mut Context<'_>) -> Poll<usize>,
    ) -> io::Result<Poll<u64>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let begun = self.bytes;
        while !self.over {
            // Others on this thread have their turn after each buffer.
            if self.bytes > begun && !self.holds_some() {
                cx.waker().wake_by_ref();
                return Ok(Poll::Pending);
            }
            if self.holds_some() {
                let rest = &self.held[self.written..];
                let Poll::Ready(written) = Pin::new(&mut *writer).poll_write(cx, rest) else {
                    self.held.drain(..self.written);
                    self.held.shrink_to_fit();
                    self.written = 0;
                    return Ok(Poll::Pending);
                };
                self.written += taken(written)?;
                self.flushed = false;
                if !self.holds_some() {
                    self.let_go();
                }
                continue;
            }
            if self.ended {
                match Pin::new(&mut *writer).poll_shutdown(cx) {
                    Poll::Ready(done) => done?,
                    Poll::Pending => return Ok(Poll::Pending),
                }
                self.over = true;
                break;
            }
            let Poll::Ready(most) = room(writer, cx) else {
                return Ok(Poll::Pending);
            };
            let passed = SCRATCH.with_borrow_mut(|scratch| {
                let scratch = &mut scratch[..most.min(BUFFER)];
                self.poll_pass(cx, reader, writer, scratch)
            })?;
            if passed.is_pending() {
                // The reader pauses: what was written is not held back for more.
                if !self.flushed {
                    match Pin::new(&mut *writer).poll_flush(cx) {
                        Poll::Ready(done) => done?,
                        Poll::Pending => return Ok(Poll::Pending),
                    }
                    self.flushed = true;
                }
                return Ok(Poll::Pending);
            }
        }
        Ok(Poll::Ready(self.bytes))
    }

    /// Reads into `scratch` and writes that; keeps what the writer does not take. Pending when the
    /// reader has nothing.
    fn poll_pass<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
        scratch: &mut [u8],
    ) -> io::Result<Poll<()>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let mut buffer = ReadBuf::new(scratch);
        let Poll::Ready(read) = Pin::new(reader).poll_read(cx, &mut buffer) else {
            return Ok(Poll::Pending);
        };
        read?;
        let mut rest = buffer.filled();
        self.ended = rest.is_empty();
        self.bytes += rest.len() as u64;
        while !rest.is_empty() {
            let Poll::Ready(written) = Pin::new(&mut *writer).poll_write(cx, rest) else {
                self.held = rest.to_vec();
                self.written = 0;
                break;
            };
            rest = &rest[taken(written)?..];
            self.flushed = false;
        }
        Ok(Poll::Ready(()))
    }
}

/// How much a writer took, which has to be something.
fn taken(written: io::Result<usize>) -> io::Result<usize> {
    match written? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        taken => Ok(taken),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Carried;
    use crate::options::flow_to;
    use crate::proxy::{Accept, IncomingFlow, Tunnel};
    use bytes::Bytes;
    use marline::Session;
    use marline::loopback::{Loopback, loopback};
    use marline_proto::FlowOptions;
    use marline_proto::wire::FlowKind;
    use std::future::poll_fn;
    use std::net::Ipv4Addr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket};
    use tokio::task::JoinHandle;
    use tokio::time::{sleep, timeout};

    /// Longer than anything takes that goes well.
    const LIMIT: Duration = Duration::from_secs(60);

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let dialled = TcpStream::connect(listener.local_addr().unwrap());
        let (dialled, accepted) = tokio::join!(dialled, listener.accept());
        (dialled.unwrap(), accepted.unwrap().0)
    }

    #[tokio::test]
    async fn bytes_and_half_closes_pass_both_ways() {
        let (mut outside, inside) = pair().await;
        let (mut far, mut near) = tokio::io::duplex(1_000);
        let relayed = tokio::spawn(async move {
            let connection = ResetOnDrop::new(inside).unwrap();
            relay(connection, &mut near).await
        });
        let sent: Vec<u8> = (0..300_000_u32).map(|i| i as u8).collect();
        let upload = async {
            outside.write_all(&sent).await.unwrap();
            outside.shutdown().await.unwrap();
            let mut back = Vec::new();
            outside.read_to_end(&mut back).await.unwrap();
            back
        };
        let echo = async {
            let mut got = Vec::new();
            far.read_to_end(&mut got).await.unwrap();
            far.write_all(&got[..100_000]).await.unwrap();
            far.shutdown().await.unwrap();
            got
        };
        let (back, got) = tokio::join!(upload, echo);
        assert!(got == sent && back == sent[..100_000]);
        assert_eq!(relayed.await.unwrap().unwrap(), (300_000, 100_000));
    }

    /// The same with the smallest buffers that the kernel has.
    async fn narrow_pair() -> (TcpStream, TcpStream) {
        let (far, near) = (TcpSocket::new_v4().unwrap(), TcpSocket::new_v4().unwrap());
        near.set_send_buffer_size(1).unwrap();
        far.set_recv_buffer_size(1).unwrap();
        near.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = near.local_addr().unwrap();
        let listener = near.listen(1).unwrap();
        let (dialled, accepted) = tokio::join!(far.connect(address), listener.accept());
        (dialled.unwrap(), accepted.unwrap().0)
    }

    /// A flow of a session, and what keeps the session alive.
    struct Flow {
        near: Carried,
        far: Carried,
        ends: [Session; 2],
        _session: Loopback,
    }

    impl Flow {
        async fn open(objects: bool) -> Flow {
            let mut session = loopback().await.unwrap();
            let scheduler = objects.then(|| "sos".parse().unwrap());
            let kind = match objects {
                true => FlowKind::Objects,
                false => FlowKind::Stream,
            };
            let options = FlowOptions {
                scheduler,
                ..flow_to(kind, Bytes::from_static(b"relayed"))
            };
            let mut near = session.client.open_stream(options).await.unwrap();
            near.write_all(b"?").await.unwrap();
            near.flush().await.unwrap();
            let incoming = session.incomings.next_flow().await.unwrap();
            let IncomingFlow::Stream(mut far) = incoming.flow else {
                panic!("a stream was opened");
            };
            assert_eq!(far.read_u8().await.unwrap(), b'?');
            Flow {
                near,
                far,
                ends: [session.session.clone(), session.incomings.handle().clone()],
                _session: session,
            }
        }
    }

    fn relayed(inside: TcpStream, mut near: Carried) -> JoinHandle<io::Result<(u64, u64)>> {
        tokio::spawn(async move { relay(ResetOnDrop::new(inside).unwrap(), &mut near).await })
    }

    #[tokio::test]
    async fn a_complete_response_arrives_however_slowly_it_is_read() {
        for objects in [false, true] {
            for length in [100_000, 150_000, 200_000, 250_000] {
                let Flow {
                    near,
                    mut far,
                    ends: _,
                    _session,
                } = Flow::open(objects).await;
                let (mut outside, inside) = narrow_pair().await;
                outside.shutdown().await.unwrap();
                let response: Vec<u8> = (0..length).map(|i| (i / 7) as u8).collect();
                let relayed = relayed(inside, near);
                let sent = response.clone();
                tokio::spawn(async move {
                    far.write_all(&sent).await.unwrap();
                    far.shutdown().await.unwrap();
                    far.read_to_end(&mut Vec::new()).await.unwrap();
                });
                let (mut got, mut piece) = (Vec::new(), [0; 1_000]);
                loop {
                    let read = timeout(LIMIT, outside.read(&mut piece)).await.unwrap();
                    match read.expect("no reset") {
                        0 => break,
                        length => got.extend_from_slice(&piece[..length]),
                    }
                    tokio::task::yield_now().await;
                }
                assert!(got == response, "{} of {length} bytes", got.len());
                let relayed = timeout(LIMIT, relayed).await.unwrap();
                assert_eq!(relayed.unwrap().unwrap(), (0, length));
            }
        }
    }

    #[tokio::test]
    async fn a_flow_whose_end_was_read_is_not_given_up() {
        for objects in [false, true] {
            let Flow {
                mut near,
                mut far,
                ends: [client, _],
                _session,
            } = Flow::open(objects).await;
            near.shutdown().await.unwrap();
            far.write_all(b"all").await.unwrap();
            far.shutdown().await.unwrap();
            far.read_to_end(&mut Vec::new()).await.unwrap();
            let mut all = Vec::new();
            near.read_to_end(&mut all).await.unwrap();
            assert_eq!(all, b"all");
            // A stream is over then; objects are when their flow is dropped.
            while !objects && !client.stats().flows.is_empty() {
                sleep(Duration::from_millis(5)).await;
            }
            let given_up = poll_fn(|cx| Poll::Ready(near.poll_given_up(cx))).await;
            assert!(given_up.is_pending(), "objects: {objects}");
        }
    }

    #[tokio::test]
    async fn a_flow_that_is_given_up_ends_although_its_target_takes_nothing() {
        for objects in [false, true] {
            let Flow {
                near,
                mut far,
                ends: [client, _],
                _session,
            } = Flow::open(objects).await;
            let (mut outside, inside) = narrow_pair().await;
            // Full until nothing moves any more.
            for _ in 0..10 {
                while inside.try_write(&[7; 1_000]).is_ok() {}
                sleep(Duration::from_millis(5)).await;
            }
            far.write_all(b"never read").await.unwrap();
            far.flush().await.unwrap();
            while client.stats().flows.iter().all(|flow| flow.unread == 0) {
                sleep(Duration::from_millis(5)).await;
            }
            let relayed = relayed(inside, near);
            sleep(Duration::from_millis(20)).await;
            assert!(!relayed.is_finished());
            client.give_up_stalled();
            let ended = timeout(LIMIT, relayed).await.expect("it is over").unwrap();
            assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
            let mut rest = Vec::new();
            let read = timeout(LIMIT, outside.read_to_end(&mut rest)).await;
            let read = read.unwrap();
            assert_eq!(read.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        }
    }

    #[tokio::test]
    async fn what_a_target_does_not_take_counts_as_unread() {
        for objects in [false, true] {
            let Flow {
                near,
                mut far,
                ends: [client, _],
                _session,
            } = Flow::open(objects).await;
            let (mut outside, inside) = narrow_pair().await;
            outside.shutdown().await.unwrap();
            let relayed = relayed(inside, near);
            // Less than the relay reads at once, and more than the sockets take.
            far.write_all(&[7; 40_000]).await.unwrap();
            far.shutdown().await.unwrap();
            far.read_to_end(&mut Vec::new()).await.unwrap();
            let unread = || client.stats().flows.iter().map(|flow| flow.unread).sum();
            timeout(LIMIT, async {
                while !(10_000..40_000).contains::<u64>(&unread()) {
                    sleep(Duration::from_millis(5)).await;
                }
            })
            .await
            .expect("what is not passed on is counted");
            // For the session both directions are over, and have been for some time.
            sleep(Duration::from_millis(50)).await;
            assert!(unread() > 10_000, "objects: {objects}");
            let mut got = Vec::new();
            outside.read_to_end(&mut got).await.unwrap();
            assert_eq!(got.len(), 40_000);
            timeout(LIMIT, relayed).await.unwrap().unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn an_idle_direction_holds_no_buffer() {
        let (mut reader, mut feeder) = tokio::io::duplex(1_000);
        let (mut writer, mut drain) = tokio::io::duplex(10);
        let mut way = Way::default();
        let mut poll = async |way: &mut Way| {
            std::future::poll_fn(|cx| Poll::Ready(way.poll(cx, &mut reader, &mut writer, any)))
                .await
                .unwrap()
        };
        assert!(poll(&mut way).await.is_pending());
        assert_eq!(way.held.capacity(), 0);
        feeder.write_all(&[7; 30]).await.unwrap();
        assert!(poll(&mut way).await.is_pending());
        assert!(way.held.capacity() <= 30, "no more than what waits");
        let mut read = [0; 10];
        for _ in 0..3 {
            drain.read_exact(&mut read).await.unwrap();
            assert!(poll(&mut way).await.is_pending());
        }
        assert_eq!(way.held.capacity(), 0);
    }
}
