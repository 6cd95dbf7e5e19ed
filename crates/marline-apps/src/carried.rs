//! What carries a program's connection: a stream, or objects that behave as one.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use marline::endpoint::Stream;

use super::object_stream::ObjectStream;
use crate::proxy::ByteFlow;

/// A reliable stream of bytes over all paths of a session, whichever kind of flow it is.
#[derive(Debug)]
pub enum Carried {
    /// A stream.
    Stream(Stream),
    /// Objects.
    Objects(Box<ObjectStream>),
}

impl Carried {
    /// The flow's number in its session.
    pub fn id(&self) -> marline_proto::wire::FlowId {
        match self {
            Carried::Stream(stream) => stream.id(),
            Carried::Objects(stream) => stream.id(),
        }
    }
}

impl ByteFlow for Carried {
    fn poll_given_up(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Carried::Stream(stream) => stream.poll_given_up(cx),
            Carried::Objects(stream) => stream.poll_given_up(cx),
        }
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        match self {
            Carried::Stream(stream) => stream.poll_room(cx),
            Carried::Objects(stream) => stream.poll_room(cx),
        }
    }

    fn retain(&mut self, bytes: usize) {
        match self {
            Carried::Stream(stream) => stream.retain(bytes),
            Carried::Objects(stream) => stream.retain(bytes),
        }
    }
}

impl AsyncRead for Carried {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Carried::Stream(stream) => Pin::new(stream).poll_read(cx, buf),
            Carried::Objects(stream) => Pin::new(&mut **stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Carried {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Carried::Stream(stream) => Pin::new(stream).poll_write(cx, data),
            Carried::Objects(stream) => Pin::new(&mut **stream).poll_write(cx, data),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Carried::Stream(stream) => Pin::new(stream).poll_flush(cx),
            Carried::Objects(stream) => Pin::new(&mut **stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Carried::Stream(stream) => Pin::new(stream).poll_shutdown(cx),
            Carried::Objects(stream) => Pin::new(&mut **stream).poll_shutdown(cx),
        }
    }
}
