//! A stream of bytes that travels as a flow of objects.
//!
//! The bytes are cut where they say that something ends, a TLS record or an HTTP response, and
//! otherwise where the writer pauses; no byte waits for an object to be complete. Objects are
//! numbered as they are cut; the far end puts them together by number and in no other way, and the
//! empty object is the end: a flow that ends without it was given up. So a wrong cut costs a plan
//! and never a byte. At most 4 MiB are sent ahead of what is known to have arrived, and at most 8
//! MiB wait for an earlier object; more means that the peer is broken. The `Priority` header of a
//! response (RFC 9218) sets the priority of the whole flow while that response lasts.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use marline_proto::FlowOptions;
use marline_proto::flow::{ObjectOptions, Received};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use marline::endpoint::{Objects, Units};

use crate::proxy::objects::{Cutter, Order};

/// Longest part of an object that is sent as one (bytes).
const PIECE: usize = 64 << 10;
/// What may be under way, not known to have arrived (bytes): what waits at the other end for an
/// earlier object is at most as much.
const AHEAD: u64 = 4 << 20;
/// What may wait here for an earlier object; more than any faithful end sends ahead.
const WAITING: usize = 8 << 20;

/// A reliable stream of bytes over a flow of objects, which are cut where the bytes say that
/// something ends: a TLS record, an HTTP response. It behaves as [`marline::endpoint::Stream`]
/// does.
///
/// Objects follow each other by their numbers, and the empty one is the end: a flow that ends
/// without it was given up.
#[derive(Debug)]
pub struct ObjectStream {
    units: Units,
    cutter: Cutter,
    /// The priority that the flow was opened with, and that which it has.
    priority: (u8, u8),
    /// What is written of the present object and not yet sent.
    pending: BytesMut,
    /// The present object, if parts of it were sent.
    object: Option<u64>,
    /// It ends with what is pending.
    ends: bool,
    finished: bool,
    order: Order,
    /// Bytes in order, to be read.
    ready: Bytes,
    /// Bytes that whoever read them keeps.
    outside: usize,
    /// What the session counts as unread of what is kept here and outside.
    retained: usize,
}

impl ObjectStream {
    pub(crate) fn new(objects: Objects) -> Self {
        let units = objects.into_units();
        units.limit(AHEAD);
        units.ignore_settled();
        let priority = units.priority().unwrap_or(FlowOptions::MIDDLE_PRIORITY);
        ObjectStream {
            units,
            cutter: Cutter::new(),
            priority: (priority, priority),
            pending: BytesMut::new(),
            object: None,
            ends: false,
            finished: false,
            order: Order::new(WAITING),
            ready: Bytes::new(),
            outside: 0,
            retained: 0,
        }
    }

    /// The flow's number in its session.
    pub fn id(&self) -> marline_proto::wire::FlowId {
        self.units.id()
    }

    /// Is nothing more to be read because the flow was given up, or the session is over?
    pub(crate) fn poll_given_up(&self, cx: &Context<'_>) -> Poll<()> {
        if self.order.is_over() {
            return Poll::Pending;
        }
        self.units.poll_given_up(cx)
    }

    /// Waits until bytes that are written can leave, and says how many go into one part.
    pub(crate) fn poll_room(&self, cx: &Context<'_>) -> Poll<usize> {
        self.units.poll_room(cx).map(|()| PIECE)
    }

    /// `bytes` of what was read are kept for somebody who does not take them yet.
    pub(crate) fn retain(&mut self, bytes: usize) {
        self.outside = bytes;
        self.count();
    }

    /// Has the session count what is here and was taken from it.
    fn count(&mut self) {
        let retained = self.order.waiting() + self.ready.len() + self.outside;
        if retained != self.retained {
            self.retained = retained;
            self.units.retain(retained as u64);
        }
    }

    /// Gives the flow the priority that the present object asks for.
    fn follow_urgency(&mut self) {
        let (opened, now) = self.priority;
        let wanted = self.cutter.urgency().unwrap_or(opened);
        if wanted != now {
            self.priority.1 = wanted;
            self.units.with(|session, _, flow| {
                // The flow may be over; then nobody cares.
                let _ = session.set_priority(flow, wanted);
            });
        }
    }

