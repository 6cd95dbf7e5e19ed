//! Numbers as people read them: no more digits than the interval leaves meaning.

use crate::results::Estimate;

/// A value alone: four significant digits.
pub fn show(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let whole = value.abs().log10().floor() as i32;
    fixed(value, (3 - whole).clamp(0, 6) as usize)
}

/// A value with its 95 % interval: `43.2 ± 1.3` for a mean, `2.0 % [0.9, 4.3]` for a fraction,
/// and `43.21 (n = 1)` where a single seed leaves no interval.
pub fn with_interval(estimate: &Estimate) -> String {
    match estimate {
        Estimate::Mean(summary) => match summary.interval {
            None => format!("{} (n = 1)", show(summary.mean)),
            Some((low, high)) => {
                let half = (high - low) / 2.0;
                let Some(digits) = digits(half) else {
                    return format!("{} ± 0", show(summary.mean));
                };
                format!("{} ± {}", fixed(summary.mean, digits), fixed(half, digits))
            }
        },
        Estimate::Share(share) => {
            let (low, high) = share.interval;
            let digits = digits(50.0 * (high - low)).unwrap_or(1).min(3);
            let percent = |value: f64| fixed(100.0 * value, digits);
            format!(
                "{} % [{}, {}]",
                percent(share.value),
                percent(low),
                percent(high)
            )
        }
    }
}

/// Decimals that show two digits of an interval's half; `None` if it has no width worth a digit.
fn digits(half: f64) -> Option<usize> {
    (half >= 5e-7).then(|| (1 - half.log10().floor() as i32).clamp(0, 6) as usize)
}

/// `value` with `digits` decimals, and no minus before a zero.
fn fixed(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => rest.to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Fraction, Proportion, Summary};

    fn mean(values: &[f64]) -> String {
        with_interval(&Estimate::Mean(Summary::of(values).unwrap()))
    }

    #[test]
    fn the_interval_decides_the_digits() {
        assert_eq!(mean(&[9.0, 10.0, 11.0]), "10.0 ± 2.5");
        assert_eq!(mean(&[900.0, 1000.0, 1100.0]), "1000 ± 248");
        assert_eq!(mean(&[0.0090, 0.0100, 0.0110]), "0.0100 ± 0.0025");
        assert_eq!(mean(&[-0.001, 0.001]), "0.000 ± 0.013");
    }

    #[test]
    fn what_has_no_interval_says_so() {
        assert_eq!(mean(&[43.2109]), "43.21 (n = 1)");
        assert_eq!(mean(&[5.0, 5.0, 5.0]), "5.000 ± 0");
    }

    #[test]
    fn fractions_are_percentages_between_bounds() {
        let share = Proportion::pooled(&[Fraction {
            hits: 8,
            trials: 10,
        }])
        .unwrap();
        assert_eq!(with_interval(&Estimate::Share(share)), "80 % [49, 94]");
        let share = Proportion::pooled(&[Fraction {
            hits: 6,
            trials: 300,
        }])
        .unwrap();
        assert_eq!(with_interval(&Estimate::Share(share)), "2.0 % [0.9, 4.3]");
    }

    #[test]
    fn values_alone_have_four_digits() {
        assert_eq!(show(0.0), "0");
        assert_eq!(show(43.2109), "43.21");
        assert_eq!(show(123_456.7), "123457");
        assert_eq!(show(-0.012_345), "-0.01235");
    }
}
