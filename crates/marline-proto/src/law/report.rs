//! How long it takes until an arrival is known here.
//!
//! From arrival to acknowledgement packets wait for the peer to write one, and for the way back.
//! Only with the law of arrivals does that say something: together they say when silence begins.

/// Acknowledgements in the means. A choice, not tuned.
const MEMORY: f64 = 32.0;
/// Before anything is known, how far acknowledgements are from their mean (µs): the delay that a
/// peer may take by default.
const FIRST: f64 = 10e3;
/// Acknowledgements for which the longest one is remembered: a peer that acknowledges every other
/// packet at once lets the last one of a flight wait for its timer.
const LONGEST: f64 = 256.0;
/// Square of a normal variable's deviation over its mean absolute value: π/2.
const NORMAL: f64 = core::f64::consts::FRAC_PI_2;

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Report {
    known: f64,
    lag: f64,
    error: f64,
    /// The longest lately.
    peak: f64,
    /// The longest of the acknowledgement that is being taken in (µs): the packet that waited for
    /// it.
    longest: Option<f64>,
}

impl Report {
    /// A packet's arrival became known this much later, but for the difference of the clocks (µs).
    pub(super) fn on_report(&mut self, lag: f64) {
        let longest = self.longest.unwrap_or(f64::NEG_INFINITY);
        self.longest = Some(longest.max(lag));
    }

    /// The acknowledgement is taken in.
    pub(super) fn refresh(&mut self) {
        let Some(lag) = self.longest.take() else {
            return;
        };
        if self.known == 0.0 {
            (self.known, self.lag, self.error) = (2.0, lag, FIRST);
            self.peak = lag + FIRST;
            return;
        }
        self.known = (self.known + 1.0).min(MEMORY);
        self.error += ((lag - self.lag).abs() - self.error) / self.known;
        self.lag += (lag - self.lag) / self.known;
        self.peak = lag.max(self.peak + (self.lag - self.peak) / LONGEST);
    }

    /// From arrival to its acknowledgement, on average (µs).
    pub(super) fn lag(&self) -> f64 {
        self.lag
    }

    /// The longest lately (µs).
    pub(super) fn longest(&self) -> f64 {
        self.peak
    }

    /// Variance of that (µs²).
    pub(super) fn variance(&self) -> f64 {
        NORMAL * self.error * self.error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waited_longest_for_its_acknowledgement_counts() {
        let mut report = Report::default();
        for n in 0..200 {
            report.on_report(20e3 + 1e3 * f64::from(n % 2));
            report.on_report(15e3);
            report.refresh();
        }
        assert!((report.lag() - 20.5e3).abs() < 50.0, "{}", report.lag());
        let deviation = libm::sqrt(report.variance());
        assert!((deviation / 626.0 - 1.0).abs() < 0.1, "{deviation}");
        report.on_report(45e3);
        report.refresh();
        (0..20).for_each(|_| {
            report.on_report(20e3);
            report.refresh();
        });
        assert!(
            (42e3..45e3).contains(&report.longest()),
            "{}",
            report.longest()
        );
        let before = report.lag();
        report.refresh();
        assert_eq!(report.lag(), before, "nothing was reported");
    }
}
