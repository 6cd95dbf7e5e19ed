//! What was published beside what was measured: panels on one sheet, with one legend below them.
//!
//! A marker is a mean, with its interval; a ring is a published value; a bracket or a line is a
//! bound; a cross lies on what misses it.

mod draw;
mod layout;
#[cfg(test)]
pub(crate) mod tests;

pub use draw::sheet;

/// Panels that belong together.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// Above all.
    pub title: String,
    /// What colours, dashes and markers stand for.
    pub series: Vec<String>,
    /// From left to right and from top to bottom.
    pub panels: Vec<Panel>,
}

/// One plot of a sheet.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Which figure, and which part of it.
    pub heading: String,
    /// What is measured, with its unit.
    pub quantity: String,
    /// Panels with the same number have the same axis of values.
    pub group: usize,
    /// The other axis.
    pub places: Places,
    /// What is drawn.
    pub points: Vec<Point>,
}

/// The axis that says what was measured where.
#[derive(Clone, Debug, PartialEq)]
pub enum Places {
    /// Names below each other, at 0, 1, 2, …; values go from left to right.
    Names(Vec<String>),
    /// Numbers from left to right, with what they are and their unit; values go upwards.
    Numbers(String),
}

/// A mean, what was published of it, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Which of the sheet's series.
    pub series: usize,
    /// The number, or which of the names.
    pub at: f64,
    /// The mean; `None` if nothing was measured.
    pub value: Option<f64>,
    /// Its 95 % confidence interval.
    pub interval: Option<(f64, f64)>,
    /// What the publication reports.
    pub published: Option<f64>,
    /// Smallest mean that passes.
    pub least: Option<f64>,
    /// Largest mean that passes.
    pub most: Option<f64>,
    /// The mean lies outside.
    pub missed: bool,
}

impl Point {
    /// All that the axis of values must show, whatever the intervals are.
    fn reach(&self) -> impl Iterator<Item = f64> {
        let single = [self.value, self.published, self.least, self.most];
        single.into_iter().flatten()
    }
}
