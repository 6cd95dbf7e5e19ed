//! A measure over a plane: bands of equal colour between points that were measured.

use plotters::element::{Polygon, Rectangle};
use plotters::prelude::{BLACK, Color, EmptyElement};
use plotters::style::RGBColor;

use super::axis::{Axis, number};
use super::frame::{self, Frame, Key, Legend, Part};
use super::palette::Look;
use super::{About, PlotError, label};
use crate::report::words::unit_in_words;
use crate::results::Group;

/// Bands of colour.
const BANDS: usize = 8;
/// Squares along each side that are coloured alike.
const SQUARES: usize = 60;
/// Neighbours between which a square's value lies.
const NEIGHBOURS: usize = 5;
/// Points below which a plane says nothing.
const LEAST_POINTS: usize = 12;
/// From dark blue to yellow by way of grey: even in brightness, also for the colour-blind
/// (Nuñez et al., "Optimizing colormaps with consideration for color vision deficiency", 2018).
const SCALE: [(f64, f64, f64); 5] = [
    (0.0, 34.0, 78.0),
    (66.0, 78.0, 108.0),
    (124.0, 123.0, 120.0),
    (188.0, 175.0, 111.0),
    (254.0, 232.0, 56.0),
];

/// Points of a plane, by an axis whose values name two numbers each, as `40ms, 75%` do.
#[derive(Debug)]
pub struct Plane {
    x: Axis,
    y: Axis,
    points: Vec<(String, (f64, f64))>,
}

impl Plane {
    /// The plane of an axis called `name`, such as `rtt, tunnel`; `None` if these are no points of
    /// one, or only a few.
    pub fn of(name: &str, values: &[&str]) -> Option<Self> {
        let (x_name, y_name) = name.split_once(", ")?;
        let mut units: Option<(&str, &str)> = None;
        let mut points = Vec::new();
        for value in values {
            let (x, y) = value.split_once(", ")?;
            let ((x, x_unit), (y, y_unit)) = (number(x)?, number(y)?);
            if *units.get_or_insert((x_unit, y_unit)) != (x_unit, y_unit) {
                return None;
            }
            points.push(((*value).to_owned(), (x, y)));
        }
        let (x_unit, y_unit) = units.filter(|_| points.len() >= LEAST_POINTS)?;
        let axis = |name: &str, unit: &str, of: fn(&(f64, f64)) -> f64| {
            let all = points.iter().map(|(_, point)| of(point));
            let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            });
            Axis::between(label(name, unit), low, high)
        };
        let x = axis(x_name, x_unit, |point| point.0);
        let y = axis(y_name, y_unit, |point| point.1);
        Some(Self { x, y, points })
    }

    /// Where a point lies, in parts of the plane's sides.
    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let part = |axis: &Axis, v: f64| (v - axis.low) / (axis.high - axis.low);
        (part(&self.x, x), part(&self.y, y))
    }
}

/// Values at places, and what lies between them.
#[derive(Debug)]
struct Field(Vec<((f64, f64), f64)>);

impl Field {
    /// The value at a place: of its nearest neighbours, each by the inverse of its distance
    /// squared.
    fn at(&self, (x, y): (f64, f64)) -> f64 {
        let mut near: Vec<(f64, f64)> = self
            .0
            .iter()
            .map(|((px, py), value)| ((px - x).powi(2) + (py - y).powi(2), *value))
            .collect();
        near.sort_by(|a, b| a.0.total_cmp(&b.0));
        near.truncate(NEIGHBOURS);
        let weights = near
            .iter()
            .map(|(square, value)| (1.0 / (square + 1e-6), value));
        let (sum, all) = weights.fold((0.0, 0.0), |(sum, all), (weight, value)| {
            (sum + weight * value, all + weight)
        });
        sum / all
    }
}

/// Bands of equal height between two values.
#[derive(Debug)]
struct Bands {
    low: f64,
    step: f64,
}

impl Bands {
    fn over(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(v), high.max(v))
        });
        let step = ((high - low) / BANDS as f64).max(1e-9);
        Self { low, step }
    }

    fn of(&self, value: f64) -> usize {
        (((value - self.low) / self.step).max(0.0) as usize).min(BANDS - 1)
    }

    fn look(band: usize) -> Look {
        let at = band as f64 / (BANDS - 1) as f64 * (SCALE.len() - 1) as f64;
        let below = (at as usize).min(SCALE.len() - 2);
        let (from, to) = (SCALE[below], SCALE[below + 1]);
        let mix = |a: f64, b: f64| (a + (b - a) * (at - below as f64)).round() as u8;
        Look::coloured(RGBColor(
            mix(from.0, to.0),
            mix(from.1, to.1),
            mix(from.2, to.2),
        ))
    }

    fn name(&self, band: usize) -> String {
        let from = self.low + band as f64 * self.step;
        format!("{from:.1} to {:.1}", from + self.step)
    }
}

