//! The fraction as the user-space framework moves it (§4.2, Figure 2c): one for all paths, every
//! millisecond, and the faster upwards the longer the queue is and has been.

use marline_base::{Duration, Instant};

use super::{Bounds, MOST, RAW_STEP};

/// Time between two moves.
const TICK: Duration = Duration::from_millis(1);
/// Figure 2c: C1, the ticks after which a queue is persistent.
const PERSISTENT: f64 = 10.0;
/// Figure 2c: C2.
const SLOWDOWN: f64 = 50.0;

#[derive(Clone, Debug)]
pub(super) struct User {
    bounds: Bounds,
    pub(super) fraction: f64,
    /// CONSECUTIVE_INCREASE of Figure 2c.
    pub(super) increases: f64,
    /// When the fraction moves next; `None` before the first plan.
    pub(super) next: Option<Instant>,
    /// Packets that waited when last looked at, which is whenever that changes.
    queue: f64,
}

impl User {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            fraction: MOST,
            increases: 0.0,
            next: None,
            queue: 0.0,
        }
    }

    /// Figures 2b and 2c.
    fn tick(&mut self) {
        if self.bounds.is_long(self.queue) {
            self.increases += 1.0;
            let queue = self.queue / self.bounds.threshold;
            let factor = queue.min(self.increases / PERSISTENT);
            let step = RAW_STEP / SLOWDOWN * factor * factor;
            self.fraction = self.bounds.grown(self.fraction, step);
        } else {
            self.increases = 0.0;
            self.fraction = self.bounds.shrunk(self.fraction, RAW_STEP / SLOWDOWN);
        }
    }

    pub(super) fn on_time(&mut self, now: Instant, queue: f64) {
        let mut next = self.next.unwrap_or(now + TICK);
        while next <= now {
            self.tick();
            next += TICK;
            // More of the same changes nothing.
            let settled = match self.bounds.is_long(self.queue) {
                true => self.fraction >= MOST,
                false => self.fraction <= self.bounds.least,
            };
            if settled && next <= now {
                let behind = now.since(next).as_nanos() / TICK.as_nanos() + 1;
                self.increases += if self.queue > self.bounds.threshold {
                    behind as f64
                } else {
                    0.0
                };
                next += TICK * (behind.min(u128::from(u32::MAX)) as u32);
            }
        }
        self.next = Some(next);
        self.queue = queue;
    }

    pub(super) fn wake_at(&self) -> Option<Instant> {
        // With nothing waiting the missed ticks are made up for when something is.
        self.next.filter(|_| self.queue > 0.0)
    }
}
