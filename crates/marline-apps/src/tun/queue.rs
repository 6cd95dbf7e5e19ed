//! What waits for one conversation's flow: bounded, and kept short by CoDel (RFC 8289), so that
//! programs inside the tunnel learn of its rate by losses before its delay grows.

use super::joined::without_first;
use bytes::Bytes;
use marline_base::Instant;
use marline_link::{Codel, CodelControl};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant as RealInstant;
use tokio::sync::Notify;

/// Most messages that wait: several of the bursts of up to 64 KiB that the kernel hands over at
/// once, a packet each.
const MOST: usize = 512;
/// Most bytes of them: as many packets of the usual size, and no more where packets are joined.
const MOST_BYTES: u64 = 512 * 1500;

/// Packets in order, judged when they leave.
#[derive(Debug)]
struct Line {
    codel: CodelControl,
    waiting: VecDeque<Waiting>,
    bytes: u64,
    closed: bool,
}

#[derive(Debug)]
struct Waiting {
    packet: Bytes,
    came: Instant,
    ahead: u64,
}

impl Line {
    fn new() -> Self {
        Line {
            codel: CodelControl::new(Codel::default()),
            waiting: VecDeque::new(),
            bytes: 0,
            closed: false,
        }
    }

    /// False when the packet was dropped.
    fn push(&mut self, packet: Bytes, now: Instant) -> bool {
        let length = packet.len() as u64;
        if self.closed || self.waiting.len() >= MOST || self.bytes + length > MOST_BYTES {
            return false;
        }
        let ahead = self.bytes;
        self.bytes += length;
        self.waiting.push_back(Waiting {
            packet,
            came: now,
            ahead,
        });
        true
    }

    fn pop(&mut self, now: Instant) -> Option<Bytes> {
        while let Some(Waiting {
            packet,
            came,
            ahead,
        }) = self.waiting.pop_front()
        {
            self.bytes -= packet.len() as u64;
            if !self.codel.drops(came, now, packet.len() as u32, ahead) {
                return Some(packet);
            }
            // CoDel means one packet. All that are joined may be all that a connection has under
            // way, and it would wait for its timer.
            if let Some(rest) = without_first(&packet) {
                return Some(rest);
            }
        }
        None
    }
}

/// A queue with one end for the tasks that add and one for the task that takes.
#[derive(Debug)]
pub(super) struct Queue {
    line: Mutex<Line>,
    news: Notify,
    begun: RealInstant,
}

impl Queue {
    pub(super) fn new() -> Self {
        Queue {
            line: Mutex::new(Line::new()),
            news: Notify::new(),
            begun: RealInstant::now(),
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Instant {
        Instant::ZERO + self.begun.elapsed()
    }

    /// Adds a packet; one for which there is no room is dropped.
    pub(super) fn push(&self, packet: Bytes) {
        let now = self.now();
        if self.line().push(packet, now) {
            self.news.notify_one();
        } else {
            tracing::trace!("a packet was dropped: its conversation's queue is full");
        }
    }

    /// Adds packets that came at once, in their order; without room they are dropped.
    pub(super) fn push_all(&self, packets: impl Iterator<Item = Bytes>) {
        let now = self.now();
        let mut line = self.line();
        let taken = packets
            .map(|packet| line.push(packet, now))
            .fold(false, |any, taken| any | taken);
        drop(line);
        if taken {
            self.news.notify_one();
        } else {
            tracing::trace!("packets were dropped: their conversation's queue is full");
        }
    }

    /// Takes no more packets; those that wait are still handed out.
    pub(super) fn close(&self) {
        self.line().closed = true;
        self.news.notify_one();
    }

    /// Does nothing wait?
    pub(super) fn is_empty(&self) -> bool {
        self.line().waiting.is_empty()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.line().closed
    }

    /// The next packet, or `None` when the queue is closed and empty. For one task; cancel safe.
    pub(super) async fn pop(&self) -> Option<Bytes> {
        loop {
            {
                let now = self.now();
                let mut line = self.line();
                match line.pop(now) {
                    Some(packet) => return Some(packet),
                    None if line.closed => return None,
                    None => {}
                }
            }
            self.news.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::joined::tests::{joined, tcp};
    use super::super::packet::TCP;
    use super::super::packet::tests::v4;
    use super::super::tcp::ACK;
    use super::*;
    use marline_base::Duration;

    fn packet() -> Bytes {
        Bytes::from_static(&[0; 1000])
    }

    #[test]
    fn what_is_taken_at_once_is_never_dropped() {
        let mut line = Line::new();
        for number in 0..5000 {
            let now = Instant::ZERO + Duration::from_millis(number);
            assert!(line.push(packet(), now));
            assert!(line.pop(now).is_some());
        }
    }

    #[test]
    fn the_queue_is_bounded_and_its_delay_falls() {
        let mut line = Line::new();
        let (mut refused, mut dropped) = (0, 0);
        // One packet leaves in each millisecond, and 5 % more come, from a sender that does not
        // slow down: without drops 400 would wait in the end.
        for number in 0..8000 {
            let now = Instant::ZERO + Duration::from_millis(number);
            for _ in 0..1 + u32::from(number % 20 == 0) {
                refused += u32::from(!line.push(packet(), now));
            }
            let before = line.waiting.len();
            line.pop(now);
            dropped += before - line.waiting.len() - 1;
        }
        assert!(line.waiting.len() < 100, "{}", line.waiting.len());
        assert!(dropped > 300, "{dropped}");
        assert_eq!(refused, 0);
        for _ in 0..2 * MOST {
            line.push(packet(), Instant::ZERO + Duration::from_secs(8));
        }
        assert_eq!(line.waiting.len(), MOST);
        assert_eq!(line.bytes, MOST as u64 * 1000);
    }

    #[test]
    fn of_joined_packets_one_is_dropped_at_a_time() {
        const SEGMENT: usize = 1_000;
        let message = joined(&v4(TCP, &tcp(ACK, 0, 6 * SEGMENT)), SEGMENT as u16);
        let message = Bytes::from(message);
        let mut line = Line::new();
        let (mut taken, mut whole, mut shorter) = (0, 0, 0);
        // One leaves in each millisecond, and half as many more come.
        for number in 0..600 {
            let now = Instant::ZERO + Duration::from_millis(number);
            for _ in 0..1 + number % 2 {
                taken += u32::from(line.push(message.clone(), now));
            }
            match line.pop(now).unwrap().len() {
                length if length == message.len() => whole += 1,
                length if length == message.len() - SEGMENT => shorter += 1,
                length => panic!("{length} bytes"),
            }
        }
        assert!(shorter > 3, "{shorter}");
        assert_eq!(whole + shorter + line.waiting.len() as u32, taken);
        // Never more bytes than as many packets by themselves.
        while line.push(message.clone(), Instant::ZERO) {}
        assert!(line.bytes <= MOST_BYTES && line.waiting.len() < MOST);
    }

    #[tokio::test]
    async fn a_closed_queue_hands_out_what_it_has() {
        let queue = Queue::new();
        queue.push(packet());
        queue.close();
        queue.push(packet());
        assert!(queue.pop().await.is_some());
        assert_eq!(queue.pop().await, None);
    }
}
