//! Noticing that nothing happens any more.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Time since something last happened.
#[derive(Debug)]
pub(crate) struct Idle {
    last: Mutex<Instant>,
    limit: Duration,
}

impl Idle {
    pub(crate) fn new(limit: Duration) -> Self {
        Idle {
            last: Mutex::new(Instant::now()),
            limit,
        }
    }

    /// Something happened.
    pub(crate) fn touch(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Completes when nothing has happened for the limit.
    pub(crate) async fn expired(&self) {
        loop {
            let end = *self.last.lock().unwrap_or_else(PoisonError::into_inner) + self.limit;
            if Instant::now() >= end {
                return;
            }
            sleep_until(end).await;
        }
    }
}
