//! What the window-based controllers share: initial and smallest window, and whether the window
//! was in use.

use marline_base::Instant;

use super::Ack;

/// RFC 9002 §7.2: ten datagrams, but no more than the larger of 14 720 bytes and two datagrams.
pub(super) fn initial_window(mtu: u64) -> u64 {
    (10 * mtu).min((2 * mtu).max(14_720))
}

/// RFC 9002 §7.2 (`kMinimumWindow`): two datagrams.
pub(super) const fn minimum_window(mtu: u64) -> u64 {
    2 * mtu
}

/// Whether the sender was held back lately.
///
/// A window that is not filled says nothing about the path, so it must not grow (RFC 9002 §7.8).
/// One bit from the latest send would be too little: the tail of a burst that did fill the window
/// is app-limited. So an acknowledgement counts if the sender was held back at any time since the
/// packet that it covers was sent, about the last round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    held_back: Option<Instant>,
}

impl Usage {
    pub(super) const fn on_sent(&mut self, now: Instant, app_limited: bool) {
        if !app_limited {
            self.held_back = Some(now);
        }
    }

    /// The window was in use. Half of it must have been in flight besides: a pacer holds back the
    /// first packets after a pause, when the window is as good as empty.
    pub(super) fn was_full(&self, ack: &Ack, window: u64) -> bool {
        self.held_back.is_some_and(|at| ack.sent <= at)
            && ack.prior_in_flight.saturating_mul(2) >= window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_rfc_9002() {
        assert_eq!(initial_window(1_200), 12_000);
        assert_eq!(initial_window(1_472), 14_720);
        assert_eq!(initial_window(1_500), 14_720);
        assert_eq!(initial_window(9_000), 18_000);
        assert_eq!(minimum_window(1_200), 2_400);
    }
}
