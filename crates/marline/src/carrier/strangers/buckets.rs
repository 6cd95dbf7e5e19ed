use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

/// Token buckets, one a key. Those that are full again are forgotten, so memory is bounded by those
/// in use.
#[derive(Debug)]
pub(super) struct Buckets<K> {
    /// Tokens that are missing, as of a time.
    missing: BTreeMap<K, (u32, Instant)>,
    burst: u32,
    refill: Duration,
    most: usize,
}

impl<K: Copy + Ord> Buckets<K> {
    /// Buckets of `burst` tokens, to which one is added every `refill`; at most `most` of them, at
    /// least one.
    pub(super) fn new(burst: u32, refill: Duration, most: usize) -> Self {
        Self {
            missing: BTreeMap::new(),
            burst: burst.max(1),
            refill: refill.max(Duration::from_nanos(1)),
            most: most.max(1),
        }
    }

    /// Is there a token?
    pub(super) fn has(&self, key: K) -> bool {
        self.missing_of(key, Instant::now()).0 < self.burst
    }

    /// Takes a token; false if there is none.
    pub(super) fn take(&mut self, key: K) -> bool {
        let now = Instant::now();
        let (missing, since) = self.missing_of(key, now);
        if missing == self.burst {
            return false;
        }
        self.make_room(key, now);
        self.missing.insert(key, (missing + 1, since));
        true
    }

    /// Puts a token back.
    pub(super) fn give_back(&mut self, key: K) {
        if let Some((missing, _)) = self.missing.get_mut(&key) {
            *missing = missing.saturating_sub(1);
        }
    }

    /// What is missing now, and since when the next token is due.
    fn missing_of(&self, key: K, now: Instant) -> (u32, Instant) {
        self.missing
            .get(&key)
            .map_or((0, now), |&(missing, since)| {
                self.refilled(missing, since, now)
            })
    }

    fn refilled(&self, missing: u32, since: Instant, now: Instant) -> (u32, Instant) {
        let more = (now - since).as_nanos() / self.refill.as_nanos();
        match u32::try_from(more) {
            Ok(more) if more < missing => (missing - more, since + self.refill * more),
            _ => (0, now),
        }
    }

    /// Forgets full buckets, and else the fullest, when there is no room for one more.
    fn make_room(&mut self, key: K, now: Instant) {
        if self.missing.len() < self.most || self.missing.contains_key(&key) {
            return;
        }
        let mut missing = std::mem::take(&mut self.missing);
        missing.retain(|_, (missing, since)| {
            (*missing, *since) = self.refilled(*missing, *since, now);
            *missing > 0
        });
        if missing.len() >= self.most {
            let fullest = missing.iter().min_by_key(|(_, (missing, _))| *missing);
            if let Some(key) = fullest.map(|(&key, _)| key) {
                missing.remove(&key);
            }
        }
        self.missing = missing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    const REFILL: Duration = Duration::from_millis(100);

    fn taken(buckets: &mut Buckets<u32>, key: u32) -> usize {
        (0..100).take_while(|_| buckets.take(key)).count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_is_emptied_refilled_and_given_back_to() {
        let mut buckets = Buckets::new(5, REFILL, 9);
        assert_eq!(taken(&mut buckets, 1), 5);
        assert!(!buckets.has(1) && buckets.has(2));
        advance(REFILL * 5 / 2).await;
        assert_eq!(taken(&mut buckets, 1), 2);
        // The half that was left over counts.
        advance(REFILL / 2).await;
        assert_eq!(taken(&mut buckets, 1), 1);
        buckets.give_back(1);
        assert_eq!(taken(&mut buckets, 1), 1);
        advance(REFILL * 1_000).await;
        buckets.give_back(1);
        assert_eq!(taken(&mut buckets, 1), 5, "never more than the burst");
    }

    #[tokio::test(start_paused = true)]
    async fn the_table_is_bounded_and_forgets_the_fullest() {
        let mut buckets = Buckets::new(5, REFILL, 3);
        assert_eq!(taken(&mut buckets, 0), 5);
        for key in 1..1_000 {
            assert!(buckets.take(key));
            assert!(buckets.missing.len() <= 3);
        }
        assert!(!buckets.has(0), "the emptiest is kept");
        advance(REFILL).await;
        assert!(buckets.take(2_000));
        assert_eq!(buckets.missing.len(), 2, "what is full again is forgotten");
    }
}
