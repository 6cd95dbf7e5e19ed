use super::{Arrival, Clock, MESSAGE_BYTES, message};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::UdpSocket;

/// What the receiver shows of itself while it runs.
#[derive(Debug, Default)]
pub(in crate::demo) struct Seen {
    /// One more than the highest sequence number that came.
    pub(in crate::demo) next: AtomicU64,
    /// Delay of the message that came last, nanoseconds.
    pub(in crate::demo) delay: AtomicU64,
}

/// Notes every message that comes to `socket`, for as long as it is polled; at most `limit` of
/// them.
///
/// `damaged` counts what came and is no message that was sent.
pub(in crate::demo) async fn receive(
    socket: UdpSocket,
    clock: Clock,
    limit: usize,
    arrivals: &mut Vec<Arrival>,
    damaged: &mut u64,
    seen: &Seen,
) {
    let mut buffer = [0; MESSAGE_BYTES + 1];
    loop {
        let received = socket.recv(&mut buffer).await;
        let now = clock.now();
        let Ok(length) = received else {
            continue;
        };
        match message::read(&buffer[..length]) {
            Some((sequence, sent)) if arrivals.len() < limit => {
                arrivals.push(Arrival {
                    sequence,
                    sent,
                    received: now,
                });
                seen.next.fetch_max(sequence + 1, Ordering::Relaxed);
                seen.delay
                    .store(now.saturating_sub(sent), Ordering::Relaxed);
            }
            _ => *damaged += 1,
        }
    }
}
