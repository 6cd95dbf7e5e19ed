//! A UDP socket as QUIC uses it: packets without a mark for explicit congestion notification (ECN,
//! RFC 3168), in batches where these arrive, and no more than is due to strangers.
//!
//! QUIC marks all packets as capable of ECN (ECT(0)). A router then marks in place of dropping, and
//! expects whoever sends to slow down; but the session does the congestion control, by losses and
//! delays, and learns of no marks.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quinn_udp::{BATCH_SIZE, Transmit, UdpSocketState};

use super::batch::Batch;
use super::plain;
use super::readiness::{Received, Watched, Writable};
use crate::carrier::batches::Singly;
use crate::carrier::strangers::Unproved;

/// A socket that sends and receives for one connection, or for all of a server.
#[derive(Debug)]
pub(in crate::carrier) struct Socket {
    io: Watched,
    /// What the system can do; `None` where it lacks options.
    state: Option<UdpSocketState>,
    local: SocketAddr,
    singly: Singly,
    /// What may be sent to those who have not proved their address, at a server.
    unproved: Option<Arc<Unproved>>,
    /// The network loses all that is sent in batches.
    #[cfg(test)]
    loses_batches: bool,
}

impl Socket {
    /// Takes a socket into the runtime.
    ///
    /// # Errors
    /// The runtime's.
    pub(in crate::carrier) fn new(
        socket: std::net::UdpSocket,
        singly: Singly,
        unproved: Option<Arc<Unproved>>,
    ) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into());
        if let Err(error) = &state {
            plain::warn(error);
        }
        Ok(Self {
            local: socket.local_addr()?,
            io: Watched::new(socket)?,
            state: state.ok(),
            singly,
            unproved,
            #[cfg(test)]
            loses_batches: false,
        })
    }

    /// The same in a network that may lose all batches, for tests.
    #[cfg(test)]
    pub(in crate::carrier) const fn losing_batches(mut self, loses: bool) -> Self {
        self.loses_batches = loses;
        self
    }

    pub(in crate::carrier) const fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// May packets be fragmented on their way?
    pub(super) fn may_fragment(&self) -> bool {
        self.state.as_ref().is_none_or(UdpSocketState::may_fragment)
    }

    /// Packets that one call sends at most.
    pub(super) fn max_segments(&self) -> usize {
        self.state
            .as_ref()
            .map_or(1, UdpSocketState::max_gso_segments)
    }

    /// Memory for packets of at most `longest` bytes.
    pub(super) fn batch(&self, longest: usize) -> Batch {
        let segments = self.state.as_ref().map_or(1, UdpSocketState::gro_segments);
        Batch::new(longest, segments)
    }

    /// Sends what QUIC has written into `contents`.
    ///
    /// # Errors
    /// It would block. Any other error counts as a loss on the way.
    pub(super) fn send(&self, transmit: &quinn_proto::Transmit, contents: &[u8]) -> io::Result<()> {
        let contents = &contents[..transmit.size];
        let to = transmit.destination;
        if let Some(unproved) = &self.unproved
            && !unproved.may_send(to, contents)
        {
            return Ok(());
        }
        let segment_size = transmit.segment_size.filter(|size| *size > 0);
        let batch = Transmit {
            destination: to,
            ecn: None,
            contents,
            segment_size,
            src_ip: transmit.src_ip,
        };
        match segment_size {
            Some(size) if self.singly.has(to) => self.send_singly(&batch, size),
            _ => self.send_batch(&batch),
        }
    }

    /// Sends a batch one by one.
    fn send_singly(&self, batch: &Transmit<'_>, size: usize) -> io::Result<()> {
        for (index, contents) in batch.contents.chunks(size).enumerate() {
            let sent = self.send_batch(&Transmit {
                contents,
                segment_size: None,
                ..*batch
            });
            match sent {
                Ok(()) => {}
                Err(error) if index == 0 => return Err(error),
                // Some have left, so the batch must not come again: the rest is lost, as it may
                // be on the way.
                Err(_) => break,
            }
        }
        Ok(())
    }

    fn send_batch(&self, batch: &Transmit<'_>) -> io::Result<()> {
        #[cfg(test)]
        if self.loses_batches && batch.segment_size.is_some() {
            return Ok(());
        }
        self.io.send(|socket| match &self.state {
            Some(state) => state.send(socket.into(), batch),
            None => plain::send(socket, batch.contents, batch.destination),
        })
    }

    /// Completes when it may take packets again.
    pub(super) fn writable(&self) -> Writable {
        self.io.writable()
    }

    /// Receives a batch. To be called when all packets of the last one have been taken out, by one
    /// task alone.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        batch: &mut Batch,
    ) -> Poll<io::Result<()>> {
        loop {
            let received = self.io.poll_recv(cx, |socket| {
                let full = batch.fill(|slots, metas| match &self.state {
                    Some(state) => state.recv(socket.into(), slots, metas),
                    None => {
                        metas[0] = plain::receive(socket, &mut slots[0])?;
                        Ok(1)
                    }
                })?;
                // Fewer than asked for.
                let emptied = BATCH_SIZE > 1 && self.state.is_some() && !full;
                Ok(Received { emptied })
            });
            match ready!(received) {
                // QUIC gives it no meaning, and anybody can send it.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(()) => break,
            }
        }
        if let Some(unproved) = &self.unproved {
            for meta in batch.metas() {
                unproved.received(meta.addr, meta.len);
            }
        }
        Poll::Ready(Ok(()))
    }
}
