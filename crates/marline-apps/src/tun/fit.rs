//! The largest packet of a tunnel: what fits one datagram of every path. Paths come, go, narrow
//! and widen, so each end follows those that it sends on; the other end needs not be asked, for a
//! device takes larger packets than it sends.

use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use marline::endpoint::Session;
use tokio::time::sleep;

/// What IPv6 requires of every link (RFC 8200 section 5). On paths with smaller datagrams larger
/// packets travel in parts.
pub(super) const LEAST: u16 = 1280;
/// What the server's device takes, as an Ethernet does.
pub(super) const MOST: u16 = 1500;
/// How often the paths are looked at: packets that do not fit travel in two parts until then, which
/// costs a header each and loses nothing.
const LOOK: Duration = Duration::from_secs(1);

/// The largest packet that is sent (bytes), from [`LEAST`] on.
#[derive(Debug)]
pub(super) struct Mtu {
    now: AtomicU16,
    most: u16,
}

impl Mtu {
    /// This much now, and never more than `most`.
    pub(super) fn new(now: u16, most: u16) -> Self {
        Mtu {
            now: now.clamp(LEAST, most.max(LEAST)).into(),
            most,
        }
    }

    pub(super) fn get(&self) -> u16 {
        self.now.load(Ordering::Relaxed)
    }

    /// What `room` bytes in a datagram come to.
    fn of(&self, room: usize) -> u16 {
        let room = u16::try_from(room).unwrap_or(u16::MAX);
        room.clamp(LEAST, self.most.max(LEAST))
    }

    /// Follows the `room` of the paths, and has each change `applied`. Less room counts at once;
    /// more when it has stayed from one look to the next, because a search goes up by steps.
    pub(super) async fn follow<T, A: Future<Output = ()>>(
        &self,
        room: impl Fn() -> Option<usize>,
        mut applied: impl FnMut(u16) -> A,
    ) -> T {
        let mut before = self.get();
        loop {
            sleep(LOOK).await;
            let Some(found) = room().map(|room| self.of(room)) else {
                continue;
            };
            let now = self.get();
            if found < now || found > now && found == before {
                self.now.store(found, Ordering::Relaxed);
                applied(found).await;
            }
            before = found;
        }
    }
}

/// The longest message (bytes) that is sure to travel in one datagram on each of the session's
/// paths; `None` while it has none.
pub(crate) fn room(session: &Session) -> Option<usize> {
    /// Of a packet's header and frame (docs/PROTOCOL.md), or of a coded symbol's, however long a
    /// session lasts.
    const OVERHEAD: usize = 40;
    let paths = session.stats().paths;
    let least = paths.iter().map(|path| path.max_datagram).min()?;
    Some(least.saturating_sub(OVERHEAD))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn less_counts_at_once_and_more_when_it_stays() {
        let mtu = Mtu::new(1_394, MOST);
        let room = Cell::new(Some(1_394));
        let said = RefCell::new(Vec::new());
        let follow = mtu.follow(
            || room.get(),
            |new| {
                said.borrow_mut().push(new);
                std::future::ready(())
            },
        );
        let script = async {
            for (next, expected) in [
                (Some(1_300), 1_300),
                (None, 1_300),
                (Some(1_320), 1_300),
                (Some(1_350), 1_300),
                (Some(1_350), 1_350),
                (Some(9_000), 1_350),
                (Some(9_000), MOST),
                (Some(200), LEAST),
            ] {
                room.set(next);
                sleep(LOOK).await;
                assert_eq!(mtu.get(), expected, "{next:?}");
            }
        };
        let both = async {
            tokio::select! {
                biased;
                () = follow => {}
                () = script => {}
            }
        };
        timeout(Duration::from_secs(60), both).await.unwrap();
        assert_eq!(said.into_inner(), [1_300, 1_350, MOST, LEAST]);
    }

    #[test]
    fn no_end_asks_for_less_than_ipv6_needs() {
        assert_eq!(Mtu::new(0, 0).get(), LEAST);
        assert_eq!(Mtu::new(9_000, MOST).get(), MOST);
        assert_eq!(Mtu::new(1_400, 1_300).get(), 1_300);
    }
}
