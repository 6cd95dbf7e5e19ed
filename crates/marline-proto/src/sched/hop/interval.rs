//! The time between blocks.

/// Gaps that are remembered.
const MOST: usize = 9;

/// Median of the last gaps between blocks: neither blocks that were held up and then came together
/// nor a pause say how often blocks come.
#[derive(Clone, Debug, Default)]
pub(super) struct Interval {
    last: Option<f64>,
    gaps: [f64; MOST],
    count: usize,
}

impl Interval {
    /// A block was written at `at` (seconds).
    pub(super) fn on_block(&mut self, at: f64) {
        if let Some(gap) = self.last.map(|last| at - last)
            && gap > 0.0
        {
            self.gaps[self.count % MOST] = gap;
            self.count += 1;
        }
        self.last = Some(at);
    }

    /// The interval (seconds); `None` before the second block.
    pub(super) fn get(&self) -> Option<f64> {
        let known = self.count.min(MOST);
        let mut gaps = self.gaps;
        let gaps = &mut gaps[..known];
        gaps.sort_unstable_by(f64::total_cmp);
        gaps.get(known / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(times: &[f64]) -> Option<f64> {
        let mut interval = Interval::default();
        for at in times {
            interval.on_block(*at);
        }
        let ms = interval.get()? * 1e3;
        Some(libm::round(ms * 1e6) / 1e6)
    }

    #[test]
    fn two_blocks_make_an_interval() {
        assert_eq!(after(&[]), None);
        assert_eq!(after(&[1.0]), None);
        assert_eq!(after(&[1.0, 1.0]), None);
        assert_eq!(after(&[1.0, 1.025]), Some(25.0));
    }

    #[test]
    fn a_first_block_that_waited_for_the_session_is_soon_forgotten() {
        // Written at once when the session came up, 5 ms before the next one was due.
        assert_eq!(after(&[0.045, 0.05]), Some(5.0));
        assert_eq!(after(&[0.045, 0.05, 0.075]), Some(25.0));
    }

    #[test]
    fn a_pause_is_no_interval_but_another_rhythm_is() {
        let mut times: alloc::vec::Vec<f64> = (0..20).map(|n| f64::from(n) * 0.025).collect();
        times.push(9.0);
        assert_eq!(after(&times), Some(25.0));
        times.extend((1..4).map(|n| 9.0 + f64::from(n) * 0.125));
        assert_eq!(after(&times), Some(25.0));
        times.push(9.5);
        assert_eq!(after(&times), Some(125.0));
    }
}
