//! How often a delay is exceeded: complementary distribution functions with a logarithmic tail.

use plotters::element::Polygon;
use plotters::prelude::Color;

use super::axis::Axis;
use super::frame::{self, Frame, Key, Legend, Part};
use super::{About, PlotError};
use crate::report::words::unit_in_words;
use crate::results::{Distribution, Group};

/// One scheduler's quantiles over its seeds: tail probability, then median, lowest and highest
/// seed's value.
type Tail = Vec<(f64, f64, f64, f64)>;

/// Plots the distribution `name` of `groups`, which differ in the scheduler only. The line is the
/// median over seeds, the band reaches from the lowest to the highest seed.
///
/// # Errors
/// If the plot cannot be drawn.
pub fn tail(groups: &[&Group<'_>], name: &str, about: &About<'_>) -> Result<String, PlotError> {
    let tails: Vec<(&str, Tail)> = groups
        .iter()
        .map(|group| {
            let own = group
                .runs
                .iter()
                .filter_map(|run| run.distributions.get(name));
            (group.scheduler, over_seeds(&own.collect::<Vec<_>>()))
        })
        .collect();
    let all = || tails.iter().flat_map(|(_, tail)| tail);
    let x = Axis::suited(
        unit_in_words(name).to_owned(),
        all().flat_map(|point| [point.2, point.3]),
    );
    let rarest = all().map(|point| point.0).fold(1.0, f64::min);
    let y = Axis::log("share of values above".to_owned(), rarest.min(0.1), 1.0);
    let mut notes = Vec::new();
    if x.is_log() {
        notes.push("Both axes are logarithmic.".to_owned());
    }
    let series = tails.iter().map(|(name, _)| about.entry(name, Key::Line));
    let frame = Frame {
        title: about.title,
        subtitle: about.subtitle,
        notes,
        height: 840,
        x: &x,
        y: &y,
        grid: (true, true),
        series: series.collect(),
        legend: Legend::Names,
    };
    // Many bands upon each other must not hide the lines.
    let opacity = if tails.len() > 5 { 0.05 } else { 0.15 };
    frame::draw(&frame, |part, i, chart| {
        let (look, tail) = (frame.series[i].1, &tails[i].1);
        let at = |value: f64, above: f64| (x.place(value), y.place(above));
        match part {
            Part::Area => {
                let up = tail.iter().map(|point| at(point.2, point.0));
                let down = tail.iter().rev().map(|point| at(point.3, point.0));
                let band: Vec<(f64, f64)> = up.chain(down).collect();
                chart.draw_series([Polygon::new(band, look.colour.mix(opacity).filled())])?;
            }
            Part::Line => {
                let points = tail.iter().map(|point| at(point.1, point.0));
                frame::line(chart, points.collect(), &look)?;
            }
            Part::Marks => {}
        }
        Ok(())
    })
}

/// The quantiles that all seeds have. The largest of `count` values stands at 1 / `count`.
fn over_seeds(distributions: &[&Distribution]) -> Tail {
    let Some((first, others)) = distributions.split_first() else {
        return Tail::new();
    };
    let at = |distribution: &Distribution, p: f64| {
        distribution
            .quantiles
            .iter()
            .find(|quantile| quantile.0 == p)
            .map(|quantile| quantile.1)
    };
    let mut tail = Tail::new();
    for &(p, value) in &first.quantiles {
        let mut values = vec![value];
        values.extend(others.iter().filter_map(|other| at(other, p)));
        let above = match p {
            1.0 => 1.0 / first.count.max(1) as f64,
            _ => 1.0 - p,
        };
        // What is rarer than one value is not known from them.
        if values.len() < distributions.len() || above * (first.count as f64) < 0.999 {
            continue;
        }
        values.sort_by(f64::total_cmp);
        let n = values.len();
        let median = (values[(n - 1) / 2] + values[n / 2]) / 2.0;
        tail.push((above, median, values[0], values[n - 1]));
    }
    tail
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(count: u64, quantiles: &[(f64, f64)]) -> Distribution {
        Distribution {
            unit: "ms".to_owned(),
            count,
            quantiles: quantiles.to_vec(),
        }
    }

    #[test]
    fn seeds_give_a_median_and_a_band() {
        let runs = [
            of(100, &[(0.0, 1.0), (0.5, 10.0), (1.0, 50.0)]),
            of(100, &[(0.0, 2.0), (0.5, 30.0), (1.0, 40.0)]),
            of(100, &[(0.0, 3.0), (0.5, 12.0), (1.0, 90.0)]),
        ];
        assert_eq!(
            over_seeds(&runs.iter().collect::<Vec<_>>()),
            [
                (1.0, 2.0, 1.0, 3.0),
                (0.5, 12.0, 10.0, 30.0),
                (0.01, 50.0, 40.0, 90.0)
            ]
        );
    }

    #[test]
    fn what_is_rarer_than_one_value_is_left_out() {
        let runs = [of(10, &[(0.5, 1.0), (0.9, 2.0), (0.99, 3.0), (1.0, 3.0)])];
        let tail = over_seeds(&runs.iter().collect::<Vec<_>>());
        assert_eq!(tail.len(), 3);
        assert_eq!(over_seeds(&[]), []);
    }
}
