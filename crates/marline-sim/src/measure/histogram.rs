//! A distribution in bounded memory.

use std::collections::BTreeMap;

use hdrhistogram::Histogram as Buckets;

use crate::results::Distribution;

/// Largest value that is distinguished: 2⁴⁰, which is 12.7 days of microseconds or a terabyte.
const LARGEST: u64 = 1 << 40;
/// Quantiles are within 0.1 % of the truth.
const DIGITS: u8 = 3;
/// Quantiles that become values, with their names.
const NAMED: [(f64, &str); 5] = [
    (0.5, "p50"),
    (0.9, "p90"),
    (0.95, "p95"),
    (0.99, "p99"),
    (0.999, "p999"),
];
/// Probabilities of the quantiles kept for plots besides every hundredth.
const TAIL: [f64; 6] = [0.995, 0.998, 0.999, 0.9995, 0.9999, 1.0];

/// Values with their mean, spread and quantiles.
///
/// Quantiles come from an HDR histogram with three significant digits; mean, standard deviation,
/// least and greatest are exact. Sums are integers, so that no order of addition and no machine
/// changes them. Memory: at most 256 KiB, whatever is recorded.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Buckets<u64>,
    sum: u128,
    squares: u128,
    least: u64,
    greatest: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let buckets = Buckets::new_with_bounds(1, LARGEST, DIGITS);
        Self {
            buckets: buckets.unwrap_or_else(|error| unreachable!("constant bounds: {error}")),
            sum: 0,
            squares: 0,
            least: u64::MAX,
            greatest: 0,
        }
    }
}

impl Histogram {
    /// Records a value, in whole units of its own (µs, bytes).
    pub fn record(&mut self, value: u64) {
        self.buckets.saturating_record(value);
        self.sum += u128::from(value);
        self.squares += u128::from(value).pow(2);
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// Their mean; 0 if there are none.
    pub fn mean(&self) -> f64 {
        if self.count() == 0 {
            return 0.0;
        }
        self.sum as f64 / self.count() as f64
    }

    /// Their standard deviation (of the sample, n − 1); 0 for fewer than two.
    pub fn sd(&self) -> f64 {
        let n = u128::from(self.count());
        if n < 2 {
            return 0.0;
        }
        // n Σx² − (Σx)² is exact, so that nothing cancels.
        let spread = (n * self.squares).saturating_sub(self.sum * self.sum);
        (spread as f64 / (n as f64 * (n - 1) as f64)).sqrt()
    }

    /// The value that the fraction `q` did not exceed, within 0.1 %; 0 if there are none.
    pub fn quantile(&self, q: f64) -> u64 {
        if self.count() == 0 {
            return 0;
        }
        let value = self.buckets.value_at_quantile(q);
        value.clamp(self.least, self.greatest)
    }

    /// Writes mean, spread, quantiles and count under `name`, in units of `per` recorded ones
    /// called `unit`: `NAME.mean_UNIT`, `NAME.sd_UNIT`, `NAME.p50_UNIT`, …, `NAME.count`.
    pub fn report(&self, name: &str, unit: &str, per: f64, values: &mut BTreeMap<String, f64>) {
        values.insert(format!("{name}.count"), self.count() as f64);
        if self.count() == 0 {
            return;
        }
        let mut put = |what: &str, value: f64| {
            values.insert(format!("{name}.{what}_{unit}"), value / per);
        };
        put("mean", self.mean());
        put("sd", self.sd());
        put("min", self.least as f64);
        put("max", self.greatest as f64);
        for (q, what) in NAMED {
            put(what, self.quantile(q) as f64);
        }
    }

    /// Its quantiles in units of `per` recorded ones.
    pub fn distribution(&self, unit: &str, per: f64) -> Distribution {
        let hundredths = (0..100).map(|i| f64::from(i) / 100.0);
        let quantiles = hundredths.chain(TAIL);
        let value = |q| (q, self.quantile(q) as f64 / per);
        Distribution {
            unit: unit.to_owned(),
            count: self.count(),
            quantiles: match self.count() {
                0 => Vec::new(),
                _ => quantiles.map(value).collect(),
            },
        }
    }
}

/// The endings of the names that [`Histogram::report`] writes for a unit.
pub(crate) fn endings(unit: &str) -> impl Iterator<Item = String> {
    let fixed = ["mean", "sd", "min", "max"].into_iter();
    let named = fixed.chain(NAMED.iter().map(|(_, what)| *what));
    let count = std::iter::once(".count".to_owned());
    count.chain(named.map(move |what| format!(".{what}_{unit}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_exact_and_quantiles_close() {
        let mut histogram = Histogram::default();
        (1..=100_000).for_each(|v| histogram.record(v));
        assert_eq!(histogram.mean(), 50_000.5);
        // The variance of 1..=n is n (n + 1) / 12 with the sample's n − 1.
        let sd = (100_000.0_f64 * 100_001.0 / 12.0).sqrt();
        assert!((histogram.sd() - sd).abs() < 1e-6, "{}", histogram.sd());
        for q in [0.5, 0.9, 0.999] {
            let off = histogram.quantile(q) as f64 / (q * 100_000.0) - 1.0;
            assert!(off.abs() < 0.001, "{q}: off by {off}");
        }
        assert_eq!(histogram.quantile(1.0), 100_000);
    }

    #[test]
    fn what_is_reported_is_what_is_announced() {
        let mut histogram = Histogram::default();
        histogram.record(7);
        let mut values = BTreeMap::new();
        histogram.report("x", "ms", 1e3, &mut values);
        let mut announced: Vec<String> = endings("ms").map(|e| format!("x{e}")).collect();
        announced.sort();
        assert!(values.keys().eq(announced.iter()));
        assert_eq!(values["x.p99_ms"], 0.007);
        assert_eq!(values["x.sd_ms"], 0.0);
    }

    #[test]
    fn nothing_recorded_claims_nothing() {
        let mut values = BTreeMap::new();
        Histogram::default().report("x", "ms", 1e3, &mut values);
        assert_eq!(values, BTreeMap::from([("x.count".to_owned(), 0.0)]));
        assert!(
            Histogram::default()
                .distribution("ms", 1e3)
                .quantiles
                .is_empty()
        );
    }
}
