//! A measure of one cell: a bar a scheduler, with its interval.

use plotters::element::{PathElement, Polygon, Rectangle};
use plotters::prelude::{BLACK, Color, EmptyElement};

use super::axis::{Axis, End};
use super::frame::{self, Frame, Key, Legend, Part};
use super::palette::Look;
use super::scale::Scale;
use super::{About, PlotError};
use crate::report::words::unit_in_words;
use crate::results::{Estimate, Group};

/// Plots `measure` of `groups`, which differ in the scheduler only; the first stands on top.
///
/// # Errors
/// If the plot cannot be drawn.
pub fn bars(groups: &[&Group<'_>], measure: &str, about: &About<'_>) -> Result<String, PlotError> {
    let rows: Vec<(&str, Option<Estimate>)> = groups
        .iter()
        .rev()
        .map(|group| (group.scheduler, group.estimate(measure)))
        .collect();
    let known: Vec<(&str, Estimate)> = rows
        .iter()
        .rev()
        .filter_map(|(name, estimate)| Some((*name, (*estimate)?)))
        .collect();
    let scale = Scale::from_zero(unit_in_words(measure).to_owned(), &known);
    let (x, notes) = (scale.axis, scale.notes);
    let names: Vec<&str> = rows.iter().map(|row| row.0).collect();
    let y = Axis::names(String::new(), &names);
    let series = rows.iter().map(|(name, _)| about.entry(name, Key::Area));
    let series: Vec<frame::Entry> = series.collect();
    let frame = Frame {
        title: about.title,
        subtitle: about.subtitle,
        notes,
        height: 240 + 48 * u32::try_from(rows.len()).unwrap_or(u32::MAX).min(200),
        x: &x,
        y: &y,
        grid: (true, false),
        series,
        legend: Legend::Axis,
    };
    frame::draw(&frame, |part, row, chart| {
        let (Part::Marks, Some(estimate)) = (part, rows[row].1) else {
            return Ok(());
        };
        let (at, look): (f64, Look) = (row as f64, frame.series[row].1);
        let foot = if x.is_log() { x.low } else { x.place(0.0) };
        let corners = [(foot, at - 0.3), (x.place(estimate.value()), at + 0.3)];
        chart.draw_series([Rectangle::new(corners, look.colour.mix(0.75).filled())])?;
        if let Some((low, high)) = estimate.interval() {
            let ends = [(x.place(low), at), (x.place(high), at)];
            let style = BLACK.stroke_width(3);
            chart.draw_series([PathElement::new(ends.to_vec(), style)])?;
            for (end, value, outwards) in [(ends[0], low, -1), (ends[1], high, 1)] {
                match x.end(value) {
                    End::Within => {
                        let cap = PathElement::new(vec![(0, -9), (0, 9)], style);
                        chart.draw_series([EmptyElement::at(end) + cap])?;
                    }
                    End::Beyond => {
                        let arrow = vec![(0, 0), (-14 * outwards, -9), (-14 * outwards, 9)];
                        let arrow = Polygon::new(arrow, BLACK.filled());
                        chart.draw_series([EmptyElement::at(end) + arrow])?;
                    }
                    End::Zero => {}
                }
            }
        }
        Ok(())
    })
}
