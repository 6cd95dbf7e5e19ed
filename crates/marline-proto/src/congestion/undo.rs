//! What a reduction changed, until it is known whether the loss that caused it was one.

use marline_base::Instant;

/// The state before a reduction, while it may still prove to have been unfounded (RFC 4015, RFC
/// 9438 §4.9).
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo<S> {
    before: S,
    /// Bytes declared lost in this episode that have not turned up yet.
    missing: u64,
    /// Packets sent up to here belong to this episode.
    until: Instant,
    /// Packets sent up to here belong to an earlier one.
    after: Option<Instant>,
}

impl<S: Copy> Undo<S> {
    /// An episode begins `now` that changes what stood `before`; the one before it began at `last`.
    pub(super) fn new(before: S, now: Instant, last: Option<Instant>) -> Self {
        Self {
            before,
            missing: 0,
            until: now,
            after: last,
        }
    }

    /// This number of further bytes was declared lost.
    pub(super) fn lost(&mut self, bytes: u64) {
        self.missing = self.missing.saturating_add(bytes);
    }

    /// A packet of `bytes`, sent at `sent`, arrived after all; what stood before the episode if
    /// nothing of it is missing any more.
    pub(super) fn arrived(&mut self, bytes: u64, sent: Instant) -> Option<S> {
        if sent > self.until || self.after.is_some_and(|after| sent <= after) {
            return None;
        }
        self.missing = self.missing.saturating_sub(bytes);
        (self.missing == 0).then_some(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stood_before_returns_when_all_of_the_episode_has_arrived() {
        let ms = Instant::from_millis;
        let mut undo = Undo::new(7, ms(100), Some(ms(50)));
        undo.lost(30);
        undo.lost(10);
        assert_eq!(undo.arrived(40, ms(50)), None, "of the episode before");
        assert_eq!(undo.arrived(40, ms(101)), None, "of a later one");
        assert_eq!(undo.arrived(30, ms(51)), None, "some is missing");
        assert_eq!(undo.arrived(10, ms(100)), Some(7));
    }
}
