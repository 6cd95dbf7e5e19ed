//! Where the panels of a sheet stand, and what their axes are.

use super::super::axis::Axis;
use super::super::frame::WIDTH;
use super::{Panel, Places, Point, Sheet};

/// Text of panels and legend (pixels).
pub(super) const FONT: f64 = 23.0;
/// Width of a character of it, on average: somewhat more than in most fonts (pixels).
pub(super) const CHARACTER: usize = 13;
/// Between panels, and around all (pixels).
pub(super) const GAP: u32 = 24;
/// The sheet's title (pixels).
pub(super) const TITLE: u32 = 70;
/// Lines of a panel's heading are so high (pixels).
pub(super) const LINE: u32 = 30;
/// Ticks and title of the axis at the bottom (pixels).
pub(super) const BELOW: u32 = 68;
/// Height of a plot with numbers from left to right (pixels).
const PLOT: u32 = 330;
/// Height of a name with one marker, and what each further one adds (pixels).
const NAME: f64 = 36.0;
pub(super) const MARKER: f64 = 17.0;
/// Names that are longer than this take a sheet's whole or half width (characters).
const LONG: usize = 22;
/// Intervals may take so much of the axis of values on each side of all else (share of what that
/// takes).
const BEYOND: f64 = 0.5;
/// More places than this are a cloud: small markers without lines, intervals and brackets.
pub(super) const CLOUD: usize = 40;

/// Where a panel stands, and its axes.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) left: u32,
    pub(super) top: u32,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) heading: Vec<String>,
    /// Below it, what is measured, where the axis does not say so.
    pub(super) quantity: Vec<String>,
    /// Its heading and those beside it (pixels).
    pub(super) above: u32,
    pub(super) values: Axis,
    pub(super) places: Axis,
    /// The series that it shows.
    pub(super) series: Vec<usize>,
    pub(super) is_cloud: bool,
    /// Room left of the plot.
    pub(super) beside: u32,
}

/// Where everything stands, and where the panels end.
pub(super) fn slots(sheet: &Sheet) -> (Vec<Slot>, u32) {
    let columns = columns(sheet);
    let mut slots = Vec::new();
    let mut top = TITLE;
    for row in rows(&sheet.panels, columns) {
        // A row that is not full takes the whole width all the same.
        let width = (WIDTH - GAP) / row.len().max(1) as u32 - GAP;
        let headings = row.iter().map(|panel| wrap(&panel.heading, width));
        let quantities = row.iter().map(|panel| match panel.places {
            // Its axis is too short for all of these words.
            Places::Numbers(_) => wrap(&values(sheet, panel).title, width),
            Places::Names(_) => Vec::new(),
        });
        let quantities: Vec<Vec<String>> = quantities.collect();
        let headings: Vec<Vec<String>> = headings.collect();
        let lines = headings.iter().zip(&quantities);
        let lines = lines.map(|(heading, quantity)| heading.len() + quantity.len());
        let lines = lines.max().unwrap_or(1) as u32;
        let plot = row.iter().map(height).max().unwrap_or(PLOT);
        let height = lines * LINE + 4 + plot + BELOW;
        let words = headings.into_iter().zip(quantities);
        for (column, (panel, (heading, quantity))) in row.iter().zip(words).enumerate() {
            let values = values(sheet, panel);
            let beside = match &panel.places {
                Places::Names(names) => longest(names.iter().map(String::as_str)) as u32 + 24,
                Places::Numbers(_) => longest(values.ticks.iter().map(|tick| &*tick.1)) as u32 + 24,
            };
            let plot_width = width.saturating_sub(beside).max(1);
            slots.push(Slot {
                left: GAP + column as u32 * (width + GAP),
                top,
                width,
                height,
                heading,
                quantity,
                above: lines * LINE + 4,
                places: places(sheet, panel, plot_width),
                values: match panel.places {
                    Places::Names(_) => thinned(values, plot_width),
                    Places::Numbers(_) => values,
                },
                series: series(panel),
                is_cloud: is_cloud(sheet, panel),
                beside,
            });
        }
        top += height + GAP;
    }
    (slots, top)
}

/// Rows of at most so many panels. What belongs together begins a row, unless it fits into what is
/// left of one.
fn rows(panels: &[Panel], columns: usize) -> Vec<&[Panel]> {
    let mut rows = Vec::new();
    let (mut start, mut at) = (0, 0);
    for group in panels.chunk_by(|a, b| a.group == b.group) {
        let free = columns - (at - start);
        if group.len() > free && at > start {
            rows.push(&panels[start..at]);
            start = at;
        }
        at += group.len();
        while at - start >= columns {
            rows.push(&panels[start..start + columns]);
            start += columns;
        }
    }
    if at > start {
        rows.push(&panels[start..at]);
    }
    rows
}

/// Panels side by side.
fn columns(sheet: &Sheet) -> usize {
    let names = sheet.panels.iter().filter_map(|panel| match &panel.places {
        Places::Names(names) => names.iter().map(|name| name.chars().count()).max(),
        Places::Numbers(_) => None,
    });
    let groups = sheet.panels.chunk_by(|a, b| a.group == b.group);
    let most = groups.map(<[Panel]>::len).max().unwrap_or(1);
    let is_long = names.max().unwrap_or(0) > LONG;
    match sheet.panels.len() {
        0 | 1 => 1,
        _ if is_long => 2,
        2 | 4 => 2,
        _ if most == 2 => 2,
        _ if most % 4 == 0 => 4,
        _ => 3,
    }
}

