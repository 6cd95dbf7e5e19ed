//! What a connection sends.

use std::cell::Cell;
use std::sync::Arc;
use std::task::Context;
use std::time::Instant;

use quinn_proto::Transmit;

use super::readiness::Writable;
use super::socket::Socket;

/// Packets that one call of the kernel sends at most.
const SEGMENTS: usize = 32;

/// Bytes that one call sends at most: what an IP packet holds, which the kernel cuts.
const BYTES: usize = 65_000;

thread_local! {
    /// Where packets are made. One for each thread, so that a connection that sends nothing holds
    /// nothing, and the memory is in the cache still for the next one.
    static PACKETS: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Packets that the socket has not taken yet, and the wait until it does.
#[derive(Default)]
pub(super) struct Outgoing {
    blocked: Option<(Transmit, Vec<u8>)>,
    writable: Option<Writable>,
}

impl Outgoing {
    /// Sends all there is, or until the socket takes no more.
    pub(super) fn send(
        &mut self,
        now: Instant,
        proto: &mut quinn_proto::Connection,
        socket: &Arc<Socket>,
    ) {
        let mut packets = match self.blocked.take() {
            Some((transmit, packets)) => {
                // It fails only where it would block.
                if socket.send(&transmit, &packets).is_err() {
                    self.blocked = Some((transmit, packets));
                    return;
                }
                self.writable = None;
                packets
            }
            None => PACKETS.take(),
        };
        let most = socket.max_segments().min(SEGMENTS);
        loop {
            packets.clear();
            let size = usize::from(proto.current_mtu()).max(1);
            let segments = most.min(BYTES / size).max(1);
            let Some(transmit) = proto.poll_transmit(now, segments, &mut packets) else {
                break;
            };
            if socket.send(&transmit, &packets).is_err() {
                self.blocked = Some((transmit, packets));
                self.writable = Some(socket.writable());
                return;
            }
        }
        PACKETS.set(packets);
    }

    /// True if the socket may take again what it did not; else the task is woken when it does.
    pub(super) fn poll_unblocked(&mut self, cx: &mut Context<'_>) -> bool {
        let Some((_, socket)) = self.blocked.as_ref().zip(self.writable.as_mut()) else {
            return false;
        };
        socket.as_mut().poll(cx).is_ready()
    }

    /// Another socket takes what the one before did not.
    pub(super) fn forget_socket(&mut self) {
        self.blocked = None;
        self.writable = None;
    }
}
