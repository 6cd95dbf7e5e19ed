//! A measure against an axis of the scenario: one line a scheduler, with error bars.

use plotters::element::{PathElement, Polygon};
use plotters::prelude::{Color, EmptyElement};

use super::axis::Axis;
use super::frame::{self, Frame, Key};
use super::palette::Look;
use super::{PlotError, label};
use crate::results::{Estimate, Group, unit};

/// Plots `measure` of `groups`, which differ in the value of `axis` and in the scheduler.
///
/// Where several schedulers stand at the same value their points are moved sideways a little, so
/// that none hides another.
///
/// # Errors
/// If the plot cannot be drawn.
pub fn lines(
    groups: &[&Group<'_>],
    measure: &str,
    axis: &str,
    title: &str,
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
    let (x, places) = Axis::values(axis, &names);
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
    let reach = estimates.iter().flat_map(|(_, _, estimate)| {
        let (low, high) = estimate
            .interval()
            .unwrap_or((estimate.value(), estimate.value()));
        [estimate.value(), low, high]
    });
    let y = Axis::linear(label(measure, unit(measure)), reach);
    let aside = 0.008 * (x.high - x.low);
    let middle = (schedulers.len() as f64 - 1.0) / 2.0;

    let frame = Frame {
        title,
        height: 840,
        x: &x,
        y: &y,
        grid: (false, true),
        legend: schedulers
            .iter()
            .enumerate()
            .map(|(i, name)| ((*name).to_owned(), Look::of(i), Key::Marked))
            .collect(),
    };
    frame::draw(&frame, |chart| {
        for scheduler in 0..schedulers.len() {
            let look = Look::of(scheduler);
            let mut own: Vec<(f64, &Estimate)> = estimates
                .iter()
                .filter(|(of, _, _)| *of == scheduler)
                .map(|(_, at, estimate)| {
                    (places[*at] + aside * (scheduler as f64 - middle), estimate)
                })
                .collect();
            own.sort_by(|a, b| a.0.total_cmp(&b.0));
            let points = own
                .iter()
                .map(|(at, estimate)| (*at, y.place(estimate.value())));
            frame::path(chart, points.clone().collect(), &look)?;
            for (at, estimate) in &own {
                let Some((low, high)) = estimate.interval() else {
                    continue;
                };
                let (low, high) = ((*at, y.place(low)), (*at, y.place(high)));
                let style = look.colour.stroke_width(3);
                chart.draw_series([PathElement::new(vec![low, high], style)])?;
                let cap = || PathElement::new(vec![(-8, 0), (8, 0)], style);
                chart.draw_series([low, high].map(|end| EmptyElement::at(end) + cap()))?;
            }
            let marker = || Polygon::new(look.marker(), look.colour.filled());
            chart.draw_series(points.map(|point| EmptyElement::at(point) + marker()))?;
        }
        Ok(())
    })
}
