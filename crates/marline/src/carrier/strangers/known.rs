use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::Site;

/// Sites that clients with a listed key came from, for a time.
#[derive(Debug)]
pub(super) struct Known {
    seen: BTreeMap<Site, Instant>,
    most: usize,
    age: Duration,
}

impl Known {
    /// At most `most` sites, each for `age` after it was noted last.
    pub(super) const fn new(most: usize, age: Duration) -> Self {
        Self {
            seen: BTreeMap::new(),
            most,
            age,
        }
    }

    /// Is it one?
    pub(super) fn has(&self, site: Site) -> bool {
        self.seen
            .get(&site)
            .is_some_and(|seen| seen.elapsed() < self.age)
    }

    /// From now on it is. Where there is no room, the one that was noted first is forgotten.
    pub(super) fn note(&mut self, site: Site) {
        self.seen.insert(site, Instant::now());
        if self.seen.len() > self.most {
            let oldest = self.seen.iter().min_by_key(|(_, seen)| **seen);
            if let Some(site) = oldest.map(|(&site, _)| site) {
                self.seen.remove(&site);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn sites_are_known_for_a_time_and_the_oldest_gives_way() {
        let site = |last| Site::from(IpAddr::from([192, 0, 2, last]));
        let mut known = Known::new(2, Duration::from_secs(60));
        known.note(site(1));
        advance(Duration::from_secs(30)).await;
        known.note(site(2));
        assert!(known.has(site(1)) && known.has(site(2)) && !known.has(site(3)));
        advance(Duration::from_secs(30)).await;
        assert!(!known.has(site(1)) && known.has(site(2)));
        known.note(site(1));
        known.note(site(3));
        assert!(known.has(site(1)) && !known.has(site(2)) && known.has(site(3)));
        assert_eq!(known.seen.len(), 2);
        let mut none = Known::new(0, Duration::from_secs(60));
        none.note(site(1));
        assert!(!none.has(site(1)));
    }
}