    /// Sends what is pending, or its end.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.pending.is_empty() && !self.ends {
            return Poll::Ready(Ok(()));
        }
        let options = ObjectOptions::default();
        let (pending, ends) = (&self.pending, self.ends);
        let mut object = self.object;
        let sent = self.units.poll_write(cx, |session, now, flow| {
            // A copy, because what does not fit is tried again.
            let data = Bytes::copy_from_slice(pending);
            match object {
                None if ends => session.send_object(now, flow, &data, &options).map(drop),
                _ => {
                    let number = match object {
                        Some(number) => number,
                        None => session.open_object(now, flow, &options)?,
                    };
                    object = Some(number);
                    session.write_object(now, flow, number, &data, ends)
                }
            }
        });
        self.object = object;
        ready!(sent)?;
        self.pending.clear();
        if self.ends {
            (self.object, self.ends) = (None, false);
        }
        Poll::Ready(Ok(()))
    }

    /// Takes what came, until there is something to read.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let reset = |text: String| io::Error::new(io::ErrorKind::ConnectionReset, text);
        loop {
            if !self.ready.is_empty() || self.order.is_over() {
                return Poll::Ready(Ok(()));
            }
            if let Some(data) = self.order.pop() {
                self.ready = data;
                continue;
            }
            if self.order.is_over() {
                continue;
            }
            match ready!(self.units.poll_recv(cx)) {
                Received::Piece(piece) => {
                    let pushed = self.order.push(piece.number, piece.data, piece.last);
                    pushed.map_err(|error| reset(error.to_string()))?;
                }
                Received::Gone { .. } | Received::Reset(_) => {
                    return Poll::Ready(Err(reset("the other end gave the stream up".into())));
                }
                Received::Finished | Received::Blocked => {
                    if let Some(closed) = self.units.is_closed() {
                        return Poll::Ready(Err(closed.into()));
                    }
                    return Poll::Ready(Err(reset("the stream ended before its end".into())));
                }
            }
        }
    }
}

impl AsyncRead for ObjectStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let ready = self.poll_ready(cx);
        if ready.is_pending() {
            self.count();
        }
        ready!(ready)?;
        loop {
            let part = self.ready.len().min(buf.remaining());
            buf.put_slice(&self.ready[..part]);
            self.ready.advance(part);
            if buf.remaining() == 0 {
                break;
            }
            match self.order.pop() {
                Some(data) => self.ready = data,
                None => break,
            }
        }
        self.count();
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ObjectStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.finished {
            let text = "the stream was finished";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::BrokenPipe, text)));
        }
        if self.ends || self.pending.len() >= PIECE {
            ready!(self.poll_send(cx))?;
        }
        let room = PIECE - self.pending.len();
        let shown = &data[..data.len().min(room)];
        if shown.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let cut = self.cutter.cut(shown);
        self.pending.extend_from_slice(&shown[..cut.take]);
        self.ends = cut.ends;
        self.follow_urgency();
        if (self.ends || self.pending.len() >= PIECE)
            && let Poll::Ready(Err(error)) = self.poll_send(cx)
        {
            return Poll::Ready(Err(error));
        }
        // What did not go goes before the next bytes are taken, or when the writer pauses.
        Poll::Ready(Ok(cut.take))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.ends && (!self.pending.is_empty() || self.object.is_some()) {
            self.ends = self.cutter.pause();
        }
        self.poll_send(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.finished {
            return Poll::Ready(Ok(()));
        }
        if !self.pending.is_empty() || self.object.is_some() {
            self.ends = true;
        }
        ready!(self.poll_send(cx))?;
        let options = ObjectOptions::default();
        ready!(self.units.poll_write(cx, |session, now, flow| {
            session.send_object(now, flow, &Bytes::new(), &options)
        }))?;
        self.finished = true;
        self.units.finish();
        Poll::Ready(Ok(()))
    }
}
