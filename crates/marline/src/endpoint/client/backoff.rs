//! How long to wait before a path is dialled again.

use std::time::Duration;

use marline_base::Rng;

/// A server that is being restarted, or a modem that changes its address, is often back within a
/// moment.
const FIRST: Duration = Duration::from_millis(50);
/// The longest wait for the first minutes: whoever waits for a network is to notice within two
/// seconds that it is there.
pub(super) const SHORT: Duration = Duration::from_millis(1500);
/// The longest wait later.
pub(super) const LONG: Duration = Duration::from_secs(5);
/// Waits that are short: some ten minutes of them.
const SHORT_WAITS: u32 = 400;
/// A path that lived for this time was a success; what failed sooner goes on backing off.
const PROVED: Duration = Duration::from_secs(10);

/// Doubles from 50 ms to 1.5 s, and for what is away for long to 5 s, each time within 25 % either
/// way, so that many clients of a server that comes back do not come in step.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    waits: u32,
    rng: Rng,
}

impl Backoff {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            next: FIRST,
            waits: 0,
            rng: Rng::new(seed),
        }
    }

    /// The next wait.
    pub(super) fn next(&mut self) -> Duration {
        let wait = self.next.mul_f64(0.75 + 0.5 * self.rng.uniform());
        self.waits = self.waits.saturating_add(1);
        let longest = if self.waits < SHORT_WAITS {
            SHORT
        } else {
            LONG
        };
        self.next = (self.next * 2).min(longest);
        wait
    }

    /// A path came up and lived for this time.
    pub(super) fn lived(&mut self, life: Duration) {
        if life >= PROVED {
            self.reset();
        }
    }

    /// There is a reason to hope: the next wait is the first again.
    pub(super) fn reset(&mut self) {
        self.next = FIRST;
        self.waits = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_again_after_a_success() {
        let mut backoff = Backoff::new(7);
        let mut expected = FIRST;
        for number in 1..2 * SHORT_WAITS {
            let wait = backoff.next();
            assert!(wait >= expected.mul_f64(0.75) && wait <= expected.mul_f64(1.25));
            let longest = if number < SHORT_WAITS { SHORT } else { LONG };
            expected = (expected * 2).min(longest);
        }
        backoff.lived(Duration::from_secs(1));
        assert!(backoff.next() > Duration::from_secs(3));
        backoff.lived(PROVED);
        assert!(backoff.next() <= FIRST.mul_f64(1.25));
        assert!(backoff.next() <= FIRST.mul_f64(2.5));
    }
}
