//! What all plots have: title, axes with units, a legend beside the plot, and groups that a page
//! can switch.

use plotters::chart::ChartContext;
use plotters::coord::cartesian::Cartesian2d;
use plotters::element::{DashedPathElement, PathElement, Polygon};
use plotters::prelude::{
    BLACK, ChartBuilder, Color, DrawingArea, DrawingAreaErrorKind, EmptyElement, IntoDrawingArea,
    IntoFont, RGBColor, SVGBackend, ShapeStyle,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontDesc, FontFamily, FontStyle, TextStyle};
use std::fmt::Write as _;
use std::ops::Range;

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
/// Title and subtitle (pixels).
const TITLE: u32 = 58;
const SUBTITLE: u32 = 40;
/// A line of notes below the plot (pixels).
const NOTE: u32 = 36;
/// Longest line of notes (characters).
const NOTE_LINE: usize = 104;
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

/// What of a series is drawn: the parts of all series lie above those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Areas and bands.
    Area,
    /// The line, which is dashed as the series' look says.
    Line,
    /// Markers and intervals.
    Marks,
}

/// How a reader learns what is what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Legend {
    /// The axes name the series.
    Axis,
    /// Names beside the plot, by which a page switches the series.
    Names,
    /// What colours mean.
    Colours,
}

/// A series: its name, by which a page switches it, and how it looks.
pub(super) type Entry = (String, Look, Key);

/// A plot without its data.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    /// What is shown, in words and with its unit.
    pub(super) title: &'a str,
    /// Of what; may be empty.
    pub(super) subtitle: &'a str,
    /// What the reader must know, such as what was cut; may be empty.
    pub(super) notes: Vec<String>,
    pub(super) height: u32,
    pub(super) x: &'a Axis,
    pub(super) y: &'a Axis,
    /// Vertical grid lines, horizontal ones.
    pub(super) grid: (bool, bool),
    pub(super) series: Vec<Entry>,
    pub(super) legend: Legend,
}

/// Draws the frame and then, inside it, each part of each series that `body` draws.
pub(super) fn draw(
    frame: &Frame<'_>,
    mut body: impl FnMut(Part, usize, &mut Chart<'_, '_>) -> Result<(), Error>,
) -> Result<String, PlotError> {
    let entries = match frame.legend {
        Legend::Axis => 0,
        Legend::Names | Legend::Colours => frame.series.len(),
    };
    let rows = u32::try_from(entries).unwrap_or(u32::MAX);
    let notes = wrapped(&frame.notes);
    let height = frame
        .height
        .max(rows.saturating_mul(40).saturating_add(170))
        .saturating_add(NOTE * notes.len() as u32);
    let size = (WIDTH, height);
    let plot = std::cell::Cell::new((0..0, 0..0));
    let mut svg = fragment(size, |area| {
        plot.set(whole(area, frame, &notes)?);
        Ok(())
    })?;
    let plot = plot.into_inner();
    for part in [Part::Area, Part::Line, Part::Marks] {
        for (series, (name, look, _)) in frame.series.iter().enumerate() {
            let drawn = fragment(size, |area| {
                body(part, series, &mut within(area, &plot, frame, size)?)
            })?;
            let dashes = match (part, look.dash) {
                (Part::Line, (dash, gap)) if gap > 0 => {
                    format!(" stroke-dasharray=\"{dash} {gap}\"")
                }
                _ => String::new(),
            };
            group(
                &mut svg,
                &format!("series\" data-name=\"{}", escape(name)),
                &dashes,
                &drawn,
            );
        }
    }
    for (row, entry) in frame.series.iter().enumerate().take(entries) {
        let drawn = fragment(size, |area| legend(area, frame, row, entry))?;
        let class = match frame.legend {
            Legend::Names => format!("key\" data-name=\"{}", escape(&entry.0)),
            Legend::Axis | Legend::Colours => "colour".to_owned(),
        };
        group(&mut svg, &class, "", &drawn);
    }
    // The page says which language it speaks; in it the name space is understood.
    Ok(format!(
        "<svg role=\"img\" aria-label=\"{}\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\">\n{svg}</svg>\n",
        escape(frame.title)
    ))
}

/// The same as a file of its own, which other programs read.
pub fn as_file(svg: &str) -> String {
    svg.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1)
        .replacen(
            ">\n",
            ">\n<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>\n",
            1,
        )
}

/// What is drawn, without the element around it.
fn fragment(
    size: (u32, u32),
    body: impl FnOnce(&Area<'_>) -> Result<(), Error>,
) -> Result<String, PlotError> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let drawn = body(&area).and_then(|()| area.present());
    drop(area);
    drawn.map_err(|error| PlotError(error.to_string()))?;
    let inner = svg.split_once('>').map_or("", |(_, inner)| inner);
    let inner = inner
        .rsplit_once("</svg>")
        .map_or(inner, |(inner, _)| inner);
    Ok(inner.trim_start().to_owned())
}

