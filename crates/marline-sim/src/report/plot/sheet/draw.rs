//! Draws a sheet.

use plotters::coord::Shift;
use plotters::element::{Circle, DashedPathElement, PathElement, Polygon, Text};
use plotters::prelude::{
    BLACK, ChartBuilder, Color, DrawingArea, EmptyElement, IntoDrawingArea, RGBColor, SVGBackend,
    ShapeStyle, WHITE,
};
use plotters::style::TextStyle;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::super::PlotError;
use super::super::axis::End;
use super::super::frame::{self, Chart, Error, GREY, WIDTH, bold, escape, plain};
use super::super::palette::Look;
use super::layout::{BELOW, CHARACTER, FONT, GAP, LINE, MARKER, Slot, slots, together};
use super::{Panel, Places, Point, Sheet};

/// A line of the legend (pixels).
const ENTRY: u32 = 42;
/// A key of the legend, with the gap before its name (pixels).
const KEY: u32 = 84;
/// Radius of a published value's ring: around a marker it still shows (pixels).
const RING: i32 = 14;
/// Half of what a bound's bracket is wide (pixels).
const BRACKET: i32 = 12;
/// How far a bracket's legs point to where the mean may lie (pixels).
const LEG: i32 = 7;
/// Half of what a cross is wide, elsewhere and in a cloud (pixels).
const LARGE: i32 = 11;
const SMALL: i32 = 6;
/// What is missed.
const CROSS: RGBColor = RGBColor(0xC0, 0x00, 0x00);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws it as an SVG file of its own.
///
/// # Errors
/// If it cannot be drawn.
pub fn sheet(sheet: &Sheet) -> Result<String, PlotError> {
    let (slots, end) = slots(sheet);
    let legend = legend(sheet, &slots);
    let height = end + legend.len() as u32 * ENTRY + GAP;
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
    let drawn = whole(&area, sheet, &slots, &legend, end).and_then(|()| area.present());
    drop(area);
    drawn.map_err(|error| PlotError::new(&error))?;
    let name = format!("<svg role=\"img\" aria-label=\"{}\" ", escape(&sheet.title));
    Ok(svg.replacen("<svg ", &name, 1))
}

fn whole(
    area: &Area<'_>,
    sheet: &Sheet,
    slots: &[Slot],
    legend: &[Vec<Entry>],
    end: u32,
) -> Result<(), Error> {
    // A page may be dark; the text is black.
    area.fill(&WHITE)?;
    let middle = Pos::new(HPos::Center, VPos::Top);
    let title = TextStyle::from(bold(FONT + 7.0)).pos(middle);
    area.draw_text(&sheet.title, &title, (WIDTH as i32 / 2, 18))?;
    for (panel, at) in sheet.panels.iter().zip(slots) {
        let (left, top) = (at.left as i32, at.top as i32);
        let inside = area.clone().shrink((left, top), (at.width, at.height));
        draw_panel(&inside, panel, at)?;
    }
    for (row, entries) in legend.iter().enumerate() {
        let y = (end + row as u32 * ENTRY + ENTRY / 2) as i32;
        let mut x = GAP as i32;
        for entry in entries {
            entry.draw(area, (x, y))?;
            x += entry.width() as i32;
        }
    }
    Ok(())
}

fn draw_panel(area: &Area<'_>, panel: &Panel, at: &Slot) -> Result<(), Error> {
    for (row, line) in at.heading.iter().enumerate() {
        let style = TextStyle::from(bold(FONT));
        area.draw_text(line, &style, (4, row as i32 * LINE as i32))?;
    }
    for (row, line) in at.quantity.iter().enumerate() {
        let row = (at.heading.len() + row) as i32;
        area.draw_text(line, &TextStyle::from(plain(FONT)), (4, row * LINE as i32))?;
    }
    let is_names = matches!(panel.places, Places::Names(_));
    let (x, y) = if is_names {
        (&at.values, &at.places)
    } else {
        (&at.places, &at.values)
    };
    let mut chart = ChartBuilder::on(area)
        .margin_top(at.above)
        .margin_right(14)
        .x_label_area_size(BELOW)
        .y_label_area_size(at.beside)
        .build_cartesian_2d(x.clone(), y.clone())?;
    let mut mesh = chart.configure_mesh();
    mesh.max_light_lines(0)
        .bold_line_style(GREY.stroke_width(1))
        .axis_style(BLACK.stroke_width(2))
        .label_style(plain(FONT))
        .axis_desc_style(plain(FONT))
        .x_desc(x.title.as_str());
    mesh.draw()?;
    for bound in common(panel) {
        let ends = if is_names {
            let at = x.place(bound);
            vec![(at, y.low), (at, y.high)]
        } else {
            let at = y.place(bound);
            vec![(x.low, at), (x.high, at)]
        };
        chart.draw_series([DashedPathElement::new(ends, 12, 8, BLACK.stroke_width(2))])?;
    }
    for &series in &at.series {
        let points = panel.points.iter();
        let mut points: Vec<&Point> = points.filter(|point| point.series == series).collect();
        points.sort_by(|a, b| a.at.total_cmp(&b.at));
        draw_series(&mut chart, panel, at, series, &points)?;
    }
    Ok(())
}