/// Plots `measure` of the groups of one scheduler, which differ in the value of `axis`, over
/// `plane`. Colours mean the same for all of `all`, so that plots can be compared.
///
/// # Errors
/// If the plot cannot be drawn.
pub fn contour(
    groups: &[&Group<'_>],
    all: &[&Group<'_>],
    measure: &str,
    axis: &str,
    plane: &Plane,
    about: &About<'_>,
) -> Result<String, PlotError> {
    let value = |group: &Group<'_>| Some(group.estimate(measure)?.value());
    let bands = Bands::over(all.iter().filter_map(|group| value(group)));
    let field = groups.iter().filter_map(|group| {
        let name = group.cell.get(axis)?;
        let point = plane.points.iter().find(|point| point.0 == *name)?;
        Some((plane.place(point.1), value(group)?))
    });
    let field = Field(field.collect());
    let frame = Frame {
        title: about.title,
        subtitle: about.subtitle,
        notes: vec!["Each dot was measured; between them by the five nearest.".to_owned()],
        height: 1000,
        x: &plane.x,
        y: &plane.y,
        grid: (false, false),
        legend: Legend::Colours,
        series: (0..BANDS)
            .rev()
            .map(|band| (bands.name(band), Bands::look(band), Key::Area))
            .chain([(
                format!("({})", unit_in_words(measure)),
                Look::coloured(RGBColor(255, 255, 255)),
                Key::Area,
            )])
            .collect(),
    };
    frame::draw(&frame, |part, series, chart| {
        if (part, series) != (Part::Area, 0) || field.0.is_empty() {
            return Ok(());
        }
        let side = 1.0 / SQUARES as f64;
        let at = |axis: &Axis, part: f64| axis.low + part * (axis.high - axis.low);
        for row in 0..SQUARES {
            let y = row as f64 * side;
            let band =
                |column: usize| bands.of(field.at(((column as f64 + 0.5) * side, y + side / 2.0)));
            let row: Vec<usize> = (0..SQUARES).map(band).collect();
            let mut from = 0;
            // Squares of one band beside each other are one rectangle.
            for run in row.chunk_by(|a, b| a == b) {
                let (left, right) = (from as f64 * side, (from + run.len()) as f64 * side);
                from += run.len();
                let corners = [
                    (at(&plane.x, left), at(&plane.y, y)),
                    (at(&plane.x, right), at(&plane.y, y + side)),
                ];
                let style = frame::fill(&Bands::look(run[0]));
                chart.draw_series([Rectangle::new(corners, style)])?;
            }
        }
        let marker = || Polygon::new(vec![(-3, -3), (3, -3), (3, 3), (-3, 3)], BLACK.filled());
        let points = plane
            .points
            .iter()
            .map(|point| EmptyElement::at(point.1) + marker());
        chart.draw_series(points)?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_is_an_axis_of_pairs_of_numbers() {
        let names: Vec<String> = (0..16)
            .map(|n| format!("{}ms, {}%", 5 * n, 100 - n))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let plane = Plane::of("rtt, tunnel", &names).unwrap();
        assert_eq!(
            (&*plane.x.title, &*plane.y.title),
            ("rtt (ms)", "tunnel (%)")
        );
        assert_eq!((plane.x.low, plane.x.high), (0.0, 75.0));
        assert_eq!(plane.place((75.0, 85.0)), (1.0, 0.0));
        assert!(Plane::of("rtt", &names).is_none());
        assert!(Plane::of("rtt, tunnel", &names[..4]).is_none());
        let mut mixed = names.clone();
        mixed[3] = "1s, 50%";
        assert!(Plane::of("rtt, tunnel", &mixed).is_none());
    }

    #[test]
    fn between_points_lie_values_between() {
        let field = Field(vec![((0.0, 0.0), 10.0), ((1.0, 0.0), 20.0)]);
        assert!((field.at((0.0, 0.0)) - 10.0).abs() < 0.01);
        assert!((field.at((0.5, 0.0)) - 15.0).abs() < 0.01);
        let bands = Bands::over([10.0, 26.0].into_iter());
        assert_eq!(
            [9.0, 10.0, 12.0, 25.9, 26.0, 99.0].map(|v| bands.of(v)),
            [0, 0, 1, 7, 7, 7]
        );
        assert_eq!(bands.name(7), "24.0 to 26.0");
    }
}
