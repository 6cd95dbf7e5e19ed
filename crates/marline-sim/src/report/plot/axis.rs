//! An axis: what it says, how far it reaches, where its ticks stand.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

/// Positions are what is drawn: values, or their decimal logarithms on a logarithmic axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) title: String,
    pub(super) low: f64,
    pub(super) high: f64,
    /// Position and label.
    pub(super) ticks: Vec<(f64, String)>,
    log: bool,
    /// Values that stand side by side at equal distances, ascending; none on other axes.
    steps: Vec<f64>,
}

impl Axis {
    /// An axis for `values`: from zero, unless all lie so close together that they would not be
    /// told apart.
    pub(super) fn linear(title: String, values: impl Iterator<Item = f64> + Clone) -> Self {
        let (least, most) = reach(values);
        let spread = most - least;
        let close = least > 0.0 && spread < 0.4 * most;
        let low = if close {
            (least - 0.15 * spread).max(0.0)
        } else {
            least.min(0.0)
        };
        Self::between(title, low, most + 0.05 * (most - low))
    }

    /// An axis from `low` to `high`, widened if it has no width.
    pub(super) fn between(title: String, low: f64, high: f64) -> Self {
        let high = if high > low {
            high
        } else {
            low + low.abs().max(1.0) * 0.1
        };
        let step = step((high - low) / 6.0);
        let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        let ticks = (first..=last)
            .map(|i| (i as f64 * step, format!("{:.digits$}", i as f64 * step)))
            .collect();
        Self {
            title,
            low,
            high,
            ticks,
            log: false,
            steps: Vec::new(),
        }
    }

    /// A linear axis, or a logarithmic one if positive `values` differ more than fiftyfold.
    pub(super) fn suited(title: String, values: impl Iterator<Item = f64> + Clone) -> Self {
        let (least, most) = reach(values.clone());
        if least > 0.0 && most > 50.0 * least {
            Self::log(title, least, most)
        } else {
            Self::linear(title, values)
        }
    }

    /// A logarithmic axis from `least` to `most`, both positive, with ticks at 1, 2 and 5 in each
    /// decade, or at 1 only if there are many.
    pub(super) fn log(title: String, least: f64, most: f64) -> Self {
        let (low, high) = (least.log10(), most.log10().max(least.log10() + 0.1));
        let within: &[f64] = if high - low > 3.0 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        let mut ticks = Vec::new();
        for decade in low.floor() as i32..=high.ceil() as i32 {
            for digit in within {
                let value = digit * 10f64.powi(decade);
                let place = value.log10();
                if (low - 1e-9..=high + 1e-9).contains(&place) {
                    ticks.push((place, plain(value)));
                }
            }
        }
        Self {
            title,
            low,
            high,
            ticks,
            log: true,
            steps: Vec::new(),
        }
    }

    /// An axis for the values of a scenario's axis, side by side at equal distances, so that those
    /// that differ little do not lie upon each other. Numbers of one unit ascend. Returns each
    /// value's position, too.
    pub(super) fn values(title: &str, values: &[&str]) -> (Self, Vec<f64>) {
        let numbers: Option<Vec<(f64, &str)>> = values.iter().map(|value| number(value)).collect();
        let of_one_unit =
            numbers.filter(|numbers| numbers.iter().all(|number| number.1 == numbers[0].1));
        let Some(numbers) = of_one_unit.filter(|numbers| !numbers.is_empty()) else {
            let places: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
            return (Self::names(title.to_owned(), values), places);
        };
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| numbers[*a].0.total_cmp(&numbers[*b].0));
        let labels: Vec<String> = order.iter().map(|i| plain(numbers[*i].0)).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let mut places = vec![0.0; values.len()];
        for (place, i) in order.into_iter().enumerate() {
            places[i] = place as f64;
        }
        let title = super::label(title, numbers[0].1);
        (Self::names(title, &labels), places)
    }

    /// An axis with these numbers, ascending, side by side at equal distances.
    pub(super) fn numbers(title: String, values: &[f64]) -> Self {
        let labels: Vec<String> = values.iter().map(|value| plain(*value)).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        Self {
            steps: values.to_vec(),
            ..Self::names(title, &labels)
        }
    }

    /// Leaves out ticks, every second or more, until the labels have no more than this many
    /// characters, with a gap between them.
    pub(super) fn thin(&mut self, most: usize) {
        let longest = self.ticks.iter().map(|tick| tick.1.chars().count() + 2);
        let all = longest.max().unwrap_or(0) * self.ticks.len();
        let every = all.div_ceil(most.max(1)).max(1);
        let mut number = 0;
        self.ticks.retain(|_| {
            number += 1;
            (number - 1) % every == 0
        });
    }

    /// Is it a logarithmic one?
    pub(super) fn is_log(&self) -> bool {
        self.log
    }

    /// Names side by side, at 0, 1, 2, …
    pub(super) fn names(title: String, names: &[&str]) -> Self {
        Self {
            title,
            low: -0.6,
            high: names.len() as f64 - 0.4,
            ticks: names
                .iter()
                .enumerate()
                .map(|(i, name)| (i as f64, (*name).to_owned()))
                .collect(),
            log: false,
            steps: Vec::new(),
        }
    }

    /// Names below each other, in rows of these heights: the first is the highest, the axis begins
    /// at the last one's foot.
    pub(super) fn rows(rows: &[(&str, f64)]) -> Self {
        let high: f64 = rows.iter().map(|row| row.1).sum();
        let mut foot = high;
        let ticks = rows.iter().map(|(name, height)| {
            foot -= height;
            (foot + 0.5 * height, (*name).to_owned())
        });
        Self {
            title: String::new(),
            low: 0.0,
            high,
            ticks: ticks.collect(),
            log: false,
            steps: Vec::new(),
        }
    }

    /// Where `value` stands, held within the axis.
    pub(super) fn place(&self, value: f64) -> f64 {
        if let Some(step) = self.steps.iter().position(|step| *step == value) {
            return step as f64;
        }
        let place = match self.log {
            true if value <= 0.0 => self.low,
            true => value.log10(),
            false => value,
        };
        place.clamp(self.low, self.high)
    }

    /// How an interval ends whose bound is this value.
    pub(super) fn end(&self, value: f64) -> End {
        let place = match self.log {
            true if value <= 0.0 => return End::Beyond,
            true => value.log10(),
            false => value,
        };
        let slack = 1e-9 * (1.0 + self.high.abs());
        if (self.low - slack..=self.high + slack).contains(&place) {
            End::Within
        } else if self.low == 0.0 && place < 0.0 {
            End::Zero
        } else {
            End::Beyond
        }
    }

    /// The label of the tick at `place`.
    pub(super) fn tick(&self, place: f64) -> String {
        let at = |tick: &&(f64, String)| (tick.0 - place).abs() <= 1e-9 * (1.0 + place.abs());
        self.ticks
            .iter()
            .find(at)
            .map_or_else(String::new, |tick| tick.1.clone())
    }
}