/// Bounds that all points of a panel have: they are lines across it.
fn common(panel: &Panel) -> Vec<f64> {
    let same = |of: fn(&Point) -> Option<f64>| {
        let first = of(panel.points.first()?)?;
        let all = panel.points.iter().all(|point| of(point) == Some(first));
        all.then_some(first)
    };
    [same(|point| point.least), same(|point| point.most)]
        .into_iter()
        .flatten()
        .collect()
}

fn draw_series(
    chart: &mut Chart<'_, '_>,
    panel: &Panel,
    at: &Slot,
    series: usize,
    points: &[&Point],
) -> Result<(), Error> {
    let look = Look::of(series);
    let is_names = matches!(panel.places, Places::Names(_));
    let place = |point: &Point, value: f64| {
        let value = at.values.place(value);
        if is_names {
            let row = at.places.ticks.get(point.at as usize);
            let steps = steps(&together(panel, point.at), series);
            (value, row.map_or(0.0, |row| row.0) - MARKER * steps)
        } else {
            (at.places.place(point.at), value)
        }
    };
    let means = points.iter();
    let means = means.filter_map(|point| Some((*point, place(point, point.value?))));
    let means: Vec<(&Point, (f64, f64))> = means.collect();
    if !is_names && !at.is_cloud {
        frame::path(chart, means.iter().map(|mean| mean.1).collect(), &look)?;
    }
    let lines = common(panel);
    if !at.is_cloud {
        for point in points {
            for (bound, inwards) in [(point.least, 1), (point.most, -1)] {
                if let Some(bound) = bound.filter(|bound| !lines.contains(bound)) {
                    let at = place(point, bound);
                    let bracket = bracket(is_names, inwards);
                    chart.draw_series([EmptyElement::at(at) + bracket])?;
                }
            }
            if let Some((low, high)) = point.interval {
                let ends = [place(point, low), place(point, high)];
                let style = look.colour.stroke_width(3);
                chart.draw_series([PathElement::new(ends.to_vec(), style)])?;
                for (end, value, outwards) in [(ends[0], low, -1), (ends[1], high, 1)] {
                    if at.values.end(value) == End::Beyond {
                        let arrow = Polygon::new(arrow(is_names, outwards), look.colour.filled());
                        chart.draw_series([EmptyElement::at(end) + arrow])?;
                    }
                }
            }
        }
    }
    for (_, mean) in &means {
        let marker = if at.is_cloud {
            vec![(0, -5), (5, 0), (0, 5), (-5, 0)]
        } else {
            look.marker()
        };
        let marker = Polygon::new(marker, look.colour.filled());
        chart.draw_series([EmptyElement::at(*mean) + marker])?;
    }
    for point in points {
        if let Some(published) = point.published {
            let ring = Circle::new((0, 0), RING, look.colour.stroke_width(4));
            chart.draw_series([EmptyElement::at(place(point, published)) + ring])?;
        }
        if point.missed {
            let bound = point.least.or(point.most).unwrap_or(0.0);
            let middle = place(point, point.value.unwrap_or(bound));
            for stroke in cross(if at.is_cloud { SMALL } else { LARGE }) {
                chart.draw_series([EmptyElement::at(middle) + stroke])?;
            }
        }
    }
    Ok(())
}

/// How far a series stands aside, so that none hides another: steps from the middle of all at the
/// place.
fn steps(all: &[usize], series: usize) -> f64 {
    let own = all.iter().position(|known| *known == series);
    own.unwrap_or(0) as f64 - 0.5 * (all.len() as f64 - 1.0)
}

/// A bound: a stroke whose legs point to where the mean may lie; `inwards` is 1 for more, -1 for
/// less.
fn bracket(is_names: bool, inwards: i32) -> PathElement<(i32, i32)> {
    let corners = [(-BRACKET, LEG), (-BRACKET, 0), (BRACKET, 0), (BRACKET, LEG)];
    let corners = corners.map(|(along, leg)| {
        if is_names {
            (inwards * leg, along / 2)
        } else {
            (along, -inwards * leg)
        }
    });
    PathElement::new(corners.to_vec(), BLACK.stroke_width(2))
}

