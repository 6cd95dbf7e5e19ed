//! A measure of one cell: a bar a scheduler, with error bars.

use plotters::element::{PathElement, Rectangle};
use plotters::prelude::{BLACK, Color, EmptyElement};

use super::axis::Axis;
use super::frame::{self, Frame};
use super::palette::Look;
use super::{PlotError, label};
use crate::results::{Estimate, Group, unit};

/// Plots `measure` of `groups`, which differ in the scheduler only; the first stands on top.
///
/// # Errors
/// If the plot cannot be drawn.
pub fn bars(groups: &[&Group<'_>], measure: &str, title: &str) -> Result<String, PlotError> {
    let rows: Vec<(&str, Option<Estimate>)> = groups
        .iter()
        .rev()
        .map(|group| (group.scheduler, group.estimate(measure)))
        .collect();
    // Bars stand on zero, whatever the values are.
    let reach = rows.iter().filter_map(|row| row.1).flat_map(|estimate| {
        let (low, high) = estimate
            .interval()
            .unwrap_or((estimate.value(), estimate.value()));
        [0.0, estimate.value(), low, high]
    });
    let x = Axis::linear(label(measure, unit(measure)), reach);
    let names: Vec<&str> = rows.iter().map(|row| row.0).collect();
    let y = Axis::names(String::new(), &names);
    let frame = Frame {
        title,
        height: 220 + 56 * u32::try_from(rows.len()).unwrap_or(u32::MAX).min(200),
        x: &x,
        y: &y,
        grid: (true, false),
        legend: Vec::new(),
    };
    frame::draw(&frame, |chart| {
        for (row, (_, estimate)) in rows.iter().enumerate() {
            let Some(estimate) = estimate else {
                continue;
            };
            let at = row as f64;
            let look = Look::of(rows.len() - 1 - row);
            let corners = [
                (x.place(0.0), at - 0.3),
                (x.place(estimate.value()), at + 0.3),
            ];
            chart.draw_series([Rectangle::new(corners, look.colour.mix(0.75).filled())])?;
            if let Some((low, high)) = estimate.interval() {
                let (low, high) = ((x.place(low), at), (x.place(high), at));
                let style = BLACK.stroke_width(3);
                chart.draw_series([PathElement::new(vec![low, high], style)])?;
                let cap = || PathElement::new(vec![(0, -9), (0, 9)], style);
                chart.draw_series([low, high].map(|end| EmptyElement::at(end) + cap()))?;
            }
        }
        Ok(())
    })
}