fn group(svg: &mut String, class: &str, more: &str, inner: &str) {
    if !inner.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(svg, "<g class=\"{class}\"{more}>\n{inner}</g>\n");
    }
}

/// Title, axes and notes. Returns where the plot lies.
fn whole(
    area: &Area<'_>,
    frame: &Frame<'_>,
    notes: &[String],
) -> Result<(Range<i32>, Range<i32>), Error> {
    let middle = Pos::new(HPos::Center, VPos::Center);
    let at = |y: u32| (WIDTH as i32 / 2, y as i32);
    let title = TextStyle::from(bold(FONT + 5.0)).pos(middle);
    area.draw_text(frame.title, &title, at(TITLE / 2 + 4))?;
    let mut top = TITLE;
    if !frame.subtitle.is_empty() {
        let style = TextStyle::from(plain(FONT - 2.0)).pos(middle);
        area.draw_text(frame.subtitle, &style, at(top + SUBTITLE / 2 - 4))?;
        top += SUBTITLE;
    }
    let (_, height) = area.dim_in_pixel();
    let below = NOTE * notes.len() as u32;
    for (row, note) in notes.iter().enumerate() {
        let y = height - below + NOTE * row as u32 + NOTE / 2 - 6;
        let style = TextStyle::from(plain(FONT - 4.0)).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw_text(note, &style, (24, y as i32))?;
    }
    let ticks = frame
        .y
        .ticks
        .iter()
        .map(|tick| tick.1.chars().count().min(NAME));
    let titled = if frame.y.title.is_empty() { 24 } else { 56 };
    let labels = ticks.max().unwrap_or(1) * CHARACTER + titled;
    let (x, y) = (frame.x, frame.y);
    let mut chart = ChartBuilder::on(area)
        .margin_top(top)
        .margin_bottom(14 + below)
        .margin_left(14)
        .margin_right(beside(frame) + 30)
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
        .y_label_formatter(&y_tick);
    // An empty title would be an empty element.
    if !x.title.is_empty() {
        mesh.x_desc(x.title.as_str());
    }
    if !y.title.is_empty() {
        mesh.y_desc(y.title.as_str());
    }
    if !frame.grid.0 {
        mesh.disable_x_mesh();
    }
    if !frame.grid.1 {
        mesh.disable_y_mesh();
    }
    mesh.draw()?;
    Ok(chart.plotting_area().get_pixel_range())
}

/// The same plot again, without its frame.
fn within<'a, 'b>(
    area: &'a Area<'b>,
    (x, y): &(Range<i32>, Range<i32>),
    frame: &Frame<'_>,
    (width, height): (u32, u32),
) -> Result<Chart<'a, 'b>, Error> {
    ChartBuilder::on(area)
        .margin_left(x.start)
        .margin_right(width as i32 - x.end)
        .margin_top(y.start)
        .margin_bottom(height as i32 - y.end)
        .build_cartesian_2d(frame.x.clone(), frame.y.clone())
}

/// Room for the legend (pixels).
fn beside(frame: &Frame<'_>) -> u32 {
    let series = frame.series.iter();
    let series = series.filter(|_| frame.legend != Legend::Axis);
    let names = series.map(|entry| entry.0.chars().count().min(NAME));
    names
        .max()
        .map_or(0, |longest| (longest * CHARACTER + 110) as u32)
}

fn legend(
    area: &Area<'_>,
    frame: &Frame<'_>,
    row: usize,
    (name, look, key): &Entry,
) -> Result<(), Error> {
    let (x, y) = ((WIDTH - beside(frame)) as i32, 116 + 40 * row as i32);
    // All of it can be pressed, not the line and the letters only.
    let (right, above, below) = (WIDTH as i32 - 4, y - 19, y + 19);
    let corners = vec![(x, above), (right, above), (right, below), (x, below)];
    area.draw(&Polygon::new(corners, GREY.mix(0.0).filled()))?;
    if *key == Key::Area {
        let corners = [(14, -12), (66, -12), (66, 12), (14, 12)];
        let corners = corners.map(|(right, down)| (x + right, y + down));
        area.draw(&Polygon::new(corners.to_vec(), fill(look)))?;
    } else {
        dashes(area, (x + 8, y), look)?;
        if *key == Key::Marked {
            marker(area, (x + 40, y), look)?;
        }
    }
    let style = TextStyle::from(plain(FONT)).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw_text(&shorten(name), &style, (x + 84, y))
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

/// A line; its group dashes it.
pub(super) fn line(
    chart: &mut Chart<'_, '_>,
    points: Vec<(f64, f64)>,
    look: &Look,
) -> Result<(), Error> {
    chart.draw_series([PathElement::new(points, stroke(look))])?;
    Ok(())
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

/// Notes in lines that fit.
fn wrapped(notes: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for note in notes {
        lines.push(String::new());
        for word in note.split(' ') {
            let line = lines.last_mut().expect("a line was pushed");
            if !line.is_empty() && line.chars().count() + word.chars().count() >= NOTE_LINE {
                lines.push(word.to_owned());
            } else {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
        }
    }
    lines
}

pub(super) fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
