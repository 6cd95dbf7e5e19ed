//! Packets that overtake each other make what one round trip delivers a matter of luck.
//!
//! Of what arrives within an interval, some left before it began and was held up, and some left
//! after the others and was lucky. Where packets keep their order, both come out of one queue;
//! where delay is drawn again for each, their numbers vary by chance, and a windowed maximum keeps
//! the luckiest: 9.9 of 8 Mb/s with round trips of 60±20 ms. While the application limits, that
//! maximum does not age, and a queue grows that no estimate shows. The longer the interval, the
//! less its ends matter, so a sample of a flow that is limited so begins as long ago as it takes. A
//! flow that fills the path has the draft's: its maximum ages, and its probes last for one round
//! trip.
//!
//! Token buckets are of the same kind: after a pause they pass a burst at the speed of the wire,
//! and where round trips are short, as over two virtual cables and `tc-tbf`, a sample over one of
//! them shows 313 Mb/s of a link of 5. So a sample of such a flow, or of one that has only begun,
//! takes no less than [`FLOOR`].

use alloc::collections::VecDeque;

use marline_base::{Duration, Instant};

use super::DeliverySnapshot;

/// A sample takes this many times as long as packets are overtaken: what overtakes at either
/// end is then a quarter of it at most. A choice, not tuned.
const SPAN: u32 = 4;
/// A sample of a flow that the application limits takes at least this long. The longer it is, the
/// less counts what a bucket passes at once, and the later a link is known that really is quick.
/// Beside a bucket of `tc-tbf`'s usual 32 kbit a link of 5 Mb/s shows 6.6 at the most, and beside
/// one of 32 kB no more than 18 (`cargo test -p marline-sim --test it buckets`).
pub(super) const FLOOR: Duration = Duration::from_millis(20);
/// Snapshots that are kept for that time: the sample is exact to a sixteenth.
const KEPT: usize = 32;
/// One over the weight of a packet that is less late than those before it: the reach lasts for
/// a flight or two. A choice, not tuned.
const FADING: u32 = 64;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Overtaking {
    /// When the newest packet acknowledged so far was sent.
    newest: Instant,
    /// How much younger the newest packet is that overtakes another.
    reach: Duration,
    /// When the present flight began.
    flight: Instant,
    /// The delivery state of a span, oldest first.
    past: VecDeque<DeliverySnapshot>,
}

impl Overtaking {
    /// A packet sent then is acknowledged.
    pub(super) fn on_acked(&mut self, sent: Instant) {
        let by = self.newest.since(sent);
        self.newest = self.newest.max(sent);
        self.reach = self.reach.max(by) - self.reach.saturating_sub(by) / FADING;
    }

    /// A new flight begins `now`: what was long before it has nothing to do with it.
    pub(super) fn on_new_flight(&mut self, now: Instant) {
        self.flight = now;
        self.past.retain(|s| now.since(s.delivered_at) <= FLOOR);
    }

    fn span(&self) -> Duration {
        (self.reach * SPAN).max(FLOOR)
    }

    /// The delivery state is like this now, after an acknowledgement.
    pub(super) fn remember(&mut self, state: DeliverySnapshot) {
        let span = self.span();
        let age = |of: &DeliverySnapshot| state.delivered_at.since(of.delivered_at);
        while self.past.len() >= KEPT || self.past.get(1).is_some_and(|next| age(next) >= span) {
            self.past.pop_front();
        }
        let spacing = span / (KEPT as u32 / 2);
        if self.past.back().is_none_or(|last| age(last) >= spacing) {
            self.past.push_back(state);
        }
    }

    /// Where a sample begins that would begin at `state`: earlier, if the application limited any
    /// of what is remembered.
    pub(super) fn beginning(&self, now: Instant, state: DeliverySnapshot) -> DeliverySnapshot {
        let young = now.since(self.flight) < FLOOR;
        let app_limited = young || state.app_limited || self.past.iter().any(|s| s.app_limited);
        match self.past.front() {
            Some(&first) if app_limited && first.delivered < state.delivered => DeliverySnapshot {
                app_limited,
                ..first
            },
            _ => DeliverySnapshot {
                app_limited: young || state.app_limited,
                ..state
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use marline_base::{Duration, Instant, Rng};

    use crate::path::delivery::DeliverySampler;

    /// The samples (Mb/s, and are they bounds from below) of 5 s with a packet of 1000 bytes every
    /// millisecond, acknowledged after 30 to 30 + `jitter` ms.
    fn samples(jitter: f64, app_limited: bool) -> Vec<(f64, bool)> {
        let mut rng = Rng::new(1);
        let at = |ms: f64| Instant::from_nanos((1e6 * ms) as u64);
        // Sent first, or acknowledged.
        let mut events: Vec<(Instant, u64, bool)> = Vec::new();
        for number in 0..5_000 {
            let sent = number as f64;
            events.push((at(sent), number, true));
            let heard = sent + 30.0 + jitter * rng.uniform();
            events.push((at(heard), number, false));
        }
        events.sort_by_key(|&(at, number, is_sent)| (at, !is_sent, number));
        let mut sampler = DeliverySampler::new(Instant::ZERO);
        let mut snapshots = Vec::new();
        let mut in_flight = 0;
        let mut samples = Vec::new();
        for (now, number, is_sent) in events {
            if is_sent {
                if app_limited {
                    sampler.mark_app_limited(in_flight);
                }
                snapshots.push(sampler.on_sent(now, in_flight));
                in_flight += 1_000;
                continue;
            }
            in_flight -= 1_000;
            let sent = Instant::from_millis(number);
            sampler.on_acked(now, 1_000, sent, snapshots[number as usize]);
            let report = sampler.sample(Duration::from_millis(30)).unwrap();
            let sample = report
                .sample
                .map(|s| (s.rate.as_bps() as f64 / 1e6, s.app_limited));
            samples.extend(sample.filter(|_| number > 500));
        }
        samples
    }

    fn highest(samples: &[(f64, bool)]) -> f64 {
        samples.iter().fold(0.0, |most, s| s.0.max(most))
    }

    #[test]
    fn the_luckiest_of_packets_that_overtake_each_other_is_no_rate() {
        let limited = samples(40.0, true);
        assert!(limited.iter().all(|s| s.1));
        let most = highest(&limited);
        assert!((7.9..9.1).contains(&most), "{most}");
        let mean = limited.iter().map(|s| s.0).sum::<f64>() / limited.len() as f64;
        assert!((7.6..8.1).contains(&mean), "{mean}");
    }

    #[test]
    fn a_flow_that_fills_the_path_is_measured_over_one_round_trip() {
        let filled = samples(40.0, false);
        assert!(filled.iter().all(|s| !s.1));
        let most = highest(&filled);
        assert!(most > 9.6, "{most}");
    }

    #[test]
    fn in_order_nothing_changes() {
        let most = highest(&samples(0.0, true));
        assert!((7.99..8.01).contains(&most), "{most}");
    }
}
