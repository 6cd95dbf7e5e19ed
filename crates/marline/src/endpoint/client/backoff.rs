//! How long to wait before a path is dialled again.

use std::time::Duration;

use marline_base::Rng;

/// A server that is being restarted, or a modem that changes its address, is often back within a
/// moment.
const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);
/// A path that lived for this time was a success; what failed sooner goes on backing off.
const PROVED: Duration = Duration::from_secs(10);

/// Doubles from 50 ms to 5 s, each time within 25 % either way, so that many clients of a server
/// that comes back do not come in step.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    rng: Rng,
}

impl Backoff {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            next: FIRST,
            rng: Rng::new(seed),
        }
    }

    /// The next wait.
    pub(super) fn next(&mut self) -> Duration {
        let wait = self.next.mul_f64(0.75 + 0.5 * self.rng.uniform());
        self.next = (self.next * 2).min(LONGEST);
        wait
    }

    /// A path came up and lived for this time.
    pub(super) fn lived(&mut self, life: Duration) {
        if life >= PROVED {
            self.next = FIRST;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_anew_after_a_success() {
        let mut backoff = Backoff::new(7);
        let mut expected = FIRST;
        for _ in 0..10 {
            let wait = backoff.next();
            assert!(wait >= expected.mul_f64(0.75) && wait <= expected.mul_f64(1.25));
            expected = (expected * 2).min(LONGEST);
        }
        backoff.lived(Duration::from_secs(1));
        assert!(backoff.next() > Duration::from_secs(3));
        backoff.lived(PROVED);
        assert!(backoff.next() <= FIRST.mul_f64(1.25));
    }
}
