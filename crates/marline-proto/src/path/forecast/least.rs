//! The least of what was measured lately.

/// The least is that of the last one or two of these (seconds): a route may become longer at any time.
const WINDOW: f64 = 0.5;

/// The least value of a window and of the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least {
    values: [f64; 2],
    turns: f64,
}

impl Default for Least {
    fn default() -> Self {
        Self {
            values: [f64::INFINITY; 2],
            turns: f64::NEG_INFINITY,
        }
    }
}

impl Least {
    /// It was `value` at `now` (seconds); nonsense is left out.
    pub(super) fn note(&mut self, now: f64, value: f64) {
        if !(now.is_finite() && value.is_finite()) {
            return;
        }
        if now >= self.turns {
            self.values = [f64::INFINITY, self.values[0]];
            self.turns = now + WINDOW;
        }
        self.values[0] = self.values[0].min(value);
    }

    /// The least lately; `None` if there was none ever.
    pub(super) fn get(&self) -> Option<f64> {
        let least = self.values[0].min(self.values[1]);
        least.is_finite().then_some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_that_of_the_last_windows() {
        let mut least = Least::default();
        assert_eq!(least.get(), None);
        least.note(f64::NAN, 1.0);
        least.note(1.0, f64::NAN);
        assert_eq!(least.get(), None);
        least.note(1.0, 0.3);
        least.note(1.1, 0.2);
        least.note(1.2, 0.4);
        assert_eq!(least.get(), Some(0.2));
        least.note(1.6, 0.5);
        assert_eq!(least.get(), Some(0.2));
        least.note(2.2, 0.6);
        assert_eq!(least.get(), Some(0.5));
        // However long nothing was heard, something was.
        least.note(9.0, 0.7);
        assert_eq!(least.get(), Some(0.6));
    }
}
