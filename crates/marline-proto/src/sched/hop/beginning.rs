//! Which blocks begin an interval.

use marline_base::{Duration, Instant};

/// Blocks offered within this time of each other begin together: what came of one interval is asked
/// for once.
const TOGETHER: Duration = Duration::from_millis(2);

/// The blocks that were offered or sent, by their numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beginning {
    /// The newest block, and when the latest interval began.
    newest: Option<(u64, Instant)>,
}

impl Beginning {
    /// Was this block, or a newer one, ever offered?
    pub(super) fn knows(&self, id: u64) -> bool {
        self.newest.is_some_and(|(newest, _)| newest >= id)
    }

    /// A block is offered; blocks come `every` seconds, as far as is known. Answers whether an
    /// interval begins with it.
    pub(super) fn offer(&mut self, id: u64, now: Instant, every: f64) -> bool {
        if let Some((before, at)) = self.newest {
            let gap = now.since(at);
            // A block that was refused and is offered again, smaller, is no new one; long after, it
            // is the next one.
            let again = before == id && gap.as_secs_f64() < 0.5 * every;
            // What is written nearly at once begins together, such as the pictures for two eyes.
            if gap < TOGETHER || again {
                self.newest = Some((id, at));
                return false;
            }
        }
        self.newest = Some((id, now));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: fn(u64) -> Instant = Instant::from_micros;

    #[test]
    fn what_is_offered_at_once_or_again_begins_one_interval() {
        let mut beginning = Beginning::default();
        assert!(!beginning.knows(0));
        assert!(beginning.offer(0, US(0), 0.0));
        assert!(beginning.knows(0) && !beginning.knows(1));
        // The other eye's.
        assert!(!beginning.offer(1, US(10), 25e-3));
        assert!(beginning.knows(1));
        assert!(beginning.offer(2, US(25_000), 25e-3));
        // Refused, and offered again, smaller.
        assert!(!beginning.offer(2, US(30_000), 25e-3));
        // Refused, and the next one in its place.
        assert!(beginning.offer(2, US(50_000), 25e-3));
    }

    #[test]
    fn many_small_blocks_are_not_distinguished() {
        let mut beginning = Beginning::default();
        let begin = |n: u64, beginning: &mut Beginning| beginning.offer(n, US(n * 1_000), 2e-3);
        let begun = (0..100).filter(|n| begin(*n, &mut beginning)).count();
        assert_eq!(begun, 50);
    }
}
