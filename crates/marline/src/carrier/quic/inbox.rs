//! What a server's socket has brought for one connection, until the connection's task takes it.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::task::Waker;

use quinn_proto::ConnectionEvent;

use crate::support::lock;

/// What a waiting packet costs besides its bytes (bytes, about): the event that holds it.
const OVERHEAD: usize = 256;

/// Packets of one connection, bounded; what finds no room is lost, as it may be on the way.
#[derive(Debug)]
pub(super) struct Inbox<T = ConnectionEvent> {
    waiting: Mutex<Waiting<T>>,
    most: usize,
}

#[derive(Debug)]
struct Waiting<T> {
    events: VecDeque<(T, usize)>,
    bytes: usize,
    /// Packets that were taken since it was empty.
    taken: usize,
    waker: Option<Waker>,
}

impl<T> Inbox<T> {
    /// For at most `most` bytes, and always one packet.
    pub(super) const fn new(most: usize) -> Self {
        Self {
            waiting: Mutex::new(Waiting {
                events: VecDeque::new(),
                bytes: 0,
                taken: 0,
                waker: None,
            }),
            most,
        }
    }

    /// Puts a packet of `bytes` in, and returns the waker of the task that waits for it.
    pub(super) fn put(&self, event: T, bytes: usize) -> Option<Waker> {
        let mut waiting = lock(&self.waiting);
        let bytes = bytes + OVERHEAD;
        if waiting.bytes > 0 && waiting.bytes + bytes > self.most {
            return None;
        }
        waiting.bytes += bytes;
        waiting.events.push_back((event, bytes));
        waiting.waker.take()
    }

    /// The next packet; if there is none, `waker` is woken when one comes.
    pub(super) fn take(&self, waker: &Waker) -> Option<T> {
        let mut waiting = lock(&self.waiting);
        match waiting.events.pop_front() {
            Some((event, bytes)) => {
                waiting.bytes -= bytes;
                waiting.taken += 1;
                Some(event)
            }
            None => {
                waiting.waker = Some(waker.clone());
                // A busy connection fills it each time; others leave no memory behind: a quarter of
                // 1 KiB a packet.
                let taken = std::mem::take(&mut waiting.taken);
                if taken * 4 <= waiting.events.capacity() {
                    waiting.events = VecDeque::new();
                }
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn packets_are_taken_in_order_and_what_finds_no_room_is_lost() {
        let inbox = Inbox::new(3 * (100 + OVERHEAD));
        for number in 0..5 {
            assert!(inbox.put(number, 100).is_none());
        }
        let taken: Vec<_> = std::iter::from_fn(|| inbox.take(Waker::noop())).collect();
        assert_eq!(taken, [0, 1, 2]);
        // One is taken in however long it is.
        inbox.put(9, 1 << 20);
        assert_eq!(inbox.take(Waker::noop()), Some(9));
    }

    #[test]
    fn few_packets_leave_no_memory_behind_and_many_keep_it() {
        let inbox = Inbox::new(1 << 20);
        let drained = |packets: usize| {
            for number in 0..packets {
                inbox.put(number, 1);
            }
            let taken = std::iter::from_fn(|| inbox.take(Waker::noop())).count();
            assert_eq!(taken, packets);
            lock(&inbox.waiting).events.capacity()
        };
        assert!(drained(64) >= 64 && drained(40) >= 64);
        assert_eq!(drained(1), 0);
        assert_eq!(drained(0), 0);
    }

    #[test]
    fn the_first_packet_after_it_was_empty_wakes_and_no_other() {
        let (inbox, count) = (Inbox::new(1 << 20), Arc::new(Count::default()));
        let waker = Waker::from(Arc::clone(&count));
        assert_eq!(inbox.take(&waker), None);
        for number in 0..3 {
            if let Some(waker) = inbox.put(number, 1) {
                waker.wake();
            }
        }
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }
}
