//! What names were found to be, for a short while.

use super::question::Found;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long an answer holds. The system's resolver does not say how long it may; programs that ask
/// it keep nothing, and this is short beside what names usually have (minutes), and long beside a
/// page and what it embeds.
const FOUND: Duration = Duration::from_secs(10);
/// How long a failure holds: a name server may be back at any time.
const FAILED: Duration = Duration::from_secs(3);
/// Most names. With their addresses they are less than 1 MB.
pub(super) const MAX_NAMES: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Cache {
    names: HashMap<Arc<str>, (Found, Instant)>,
    settings: u64,
}

impl Cache {
    /// Forgets everything when the resolver's settings are others than before.
    pub(super) fn under(&mut self, settings: u64) {
        if self.settings != settings {
            self.settings = settings;
            self.names.clear();
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<Found> {
        let (found, until) = self.names.get(name)?;
        (Instant::now() < *until).then(|| found.clone())
    }

    pub(super) fn put(&mut self, name: Arc<str>, found: Found) {
        let now = Instant::now();
        if self.names.len() >= MAX_NAMES {
            self.names.retain(|_, (_, until)| now < *until);
        }
        if self.names.len() >= MAX_NAMES {
            let oldest = self.names.iter().min_by_key(|(_, (_, until))| *until);
            if let Some(name) = oldest.map(|(name, _)| Arc::clone(name)) {
                self.names.remove(&name);
            }
        }
        let holds = if found.is_ok() { FOUND } else { FAILED };
        self.names.insert(name, (found, now + holds));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}
