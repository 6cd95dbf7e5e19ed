//! Which segments are overdue (RFC 8985 §6): those sent a certain time earlier than one that has
//! arrived that reordering does not explain it.

use marline_base::{Duration, Instant};

use super::rtt::Rtt;

/// §6.2 step 3: segments delivered beyond a gap that end the patience while no reordering is known.
const DUP_THRESHOLD: u64 = 3;
/// §6.2 step 4: recoveries for which a widened window lasts.
const PERSIST: u32 = 16;
/// §6.2 step 4: the window grows by quarters of the smallest round-trip time ...
const QUARTER: u32 = 4;
/// ... and Linux's counter of them ends here.
const MAX_MULTIPLIER: u32 = 255;

/// The most recently sent among the delivered segments, `RACK.segment`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Newest {
    /// Number of its transmission.
    pub(super) transmission: u64,
    /// `RACK.rtt`.
    pub(super) rtt: Duration,
}

/// What is known of reordering.
#[derive(Clone, Debug)]
pub(super) struct Rack {
    pub(super) newest: Option<Newest>,
    /// `RACK.fack`: end of the highest delivered segment.
    highest: u64,
    /// `RACK.reordering_seen`.
    reordered: bool,
    /// `RACK.reo_wnd_mult`.
    multiplier: u32,
    /// `RACK.reo_wnd_persist`: recoveries until the multiplier falls back to one.
    persist: u32,
    /// `RACK.dsack_round`: the multiplier grows again when everything before this is acknowledged.
    round: u64,
}

impl Rack {
    pub(super) const fn new() -> Self {
        Self {
            newest: None,
            highest: 0,
            reordered: false,
            multiplier: 1,
            persist: 0,
            round: 0,
        }
    }

    /// §6.2 steps 2 and 3: a segment that ends at `end` was delivered. `rtt` counts from its last
    /// transmission.
    pub(super) fn on_delivered(
        &mut self,
        transmission: u64,
        rtt: Duration,
        end: u64,
        retransmitted: bool,
    ) {
        if self
            .newest
            .is_none_or(|newest| transmission > newest.transmission)
        {
            self.newest = Some(Newest { transmission, rtt });
        }
        if end > self.highest {
            self.highest = end;
        } else if !retransmitted {
            self.reordered = true;
        }
    }

    /// §6.2 step 4: a retransmission proved needless. `unacked` and `next` are SND.UNA and SND.NXT.
    pub(super) fn on_needless(&mut self, unacked: u64, next: u64) {
        if unacked >= self.round {
            self.round = next;
            self.multiplier = (self.multiplier + 1).min(MAX_MULTIPLIER);
        }
        self.persist = PERSIST;
    }

    /// §6.2 step 4: a recovery is over.
    pub(super) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiplier = 1;
        }
    }

    /// §6.2 step 4: `RACK.reo_wnd`. `beyond`: segments delivered beyond a gap.
    pub(super) fn window(&self, recovering: bool, beyond: u64, rtt: &Rtt) -> Duration {
        if !self.reordered && (recovering || beyond >= DUP_THRESHOLD) {
            return Duration::ZERO;
        }
        let min = rtt.min().unwrap_or_default();
        let srtt = rtt.smoothed().unwrap_or_default();
        (min * self.multiplier / QUARTER).min(srtt)
    }

    /// §6.2 step 5: when a segment sent at `sent` is lost, if something sent later has arrived.
    pub(super) fn deadline(
        &self,
        transmission: u64,
        sent: Instant,
        window: Duration,
    ) -> Option<Instant> {
        let newest = self.newest.filter(|n| n.transmission > transmission)?;
        Some(sent + newest.rtt + window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn rtt() -> Rtt {
        let mut rtt = Rtt::new(Instant::ZERO);
        rtt.sample(ms(40));
        rtt.sample_min(Instant::ZERO, ms(40));
        rtt
    }

    #[test]
    fn without_reordering_three_later_arrivals_are_enough() {
        let mut rack = Rack::new();
        rack.on_delivered(5, ms(40), 6_000, false);
        assert_eq!(rack.window(false, 2, &rtt()), ms(10));
        assert_eq!(rack.window(false, 3, &rtt()), ms(0));
        assert_eq!(rack.window(true, 1, &rtt()), ms(0));
        let sent = Instant::from_millis(100);
        assert_eq!(rack.deadline(4, sent, ms(10)), Some(sent + ms(50)));
        assert_eq!(rack.deadline(5, sent, ms(10)), None);
        assert_eq!(rack.deadline(6, sent, ms(10)), None);
    }

    #[test]
    fn only_an_original_shows_reordering() {
        let mut rack = Rack::new();
        rack.on_delivered(5, ms(40), 6_000, false);
        rack.on_delivered(7, ms(40), 3_000, true);
        assert_eq!(rack.window(true, 3, &rtt()), ms(0));
        rack.on_delivered(2, ms(60), 2_000, false);
        assert_eq!(rack.window(true, 3, &rtt()), ms(10));
        assert_eq!(rack.newest.unwrap().transmission, 7);
    }

    #[test]
    fn needless_retransmissions_widen_once_a_round_trip_for_sixteen_recoveries() {
        let mut rack = Rack::new();
        rack.on_delivered(5, ms(40), 6_000, false);
        rack.on_delivered(2, ms(60), 2_000, false);
        rack.on_needless(6_000, 9_000);
        rack.on_needless(8_000, 9_500);
        assert_eq!(rack.window(false, 0, &rtt()), ms(20));
        rack.on_needless(9_000, 12_000);
        assert_eq!(rack.window(false, 0, &rtt()), ms(30));
        rack.on_needless(12_000, 15_000);
        rack.on_needless(15_000, 19_000);
        // No more than a smoothed round-trip time.
        assert_eq!(rack.window(false, 0, &rtt()), ms(40));
        for _ in 0..15 {
            rack.on_recovered();
        }
        assert_eq!(rack.window(false, 0, &rtt()), ms(40));
        rack.on_recovered();
        assert_eq!(rack.window(false, 0, &rtt()), ms(10));
    }
}
