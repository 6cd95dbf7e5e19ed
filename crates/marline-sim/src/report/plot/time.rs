//! One run over time.

use plotters::element::{PathElement, Polygon};
use plotters::prelude::Color;

use super::axis::Axis;
use super::frame::{self, Frame, Key, Legend, Part};
use super::palette::Look;
use super::{About, PlotError};
use crate::report::words;
use crate::results::{Run, Series};

/// More points than this add nothing to a plot: steps are averaged until there are fewer.
const POINTS: usize = 600;

/// A quantity of several paths, links or workloads: one plot.
#[derive(Clone, Debug)]
pub struct Panel<'a> {
    /// The quantity, such as `throughput_mbps`.
    pub quantity: &'a str,
    /// Whose, and the series.
    pub series: Vec<(&'a str, &'a Series)>,
    /// They add up: drawn upon each other.
    pub stacked: bool,
}

impl Panel<'_> {
    /// The quantity in words and with its unit.
    pub fn title(&self) -> String {
        let of = self.series.first().map_or("", |series| series.0);
        match of {
            "" => words::quantity(self.quantity),
            _ => words::quantity(&format!("{of}.{}", self.quantity)),
        }
    }

    /// Is there anything to see in it: a value that is not zero?
    pub fn shows_something(&self) -> bool {
        let mut values = self.series.iter().flat_map(|(_, series)| &series.values);
        values.any(|value| *value != 0.0)
    }
}

/// The plots that show `run` over time: one a quantity.
pub fn panels(run: &Run) -> Vec<Panel<'_>> {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for (name, series) in &run.series {
        let (of, quantity) = name.rsplit_once('.').unwrap_or(("", name));
        let stacked = of.starts_with("path.") && quantity.starts_with("throughput");
        let panel = panels.iter_mut().find(|panel| {
            panel.quantity == quantity
                && panel.stacked == stacked
                && panel.series[0].1.unit == series.unit
        });
        match panel {
            Some(panel) => panel.series.push((of, series)),
            None => panels.push(Panel {
                quantity,
                series: vec![(of, series)],
                stacked,
            }),
        }
    }
    panels.sort_by_key(|panel| !panel.stacked);
    panels
}

/// Draws one panel.
///
/// # Errors
/// If the plot cannot be drawn.
pub fn time(panel: &Panel<'_>, about: &About<'_>) -> Result<String, PlotError> {
    let mut below: Vec<(f64, f64)> = Vec::new();
    let mut curves: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    for (of, series) in &panel.series {
        let mut curve = steps(series);
        if panel.stacked {
            for (point, base) in curve.iter_mut().zip(&below) {
                point.1 += base.1;
            }
            below.clone_from(&curve);
        }
        curves.push((of, curve));
    }
    let all = || curves.iter().flat_map(|(_, curve)| curve);
    let end = all().map(|point| point.0).fold(0.0, f64::max);
    let x = Axis::between("time (s)".to_owned(), 0.0, end);
    let values = all().map(|point| point.1).filter(|value| value.is_finite());
    let most = values.clone().fold(0.0, f64::max);
    // Zero is no delay: nothing was written then.
    let positive = values.filter(|value| *value > 0.0);
    let unit = panel.series[0].1.unit.clone();
    let y = match &*unit {
        "ms" => Axis::suited(unit, positive),
        _ => Axis::between(unit, 0.0, 1.05 * most),
    };
    let key = if panel.stacked { Key::Area } else { Key::Line };
    let series = curves.iter().enumerate().map(|(i, (of, _))| {
        let name = if of.is_empty() { panel.quantity } else { *of };
        (name.to_owned(), Look::of(i), key)
    });
    let mut notes = Vec::new();
    if y.is_log() {
        notes.push("The upright axis is logarithmic.".to_owned());
    }
    let frame = Frame {
        title: about.title,
        subtitle: about.subtitle,
        notes,
        height: 560,
        x: &x,
        y: &y,
        grid: (true, true),
        series: series.collect(),
        legend: Legend::Names,
    };
    let place = |point: &(f64, f64)| (x.place(point.0), y.place(point.1));
    frame::draw(&frame, |part, i, chart| {
        let look = frame.series[i].1;
        let points: Vec<(f64, f64)> = curves[i].1.iter().map(place).collect();
        match part {
            Part::Area if panel.stacked => {
                let below = i.checked_sub(1).map(|below| &curves[below].1);
                let below: Vec<(f64, f64)> = below.map_or_else(
                    || vec![(0.0, 0.0), (end, 0.0)],
                    |curve| curve.iter().map(place).collect(),
                );
                let area: Vec<(f64, f64)> =
                    points.into_iter().chain(below.into_iter().rev()).collect();
                chart.draw_series([Polygon::new(area, frame::fill(&look))])?;
            }
            Part::Line if !panel.stacked => {
                chart.draw_series([PathElement::new(points, look.colour.stroke_width(4))])?;
            }
            _ => {}
        }
        Ok(())
    })
}

/// The corners of the series drawn as steps.
fn steps(series: &Series) -> Vec<(f64, f64)> {
    let group = series.values.len().div_ceil(POINTS).max(1);
    let width = series.step_s * group as f64;
    let mut corners = Vec::new();
    for (i, values) in series.values.chunks(group).enumerate() {
        let value = values.iter().sum::<f64>() / values.len() as f64;
        let from = i as f64 * width;
        corners.push((from, value));
        corners.push((from + series.step_s * values.len() as f64, value));
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_series_are_averaged_and_keep_their_end() {
        let series = Series {
            unit: "kB".to_owned(),
            step_s: 0.5,
            values: (0..1500).map(|i| f64::from(i % 3)).collect(),
        };
        let corners = steps(&series);
        assert_eq!(corners.len(), 2 * 500);
        assert!(corners.iter().all(|corner| (corner.1 - 1.0).abs() < 1e-12));
        assert_eq!(corners.last().unwrap().0, 750.0);
    }
}