/// The head of an arrow at the axis' end; `outwards` is 1 where that is the upper one.
fn arrow(is_names: bool, outwards: i32) -> Vec<(i32, i32)> {
    let corners = [(0, 0), (-15 * outwards, -9), (-15 * outwards, 9)];
    let turned = |(along, across): (i32, i32)| match is_names {
        true => (along, across),
        false => (across, -along),
    };
    corners.map(turned).to_vec()
}

fn cross(half: i32) -> [PathElement<(i32, i32)>; 2] {
    let style = ShapeStyle::from(CROSS).stroke_width(3);
    let stroke = |from, to| PathElement::new(vec![from, to], style);
    [
        stroke((-half, -half), (half, half)),
        stroke((-half, half), (half, -half)),
    ]
}

/// What the legend explains.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Key {
    Series(usize),
    Published,
    Interval,
    Cut,
    Bound,
    Missed,
}

#[derive(Debug)]
struct Entry {
    key: Key,
    name: String,
}

impl Entry {
    fn width(&self) -> u32 {
        KEY + (self.name.chars().count() * CHARACTER) as u32 + GAP
    }

    fn draw(&self, area: &Area<'_>, (x, y): (i32, i32)) -> Result<(), Error> {
        let middle = (x + KEY as i32 / 2 - 6, y);
        match self.key {
            Key::Series(series) => {
                let look = Look::of(series);
                frame::key(area, (x, y), &look)?;
            }
            Key::Published => area.draw(&Circle::new(middle, RING, BLACK.stroke_width(4)))?,
            Key::Interval => {
                let ends = vec![(middle.0 - 26, y), (middle.0 + 26, y)];
                area.draw(&PathElement::new(ends, BLACK.stroke_width(3)))?;
                let marker = Polygon::new(vec![(0, -9), (9, 0), (0, 9), (-9, 0)], BLACK.filled());
                area.draw(&(EmptyElement::at(middle) + marker))?;
            }
            Key::Cut => {
                let ends = vec![(middle.0 - 26, y), (middle.0 + 20, y)];
                area.draw(&PathElement::new(ends, BLACK.stroke_width(3)))?;
                let head = Polygon::new(arrow(true, 1), BLACK.filled());
                area.draw(&(EmptyElement::at((middle.0 + 26, y)) + head))?;
            }
            Key::Bound => {
                area.draw(&(EmptyElement::at((middle.0 - 26, y)) + bracket(true, 1)))?;
                area.draw(&(EmptyElement::at((middle.0 - 4, y)) + bracket(true, -1)))?;
                let line = vec![(middle.0 + 10, y - 14), (middle.0 + 10, y + 14)];
                area.draw(&DashedPathElement::new(line, 8, 4, BLACK.stroke_width(2)))?;
            }
            Key::Missed => {
                for stroke in cross(LARGE) {
                    area.draw(&(EmptyElement::at(middle) + stroke))?;
                }
            }
        }
        let style = TextStyle::from(plain(FONT)).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(self.name.clone(), (x + KEY as i32, y), style))
    }
}

/// The entries, in lines as long as the sheet is wide.
fn legend(sheet: &Sheet, slots: &[Slot]) -> Vec<Vec<Entry>> {
    let points = || sheet.panels.iter().flat_map(|panel| &panel.points);
    let series = sheet.series.iter().enumerate();
    let mut entries: Vec<Entry> = series
        .map(|(i, name)| Entry {
            key: Key::Series(i),
            name: name.clone(),
        })
        .collect();
    let mut add = |key, name: &str, is_there: bool| {
        if is_there {
            entries.push(Entry {
                key,
                name: name.to_owned(),
            });
        }
    };
    let is_published = points().any(|point| point.published.is_some());
    add(Key::Published, "published", is_published);
    let has_interval = points().any(|point| point.interval.is_some());
    add(Key::Interval, "mean, 95 % interval", has_interval);
    let is_cut = sheet.panels.iter().zip(slots).any(|(panel, at)| {
        let ends = panel.points.iter().filter_map(|point| point.interval);
        let mut ends = ends.flat_map(|(low, high)| [low, high]);
        !at.is_cloud && ends.any(|end| at.values.end(end) == End::Beyond)
    });
    add(Key::Cut, "interval goes on beyond the axis", is_cut);
    let has_bound = points().any(|point| point.least.or(point.most).is_some());
    add(Key::Bound, "bounds", has_bound);
    add(Key::Missed, "missed", points().any(|point| point.missed));
    let mut lines: Vec<Vec<Entry>> = Vec::new();
    let mut used = u32::MAX;
    for entry in entries {
        let width = entry.width();
        if used.saturating_add(width) > WIDTH - GAP {
            lines.push(Vec::new());
            used = 0;
        }
        used += width;
        if let Some(line) = lines.last_mut() {
            line.push(entry);
        }
    }
    lines
}
