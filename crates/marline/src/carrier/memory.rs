use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::{Carrier, CarrierEnd, CarrierKind, MAX_CLOSE_REASON, SendError, cut};

/// How a pair of [`MemoryCarrier`]s behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Datagrams that may wait in each direction before `send` answers `Full`, default 256.
    pub capacity: usize,
    /// Longest datagram (bytes), default 1362, which is that of a QUIC carrier.
    pub max_datagram: usize,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            capacity: 256,
            max_datagram: 1362,
        }
    }
}

/// One of two ends that hand datagrams to each other within the process: nothing is lost,
/// delayed or reordered.
#[derive(Debug)]
pub struct MemoryCarrier {
    shared: Arc<Mutex<Shared>>,
    /// 0 or 1: which end this is.
    end: usize,
    config: MemoryConfig,
}

#[derive(Debug, Default)]
struct Shared {
    /// `queues[e]` holds what end `e` is to receive.
    queues: [VecDeque<Bytes>; 2],
    readers: [Option<Waker>; 2],
    writers: [Option<Waker>; 2],
    /// Which end closed the pair, and why.
    closed: Option<(usize, u32, String)>,
}

impl MemoryCarrier {
    /// Two ends that are connected to each other.
    pub fn pair(config: MemoryConfig) -> (Self, Self) {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let end = |end| Self {
            shared: Arc::clone(&shared),
            end,
            config: config.clone(),
        };
        (end(0), end(1))
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    const fn peer(&self) -> usize {
        1 - self.end
    }

    fn addr(end: usize) -> SocketAddr {
        // Ports 1 and 2 of loopback: distinguishes the ends in logs, and no socket has them.
        (Ipv4Addr::LOCALHOST, end as u16 + 1).into()
    }
}

impl Shared {
    fn end_seen_by(&self, end: usize) -> Option<CarrierEnd> {
        self.closed.as_ref().map(|(by, code, reason)| {
            if *by == end {
                CarrierEnd::Local
            } else {
                CarrierEnd::Peer {
                    code: (*code).into(),
                    reason: reason.clone(),
                }
            }
        })
    }
}

impl Carrier for MemoryCarrier {
    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<Bytes>,
        limit: usize,
    ) -> Poll<Result<usize, CarrierEnd>> {
        let (end, peer) = (self.end, self.peer());
        let mut shared = self.lock();
        let count = shared.queues[end].len().min(limit);
        if count > 0 {
            out.extend(shared.queues[end].drain(..count));
            if let Some(waker) = shared.writers[peer].take() {
                waker.wake();
            }
            return Poll::Ready(Ok(count));
        }
        if let Some(why) = shared.end_seen_by(end) {
            return Poll::Ready(Err(why));
        }
        shared.readers[end] = Some(cx.waker().clone());
        Poll::Pending
    }

    fn send(&mut self, datagram: Bytes) -> Result<(), SendError> {
        if datagram.len() > self.config.max_datagram {
            return Err(SendError::TooLarge {
                len: datagram.len(),
                max: self.config.max_datagram,
            });
        }
        let peer = self.peer();
        let mut shared = self.lock();
        if let Some(why) = shared.end_seen_by(self.end) {
            return Err(SendError::Ended(why));
        }
        if shared.queues[peer].len() >= self.config.capacity {
            return Err(SendError::Full(datagram));
        }
        shared.queues[peer].push_back(datagram);
        if let Some(waker) = shared.readers[peer].take() {
            waker.wake();
        }
        Ok(())
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (end, peer) = (self.end, self.peer());
        let mut shared = self.lock();
        if shared.closed.is_some() || shared.queues[peer].len() < self.config.capacity {
            return Poll::Ready(());
        }
        shared.writers[end] = Some(cx.waker().clone());
        Poll::Pending
    }

    fn max_datagram(&mut self) -> usize {
        self.config.max_datagram
    }

    fn remote_addr(&self) -> SocketAddr {
        Self::addr(self.peer())
    }

    fn local_addr(&self) -> SocketAddr {
        Self::addr(self.end)
    }

    fn kind(&self) -> CarrierKind {
        CarrierKind::Memory
    }

    fn close(&mut self, code: u32, reason: &str) {
        let end = self.end;
        let mut shared = self.lock();
        if shared.closed.is_some() {
            return;
        }
        shared.closed = Some((end, code, cut(reason, MAX_CLOSE_REASON).to_owned()));
        for waker in [0, 1].map(|e| [shared.readers[e].take(), shared.writers[e].take()]) {
            waker.into_iter().flatten().for_each(Waker::wake);
        }
    }

    fn poll_drained(&mut self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

impl Drop for MemoryCarrier {
    fn drop(&mut self) {
        self.close(0, "");
    }
}