/// Where an interval ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// On the axis.
    Within,
    /// Below zero, with which the axis of a measure begins that cannot be less.
    Zero,
    /// Beyond the axis: it has been cut.
    Beyond,
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, limit: (i32, i32)) -> i32 {
        let share = (place - self.low) / (self.high - self.low);
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            return Vec::new();
        }
        self.ticks.iter().map(|tick| tick.0).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(place: &f64) -> String {
        place.to_string()
    }

    fn format_ext(&self, place: &f64) -> String {
        self.tick(*place)
    }
}

fn reach(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, most) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| {
            (least.min(v), most.max(v))
        });
    if least <= most {
        (least, most)
    } else {
        (0.0, 1.0)
    }
}

/// The least of 1, 2, 5, 10, … × a power of ten that is not below `least`.
fn step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let digit = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|digit| digit * power >= least * 0.999_999);
    digit.unwrap_or(10.0) * power
}

/// A number without needless zeros.
pub(super) fn plain(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `20ms` as 20 and `ms`.
pub(crate) fn number(text: &str) -> Option<(f64, &str)> {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    Some((digits.parse().ok()?, unit.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|tick| tick.1.as_str()).collect()
    }

    #[test]
    fn ticks_are_round_numbers_within_the_axis() {
        let axis = Axis::linear(String::new(), [3.0, 47.0].into_iter());
        assert_eq!(labels(&axis), ["0", "10", "20", "30", "40"]);
        let axis = Axis::between(String::new(), 9.88, 10.0);
        assert_eq!(
            labels(&axis),
            ["9.88", "9.90", "9.92", "9.94", "9.96", "9.98", "10.00"]
        );
    }

    #[test]
    fn close_values_do_not_start_at_zero() {
        assert!(Axis::linear(String::new(), [9.6, 10.0].into_iter()).low > 9.0);
        assert_eq!(
            Axis::linear(String::new(), [1.0, 10.0].into_iter()).low,
            0.0
        );
        let flat = Axis::linear(String::new(), [5.0, 5.0].into_iter());
        assert!(flat.low <= 5.0 && 5.0 < flat.high);
        let nothing = Axis::linear(String::new(), [f64::NAN].into_iter());
        assert!(nothing.low < nothing.high);
    }

    #[test]
    fn wide_ranges_are_logarithmic() {
        let axis = Axis::suited(String::new(), [0.5, 400.0].into_iter());
        assert_eq!(
            labels(&axis),
            ["0.5", "1", "2", "5", "10", "20", "50", "100", "200"]
        );
        assert_eq!(axis.place(10.0), 1.0);
        assert_eq!(axis.tick(axis.place(100.0)), "100");
        assert_eq!(axis.place(-1.0), axis.low);
        let axis = Axis::log(String::new(), 0.0001, 1.0);
        assert_eq!(labels(&axis), ["0.0001", "0.001", "0.01", "0.1", "1"]);
    }

    #[test]
    fn values_ascend_at_equal_distances_and_keep_their_unit() {
        let (axis, places) = Axis::values("links.b.rtt", &["20ms", "160ms", "40ms"]);
        assert_eq!(axis.title, "links.b.rtt (ms)");
        assert_eq!(places, [0.0, 2.0, 1.0]);
        assert_eq!(labels(&axis), ["20", "40", "160"]);
        let axis = Axis::numbers("queue".to_owned(), &[50.0, 100.0, 1000.0]);
        assert_eq!(labels(&axis), ["50", "100", "1000"]);
        assert_eq!(
            [50.0, 100.0, 1000.0].map(|v| axis.place(v)),
            [0.0, 1.0, 2.0]
        );
    }

    #[test]
    fn many_labels_are_thinned() {
        let names: Vec<String> = (0..30).map(|i| format!("{}", 1000 + i)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (mut axis, _) = Axis::values("queue", &names);
        axis.thin(75);
        assert_eq!(axis.ticks.len(), 10);
        assert_eq!(axis.ticks[1], (3.0, "1003".to_owned()));
        axis.thin(75);
        assert_eq!(axis.ticks.len(), 10);
    }

    #[test]
    fn names_and_mixed_units_stand_at_equal_distances() {
        let (axis, places) = Axis::values("congestion", &["cubic", "bbr"]);
        assert_eq!(
            (labels(&axis), places),
            (vec!["cubic", "bbr"], vec![0.0, 1.0])
        );
        let (_, places) = Axis::values("buffer", &["500kB", "1MB"]);
        assert_eq!(places, [0.0, 1.0]);
    }
}
