//! What the paths carry beyond what the flows need.

use alloc::collections::BTreeMap;

use marline_base::{Duration, Instant};

/// The bucket holds the surplus of so long (s).
pub(super) const BUCKET: f64 = 0.1;
/// A flow that plans no more for so long needs nothing.
const PAUSE: Duration = Duration::from_secs(1);

/// One bucket for all flows of a session, filled with what the paths carry beyond what all need
/// together: if each took all beyond its own need for surplus, it would be spent once a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Surplus {
    /// What each flow needs (bytes/s), and when it said so.
    needs: BTreeMap<u64, (f64, Instant)>,
    sum: f64,
    /// Number of the flow that came last.
    last: u64,
    swept: Instant,
    /// Bytes that redundancy may use.
    pub(super) tokens: f64,
    filled: Instant,
}

impl Surplus {
    /// A number for a flow that is new.
    pub(super) fn enter(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The flow of this number needs so much now. What all need together (bytes/s).
    pub(super) fn need(&mut self, now: Instant, flow: u64, need: f64) -> f64 {
        let before = self.needs.insert(flow, (need, now));
        self.sum += need - before.map_or(0.0, |(need, _)| need);
        if now.since(self.swept) >= PAUSE {
            self.swept = now;
            self.needs.retain(|_, (_, said)| now.since(*said) < PAUSE);
            self.sum = self.needs.values().map(|(need, _)| need).sum();
        }
        self.sum.max(need)
    }

    /// Time has passed in which the paths left a surplus, and this part might be `used` (bytes/s).
    /// What the bucket holds at the most.
    pub(super) fn fill(&mut self, now: Instant, surplus: f64, used: f64) -> f64 {
        let most = surplus * BUCKET;
        let is_first = self.filled == Instant::ZERO;
        let passed = now.since(self.filled).as_secs_f64().min(BUCKET);
        self.filled = now;
        let more = if is_first { most } else { used * passed };
        self.tokens = (self.tokens + more).clamp(-most, most);
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn needs_add_up_until_a_flow_pauses() {
        let mut surplus = Surplus::default();
        let [a, b] = [surplus.enter(), surplus.enter()];
        assert_eq!(surplus.need(AT(0), a, 100.0), 100.0);
        assert_eq!(surplus.need(AT(1), b, 50.0), 150.0);
        assert_eq!(surplus.need(AT(500), a, 80.0), 130.0);
        assert_eq!(surplus.need(AT(1_000), a, 80.0), 130.0);
        assert_eq!(surplus.need(AT(2_000), a, 80.0), 80.0, "b paused");
        assert_eq!(surplus.need(AT(2_001), b, 50.0), 130.0);
    }

    #[test]
    fn flows_that_ended_are_forgotten() {
        let mut surplus = Surplus::default();
        for ms in 0..10_000 {
            let flow = surplus.enter();
            surplus.need(AT(ms), flow, 1.0);
        }
        assert!(surplus.needs.len() <= 2_000, "{}", surplus.needs.len());
    }

    #[test]
    fn the_bucket_holds_what_a_tenth_of_a_second_leaves() {
        let mut surplus = Surplus::default();
        surplus.fill(AT(1_000), 10_000.0, 5_000.0);
        assert_eq!(surplus.tokens, 1_000.0, "full at first");
        surplus.tokens -= 1_500.0;
        surplus.fill(AT(1_020), 10_000.0, 5_000.0);
        assert_eq!(surplus.tokens, -400.0, "only a part may be used");
        surplus.fill(AT(1_030), 0.0, 0.0);
        assert_eq!(surplus.tokens, 0.0, "nothing is left, and nothing is owed");
    }
}
