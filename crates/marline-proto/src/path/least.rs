//! The least of what was measured lately.

use core::ops::Add;

/// The least value of a window and of the one before: of what was measured in the last one or two
/// windows. Times and values are of any kind, such as seconds or microseconds of two clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Least<T, V> {
    values: [Option<V>; 2],
    turns: Option<T>,
}

impl<T, V> Default for Least<T, V> {
    fn default() -> Self {
        Self {
            values: [None, None],
            turns: None,
        }
    }
}

impl<T: Copy + PartialOrd, V: Copy + PartialOrd> Least<T, V> {
    /// It was `value` at `now`; windows are `window` long. Neither is NaN.
    pub(crate) fn note<D>(&mut self, now: T, window: D, value: V)
    where
        T: Add<D, Output = T>,
    {
        if self.turns.is_none_or(|turns| now >= turns) {
            self.values = [None, self.values[0]];
            self.turns = Some(now + window);
        }
        let least = self.values[0].filter(|least| *least < value);
        self.values[0] = Some(least.unwrap_or(value));
    }

    /// The least lately; `None` if there was none ever.
    pub(crate) fn get(&self) -> Option<V> {
        let [now, before] = self.values;
        match (now, before) {
            (Some(a), Some(b)) => Some(if b < a { b } else { a }),
            (one, other) => one.or(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_that_of_the_last_windows() {
        let mut least = Least::default();
        assert_eq!(least.get(), None);
        let mut note = |now: f64, value: f64| {
            least.note(now, 0.5, value);
            least.get()
        };
        assert_eq!(note(1.0, 0.3), Some(0.3));
        assert_eq!(note(1.1, 0.2), Some(0.2));
        assert_eq!(note(1.2, 0.4), Some(0.2));
        assert_eq!(note(1.6, 0.5), Some(0.2));
        assert_eq!(note(2.2, 0.6), Some(0.5));
        // However long ago it was, something was measured.
        assert_eq!(note(9.0, 0.7), Some(0.6));
    }
}
