//! What all plots have: title, axes with units, a legend beside the plot.

use plotters::chart::ChartContext;
use plotters::coord::cartesian::Cartesian2d;
use plotters::element::{DashedPathElement, PathElement, Polygon};
use plotters::prelude::{
    BLACK, ChartBuilder, Color, DrawingArea, DrawingAreaErrorKind, EmptyElement, IntoDrawingArea,
    IntoFont, RGBColor, SVGBackend, ShapeStyle,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontDesc, FontFamily, FontStyle, TextStyle};

use super::PlotError;
use super::axis::Axis;
use super::palette::Look;

/// The backend rounds to whole pixels, so plots are drawn at twice the size at which they show.
pub(super) const WIDTH: u32 = 1560;
const FONT: f64 = 27.0;
/// Width of a character, on average (pixels).
pub(super) const CHARACTER: usize = 15;
/// Longest name in a legend (characters).
const NAME: usize = 26;
pub(super) const GREY: RGBColor = RGBColor(0xD0, 0xD0, 0xD0);

pub(super) type Error = DrawingAreaErrorKind<std::io::Error>;
pub(super) type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

/// What the legend shows beside a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Key {
    /// A line with markers.
    Marked,
    /// A line.
    Line,
    /// A filled area.
    Area,
}

/// A plot without its data.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    pub(super) height: u32,
    pub(super) x: &'a Axis,
    pub(super) y: &'a Axis,
    /// Horizontal grid lines only, or both.
    pub(super) grid: (bool, bool),
    pub(super) legend: Vec<(String, Look, Key)>,
}

/// Draws the frame and then, inside it, what `body` draws.
pub(super) fn draw(
    frame: &Frame<'_>,
    body: impl FnOnce(&mut Chart<'_, '_>) -> Result<(), Error>,
) -> Result<String, PlotError> {
    let mut svg = String::new();
    let rows = u32::try_from(frame.legend.len()).unwrap_or(u32::MAX);
    let height = frame
        .height
        .max(rows.saturating_mul(40).saturating_add(140));
    let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
    let drawn = inside(&area, frame, body).and_then(|()| area.present());
    drop(area);
    drawn.map_err(|error| PlotError(error.to_string()))?;
    // The page says which language it speaks; in it the name space is understood.
    let name = format!("<svg role=\"img\" aria-label=\"{}\" ", escape(frame.title));
    Ok(svg
        .replacen("<svg ", &name, 1)
        .replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1))
}

fn inside(
    area: &Area<'_>,
    frame: &Frame<'_>,
    body: impl FnOnce(&mut Chart<'_, '_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let names = frame
        .legend
        .iter()
        .map(|entry| entry.0.chars().count().min(NAME));
    let beside = names
        .max()
        .map_or(20, |longest| (longest * CHARACTER + 110) as i32);
    let (left, right) = area.split_horizontally(WIDTH as i32 - beside);
    let ticks = frame
        .y
        .ticks
        .iter()
        .map(|tick| tick.1.chars().count().min(NAME));
    let labels = ticks.max().unwrap_or(1) * CHARACTER + 56;
    let (x, y) = (frame.x, frame.y);
    let mut chart = ChartBuilder::on(&left)
        .caption(frame.title, bold(FONT + 5.0))
        .margin(14)
        .margin_right(30)
        .x_label_area_size(84)
        .y_label_area_size(labels as u32)
        .build_cartesian_2d(x.clone(), y.clone())?;
    let y_tick = |place: &f64| shorten(&y.tick(*place));
    let mut mesh = chart.configure_mesh();
    mesh.max_light_lines(0)
        .bold_line_style(GREY.stroke_width(1))
        .axis_style(BLACK.stroke_width(2))
        .label_style(plain(FONT))
        .axis_desc_style(plain(FONT))
        .x_desc(x.title.as_str())
        .y_desc(y.title.as_str())
        .y_label_formatter(&y_tick);
    if !frame.grid.0 {
        mesh.disable_x_mesh();
    }
    if !frame.grid.1 {
        mesh.disable_y_mesh();
    }
    mesh.draw()?;
    body(&mut chart)?;
    for (row, (name, look, key)) in frame.legend.iter().enumerate() {
        let y = 86 + 40 * row as i32;
        entry(&right, y, look, *key)?;
        let style = TextStyle::from(plain(FONT)).pos(Pos::new(HPos::Left, VPos::Center));
        right.draw_text(&shorten(name), &style, (84, y))?;
    }
    Ok(())
}

fn entry(area: &Area<'_>, y: i32, look: &Look, key: Key) -> Result<(), Error> {
    if key == Key::Area {
        let corners = vec![(14, y - 12), (66, y - 12), (66, y + 12), (14, y + 12)];
        return area.draw(&Polygon::new(corners, fill(look)));
    }
    dashes(area, (8, y), look)?;
    if key == Key::Marked {
        marker(area, (40, y), look)?;
    }
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// A line with a marker, as a legend shows it, from `(x, y)` on.
pub(super) fn key(area: &Area<'_>, (x, y): (i32, i32), look: &Look) -> Result<(), Error> {
    dashes(area, (x, y), look)?;
    marker(area, (x + 32, y), look)
}

fn dashes(area: &Area<'_>, (x, y): (i32, i32), look: &Look) -> Result<(), Error> {
    let line = vec![(x, y), (x + 64, y)];
    match look.dash {
        (_, 0) => area.draw(&PathElement::new(line, stroke(look))),
        (dash, gap) => area.draw(&DashedPathElement::new(line, dash, gap, stroke(look))),
    }
}

fn marker(area: &Area<'_>, at: (i32, i32), look: &Look) -> Result<(), Error> {
    area.draw(&(EmptyElement::at(at) + Polygon::new(look.marker(), look.colour.filled())))
}

pub(super) fn stroke(look: &Look) -> ShapeStyle {
    look.colour.stroke_width(4)
}

pub(super) fn fill(look: &Look) -> ShapeStyle {
    look.colour.mix(0.75).filled()
}

/// A line with the look's dashes.
pub(super) fn path(
    chart: &mut Chart<'_, '_>,
    points: Vec<(f64, f64)>,
    look: &Look,
) -> Result<(), Error> {
    match look.dash {
        (_, 0) => chart.draw_series([PathElement::new(points, stroke(look))])?,
        (dash, gap) => {
            chart.draw_series([DashedPathElement::new(points, dash, gap, stroke(look))])?
        }
    };
    Ok(())
}

pub(super) fn plain(size: f64) -> FontDesc<'static> {
    ("sans-serif", size).into_font()
}

pub(super) fn bold(size: f64) -> FontDesc<'static> {
    FontDesc::new(FontFamily::SansSerif, size, FontStyle::Bold)
}

fn shorten(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        None => name.to_owned(),
        Some(_) => name.chars().take(NAME - 1).chain(['…']).collect(),
    }
}

pub(super) fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
