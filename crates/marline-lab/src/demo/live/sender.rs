use super::{Clock, INTERVAL, MESSAGE_BYTES, message};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::UdpSocket;
use tokio::time::{Instant, interval};

/// What was sent. Times in nanoseconds of the shared clock.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::demo) struct Sent {
    /// Messages.
    pub(in crate::demo) messages: u64,
    /// When the first one left.
    pub(in crate::demo) first: u64,
    /// When the last one left.
    pub(in crate::demo) last: u64,
}

/// Sends messages through the connected `socket` from now to `end`; `count` follows their number.
///
/// What the system refuses counts as sent: to the receiver it is lost.
pub(in crate::demo) async fn send(
    socket: &UdpSocket,
    clock: Clock,
    end: Instant,
    count: &AtomicU64,
) -> Sent {
    let mut sent = Sent::default();
    let mut message = [0; MESSAGE_BYTES];
    // Ticks that were missed are made up for at once, so that the number of messages follows from
    // the time.
    let mut ticks = interval(INTERVAL);
    loop {
        message::write(sent.messages, &mut message);
        if ticks.tick().await >= end {
            return sent;
        }
        sent.last = clock.now();
        if sent.messages == 0 {
            sent.first = sent.last;
        }
        message::stamp(sent.last, &mut message);
        if let Err(error) = socket.send(&message).await {
            tracing::debug!(%error, "the system refused a live message");
        }
        sent.messages += 1;
        count.store(sent.messages, Ordering::Relaxed);
    }
}
