//! The axis of means with their intervals: no interval may squeeze what is compared.

use super::axis::{Axis, End, plain};
use crate::results::Estimate;

/// Part of the axis that intervals may take beyond the means (share of what the means take).
const BEYOND: f64 = 0.25;
/// Means that differ by more than this factor stand on a logarithmic axis.
const FACTOR: f64 = 50.0;
/// More names than this are not listed in a note.
const NAMES: usize = 6;

/// An axis, and what is to be said of it.
pub(super) struct Scale {
    pub(super) axis: Axis,
    pub(super) notes: Vec<String>,
}

impl Scale {
    /// For bars: from zero, or logarithmic.
    pub(super) fn from_zero(title: String, estimates: &[(&str, Estimate)]) -> Self {
        Self::new(title, estimates, true)
    }

    /// For points: as suits them.
    pub(super) fn of_points(title: String, estimates: &[(&str, Estimate)]) -> Self {
        Self::new(title, estimates, false)
    }

    fn new(title: String, estimates: &[(&str, Estimate)], zero: bool) -> Self {
        let means = estimates.iter().map(|(_, estimate)| estimate.value());
        let means: Vec<f64> = means.filter(|mean| mean.is_finite()).collect();
        let least = means.iter().copied().fold(f64::INFINITY, f64::min);
        let most = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let ends = estimates.iter().filter_map(|(_, e)| e.interval());
        let mut notes = Vec::new();
        let axis = if least > 0.0 && most > FACTOR * least {
            // As much room on both sides as a quarter of the decades between the means.
            let room = (most / least).powf(BEYOND);
            let (mut low, mut high) = (least, most);
            for (from, to) in ends {
                if from > 0.0 {
                    low = low.min(from.max(least / room));
                }
                high = high.max(to.min(most * room));
            }
            let axis = Axis::log(format!("{title}, logarithmic"), 0.8 * low, 1.25 * high);
            let bars = if zero {
                "; bars begin at its left end"
            } else {
                ""
            };
            notes.push(format!("The axis is logarithmic{bars}."));
            axis
        } else {
            let base = if zero { 0.0 } else { least };
            let (low, high) = (least.min(base), most.max(base));
            // One mean, or equal ones, have nothing that could be squeezed.
            let room = if high > low {
                BEYOND * (high - low)
            } else {
                f64::INFINITY
            };
            let floor = if least >= 0.0 {
                (low - room).max(0.0)
            } else {
                low - room
            };
            let mut reach: Vec<f64> = means.clone();
            if zero {
                reach.push(0.0);
            }
            for (from, to) in ends {
                reach.extend([from.max(floor), to.min(high + room)]);
            }
            Axis::linear(title, reach.into_iter())
        };
        notes.extend(cut(&axis, estimates));
        Self { axis, notes }
    }
}

/// Which intervals the axis does not hold, and how far they reach.
fn cut(axis: &Axis, estimates: &[(&str, Estimate)]) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for (name, estimate) in estimates {
        let Some((low, high)) = estimate.interval() else {
            continue;
        };
        if [low, high].map(|end| axis.end(end)).contains(&End::Beyond) {
            names.push(format!("{name} ({} to {})", rounded(low), rounded(high)));
        }
    }
    let more = names.len().saturating_sub(NAMES);
    names.truncate(NAMES);
    let listed = match more {
        0 => names.join(", "),
        _ => format!("{} and {more} more", names.join(", ")),
    };
    (!listed.is_empty())
        .then(|| format!("An arrow is an interval that goes on beyond the axis: {listed}."))
}

/// Three digits say enough of where an interval ends.
fn rounded(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return plain(value);
    }
    let digits = 2 - value.abs().log10().floor() as i32;
    let unit = 10f64.powi(digits);
    plain((value * unit).round() / unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Summary;

    fn estimate(values: &[f64]) -> Estimate {
        Estimate::Mean(Summary::of(values).unwrap())
    }

    #[test]
    fn a_wide_interval_is_cut_and_said() {
        let wide = estimate(&[1.0, 30.0]);
        let narrow = estimate(&[10.0, 10.2]);
        let scale = Scale::from_zero("delay (ms)".to_owned(), &[("one", wide), ("two", narrow)]);
        // Student's t for two seeds has an interval of 15.5 ± 184.
        assert!(scale.axis.high < 25.0, "{:?}", scale.axis);
        assert_eq!(scale.axis.low, 0.0);
        let notes = scale.notes.join(" ");
        assert!(notes.contains("one (-169 to 200)"), "{notes}");
        assert!(!notes.contains("two"), "{notes}");
        assert_eq!(scale.axis.end(-1.0), End::Zero);
        assert_eq!(scale.axis.end(200.0), End::Beyond);
    }

    #[test]
    fn narrow_intervals_need_no_words() {
        let close = [
            ("one", estimate(&[9.0, 9.1])),
            ("two", estimate(&[12.0, 12.1])),
        ];
        let scale = Scale::from_zero("delay (ms)".to_owned(), &close);
        assert!(scale.notes.is_empty(), "{:?}", scale.notes);
    }

    #[test]
    fn means_that_differ_much_stand_on_a_logarithmic_axis_that_says_so() {
        let far = [
            ("one", estimate(&[10.0, 10.1])),
            ("two", estimate(&[9000.0, 9001.0])),
        ];
        let scale = Scale::from_zero("delay (ms)".to_owned(), &far);
        assert!(scale.axis.is_log() && scale.axis.title.ends_with("(ms), logarithmic"));
        assert!(scale.notes[0].contains("logarithmic"));
        // A bar of the smallest mean is still one.
        let (low, ten) = (scale.axis.low, scale.axis.place(10.0));
        assert!(ten > low + 0.02 * (scale.axis.high - low));
    }

    #[test]
    fn equal_means_keep_their_intervals() {
        let scale = Scale::of_points("x (ratio)".to_owned(), &[("one", estimate(&[0.0, 0.0]))]);
        assert!(scale.notes.is_empty());
        assert!(Scale::of_points(String::new(), &[]).notes.is_empty());
    }
}
