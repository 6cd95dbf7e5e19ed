//! Plots of results as SVG.
//!
//! Colours are those of Okabe and Ito, which people with colour-blindness can distinguish; markers
//! and dashes differ too, so a plot printed in grey is still readable. Text and axes are black on
//! nothing: a page's style sheet turns them light where the reader's screen is dark.

mod axis;
mod bars;
mod contour;
mod frame;
mod lines;
mod palette;
mod scale;
pub(crate) mod sheet;
mod tail;
mod time;

pub(crate) use axis::number;
pub use bars::bars;
pub use contour::{Plane, contour};
pub use frame::as_file;
pub use lines::lines;
pub use sheet::{Panel as SheetPanel, Places, Point, Sheet, sheet};
pub use tail::tail;
pub use time::{Panel, panels, time};

use std::fmt;

/// What a plot is of.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// What is shown, in words and with its unit.
    pub title: &'a str,
    /// Of what; may be empty.
    pub subtitle: &'a str,
    /// All schedulers of the page: one looks the same in every plot.
    pub schedulers: &'a [&'a str],
}

impl About<'_> {
    fn entry(&self, scheduler: &str, key: frame::Key) -> frame::Entry {
        let index = self.schedulers.iter().position(|one| *one == scheduler);
        let look = palette::Look::of(index.unwrap_or(self.schedulers.len()));
        (scheduler.to_owned(), look, key)
    }
}

/// A plot could not be drawn.
#[derive(Debug)]
pub struct PlotError(String);

impl PlotError {
    fn new(error: &dyn fmt::Display) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for PlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot draw the plot: {}", self.0)
    }
}

impl std::error::Error for PlotError {}

/// An axis label: the measure and, unless its name says nothing of one, its unit.
fn label(measure: &str, unit: &str) -> String {
    match unit {
        "" => measure.to_owned(),
        _ => format!("{measure} ({unit})"),
    }
}

#[cfg(test)]
mod tests;
