//! A measure against an axis of the scenario: one line a scheduler, with intervals.

use plotters::element::{PathElement, Polygon};
use plotters::prelude::{Color, EmptyElement};

use super::axis::{Axis, End};
use super::frame::{self, Frame, Key, Legend, Part};
use super::scale::Scale;
use super::{About, PlotError};
use crate::report::words::unit_in_words;
use crate::results::{Estimate, Group};

/// Half of a cap's width, and how much wider each scheduler's is than that of the one before, so
/// that those that stand upon each other can be told apart (pixels).
const CAP: i32 = 6;
const WIDER: i32 = 2;

/// Characters of labels that fit below a plot.
const MOST_LABELS: usize = 75;

/// Plots `measure` of `groups`, which differ in the value of `axis` and in the scheduler.
///
/// Values stand side by side at equal distances, and every scheduler at the value itself.
///
/// # Errors
/// If the plot cannot be drawn.
pub fn lines(
    groups: &[&Group<'_>],
    measure: &str,
    axis: &str,
    about: &About<'_>,
) -> Result<String, PlotError> {
    let value = |group: &Group<'_>| group.cell.get(axis).cloned().unwrap_or_default();
    let mut values: Vec<String> = Vec::new();
    let mut schedulers: Vec<&str> = Vec::new();
    for group in groups {
        if !values.contains(&value(group)) {
            values.push(value(group));
        }
        if !schedulers.contains(&group.scheduler) {
            schedulers.push(group.scheduler);
        }
    }
    let names: Vec<&str> = values.iter().map(String::as_str).collect();
    let (mut x, places) = Axis::values(axis, &names);
    x.thin(MOST_LABELS);
    let estimates: Vec<(usize, usize, Estimate)> = groups
        .iter()
        .filter_map(|group| {
            let at = values.iter().position(|known| *known == value(group))?;
            let scheduler = schedulers
                .iter()
                .position(|known| *known == group.scheduler)?;
            Some((scheduler, at, group.estimate(measure)?))
        })
        .collect();
    let known: Vec<(String, Estimate)> = estimates
        .iter()
        .map(|(of, at, estimate)| (format!("{} at {}", schedulers[*of], values[*at]), *estimate))
        .collect();
    let known: Vec<(&str, Estimate)> = known.iter().map(|(name, e)| (name.as_str(), *e)).collect();
    let scale = Scale::of_points(unit_in_words(measure).to_owned(), &known);
    let (y, notes) = (scale.axis, scale.notes);
    let series = schedulers.iter().map(|name| about.entry(name, Key::Marked));
    let frame = Frame {
        title: about.title,
        subtitle: about.subtitle,
        notes,
        height: 840,
        x: &x,
        y: &y,
        grid: (false, true),
        series: series.collect(),
        legend: Legend::Names,
    };
    frame::draw(&frame, |part, scheduler, chart| {
        let look = frame.series[scheduler].1;
        let mut own: Vec<(f64, &Estimate)> = estimates
            .iter()
            .filter(|(of, _, _)| *of == scheduler)
            .map(|(_, at, estimate)| (places[*at], estimate))
            .collect();
        own.sort_by(|a, b| a.0.total_cmp(&b.0));
        let points = own
            .iter()
            .map(|(at, estimate)| (*at, y.place(estimate.value())));
        match part {
            Part::Area => {}
            Part::Line => frame::line(chart, points.collect(), &look)?,
            Part::Marks => {
                let half = CAP + WIDER * scheduler as i32;
                for (at, estimate) in &own {
                    let Some((low, high)) = estimate.interval() else {
                        continue;
                    };
                    let ends = [(*at, y.place(low)), (*at, y.place(high))];
                    let style = look.colour.stroke_width(3);
                    chart.draw_series([PathElement::new(ends.to_vec(), style)])?;
                    for (end, value, outwards) in [(ends[0], low, 1), (ends[1], high, -1)] {
                        match y.end(value) {
                            End::Within => {
                                let cap = PathElement::new(vec![(-half, 0), (half, 0)], style);
                                chart.draw_series([EmptyElement::at(end) + cap])?;
                            }
                            End::Beyond => {
                                let arrow = vec![(0, 0), (-9, -14 * outwards), (9, -14 * outwards)];
                                let arrow = Polygon::new(arrow, look.colour.filled());
                                chart.draw_series([EmptyElement::at(end) + arrow])?;
                            }
                            End::Zero => {}
                        }
                    }
                }
                let marker = || Polygon::new(look.marker(), look.colour.filled());
                chart.draw_series(points.map(|point| EmptyElement::at(point) + marker()))?;
            }
        }
        Ok(())
    })
}
