//! Results for people and for other programs: tables for a terminal, CSV, and a page with plots.
//! (JSON is [`Results`](crate::results::Results) itself.)

mod columns;
mod number;
mod over_time;
mod page;
pub mod plot;
mod table;
mod tidy;
mod words;

pub use columns::choose;
pub use number::{show, with_interval};
pub use over_time::over_time;
pub use page::{Page, Section, page};
pub use table::table;
pub use tidy::csv;
pub(crate) use words::{titled, words};

use std::collections::BTreeMap;

/// A cell in words: `links.b.rtt=160ms, …`; empty if the scenario has no axes.
pub fn cell_name(cell: &BTreeMap<String, String>) -> String {
    let words: Vec<String> = cell
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    words.join(", ")
}