fn height(panel: &Panel) -> u32 {
    match &panel.places {
        Places::Numbers(_) => PLOT,
        Places::Names(names) => heights(panel, names).iter().map(|row| row.1).sum::<f64>() as u32,
    }
}

/// The names and the heights of their rows (pixels).
fn heights<'a>(panel: &Panel, names: &'a [String]) -> Vec<(&'a str, f64)> {
    let rows = names.iter().enumerate();
    rows.map(|(row, name)| {
        let markers = together(panel, row as f64).len().saturating_sub(1);
        (name.as_str(), NAME + MARKER * markers as f64)
    })
    .collect()
}

/// The series at a place.
pub(super) fn together(panel: &Panel, at: f64) -> Vec<usize> {
    let here = panel.points.iter().filter(|point| point.at == at);
    sorted(here.map(|point| point.series))
}

/// The series of a panel, in the sheet's order.
fn series(panel: &Panel) -> Vec<usize> {
    sorted(panel.points.iter().map(|point| point.series))
}

fn sorted(series: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut series: Vec<usize> = series.collect();
    series.sort_unstable();
    series.dedup();
    series
}

/// The places of a panel and of those that belong to it, each once.
fn standing(sheet: &Sheet, panel: &Panel) -> Vec<f64> {
    let alike = |one: &&Panel| one.group == panel.group && one.places == panel.places;
    let points = sheet
        .panels
        .iter()
        .filter(alike)
        .flat_map(|one| &one.points);
    let mut places: Vec<f64> = points.map(|point| point.at).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

fn is_cloud(sheet: &Sheet, panel: &Panel) -> bool {
    matches!(panel.places, Places::Numbers(_)) && standing(sheet, panel).len() > CLOUD
}

/// The axis of values of all panels of a group.
fn values(sheet: &Sheet, panel: &Panel) -> Axis {
    let group = sheet.panels.iter().filter(|one| one.group == panel.group);
    let points: Vec<&Point> = group.flat_map(|one| &one.points).collect();
    let mut reach: Vec<f64> = points.iter().flat_map(|point| point.reach()).collect();
    let least = reach.iter().copied().fold(f64::INFINITY, f64::min);
    let most = reach.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Wide intervals end at the edge; few measures can be below zero, and what can says so by its
    // means.
    let room = if most > least {
        BEYOND * (most - least)
    } else {
        f64::INFINITY
    };
    let floor = if least >= 0.0 {
        least.min((least - room).max(0.0))
    } else {
        least - room
    };
    for (low, high) in points.iter().filter_map(|point| point.interval) {
        reach.extend([low.max(floor), high.min(most + room)]);
    }
    let mut axis = Axis::suited(panel.quantity.clone(), reach.into_iter());
    if axis.is_log() {
        axis.title.push_str(", logarithmic");
    }
    // What lies on the edge is not cut in half.
    let margin = 0.04 * (axis.high - axis.low);
    if axis.low != 0.0 {
        axis.low -= margin;
    }
    axis.high += margin;
    axis
}

/// The other axis; ticks stand at the values, as far as there is room for them.
fn places(sheet: &Sheet, panel: &Panel, width: u32) -> Axis {
    match &panel.places {
        Places::Names(names) => Axis::rows(&heights(panel, names)),
        Places::Numbers(title) => {
            let at = standing(sheet, panel);
            let mut axis = match at[..] {
                [first, .., last] if at.len() > CLOUD => Axis::between(title.clone(), first, last),
                _ => Axis::numbers(title.clone(), &at),
            };
            let margin = 0.05 * (axis.high - axis.low);
            axis.low -= margin;
            axis.high += margin;
            thinned(axis, width)
        }
    }
}

/// The axis without ticks whose labels would touch the one before.
fn thinned(mut axis: Axis, width: u32) -> Axis {
    let scale = f64::from(width) / (axis.high - axis.low);
    let mut free = f64::NEG_INFINITY;
    axis.ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
    axis.ticks.retain(|(place, label)| {
        let half = 0.5 * (label.chars().count() * CHARACTER) as f64;
        let middle = scale * place;
        let fits = middle - half > free;
        if fits {
            free = middle + half + 0.5 * CHARACTER as f64;
        }
        fits
    });
    axis
}

/// A heading in lines that fit the width: it is broken where an axis ends.
fn wrap(heading: &str, width: u32) -> Vec<String> {
    let most = (width as usize / CHARACTER).max(8);
    let mut lines: Vec<String> = Vec::new();
    for part in heading.split_inclusive(", ") {
        match lines.last_mut() {
            Some(line) if line.chars().count() + part.trim_end().chars().count() <= most => {
                line.push_str(part);
            }
            _ => lines.push(part.to_owned()),
        }
    }
    lines
        .into_iter()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

/// Width of the longest (pixels).
pub(super) fn longest<'a>(texts: impl Iterator<Item = &'a str>) -> usize {
    texts
        .map(|text| text.chars().count() * CHARACTER)
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_touch() {
        let axis = Axis::numbers("size".to_owned(), &[144.0, 144.5, 145.0, 160.0]);
        let labels = thinned(axis, 100).ticks.into_iter().map(|tick| tick.1);
        assert_eq!(labels.collect::<Vec<_>>(), ["144", "145"]);
    }

    #[test]
    fn headings_are_broken_between_axes() {
        let lines = wrap("Figure 5, rate=25, rtt=short, congestion=new-reno", 400);
        assert_eq!(
            lines,
            ["Figure 5, rate=25, rtt=short,", "congestion=new-reno"]
        );
    }
}
