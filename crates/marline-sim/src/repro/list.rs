//! What there is to reproduce, and the outcome for a terminal.

use std::collections::BTreeSet;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::{Outcome, Report, ScenarioReport, Verdict};
use crate::experiments::Experiment;
use crate::report::show;

/// The experiments of `paper`, or all; of those the ones that are or contain `figure`.
///
/// A figure is named by its file (`table-1`) or as the expectations call it (`Table I`), in any
/// case; `figures` names those of a file.
///
/// # Errors
/// If there is no such paper or figure, with those that there are.
pub fn find(
    all: &[Experiment],
    paper: Option<&str>,
    figure: Option<&str>,
    figures: impl Fn(&Experiment) -> Vec<String>,
) -> Result<Vec<Experiment>, String> {
    let mut found = all.to_vec();
    if let Some(paper) = paper {
        found.retain(|one| one.folder.eq_ignore_ascii_case(paper));
        if found.is_empty() {
            let papers: BTreeSet<&str> = all.iter().map(|one| one.folder).collect();
            let papers: Vec<&str> = papers.into_iter().collect();
            return Err(format!(
                "no paper `{paper}`; there are {}",
                papers.join(", ")
            ));
        }
    }
    if let Some(figure) = figure {
        let same = |name: &str| name.eq_ignore_ascii_case(figure);
        let known = found.clone();
        found.retain(|one| same(one.name) || figures(one).iter().any(|name| same(name)));
        if found.is_empty() {
            let names: Vec<String> = known
                .iter()
                .flat_map(|one| std::iter::once(one.name.to_owned()).chain(figures(one)))
                .collect();
            return Err(format!(
                "no figure `{figure}`; there are {}",
                names.join(", ")
            ));
        }
    }
    Ok(found)
}

/// The report for a terminal: what was published beside what was measured.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    for scenario in &report.scenarios {
        let ScenarioReport {
            paper, file, title, ..
        } = scenario;
        text += &format!("{title} ({paper}/{file}, {})\n\n", seeds(scenario));
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(HEADER);
        for verdict in &scenario.verdicts {
            table.add_row(row(verdict, report.full));
        }
        for column in 4..=6 {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for line in table.lines() {
            text += line.trim_end();
            text.push('\n');
        }
        text.push('\n');
    }
    text + &summary(report)
}

/// The columns of [`row`].
pub(super) const HEADER: [&str; 8] = [
    "figure",
    "cell",
    "scheduler",
    "measure",
    "published",
    "measured",
    "bound",
    "verdict",
];

/// The verdicts of a scenario as a table: its header and its rows.
pub fn rows(scenario: &ScenarioReport, full: bool) -> (Vec<String>, Vec<Vec<String>>) {
    let rows = scenario.verdicts.iter().map(|verdict| row(verdict, full));
    (HEADER.map(str::to_owned).to_vec(), rows.collect())
}

/// A verdict as a row of a table.
pub(super) fn row(verdict: &Verdict, full: bool) -> Vec<String> {
    let cell = crate::report::cell_name(&verdict.cell);
    let scheduler = match &verdict.relative_to {
        Some(other) => format!("{} / {other}", verdict.scheduler),
        None => verdict.scheduler.clone(),
    };
    vec![
        verdict.figure.clone(),
        cell,
        scheduler,
        verdict.measure.clone(),
        verdict.published.map_or_else(|| "-".to_owned(), show),
        measured(verdict),
        bound(verdict),
        word(verdict, full).to_owned(),
    ]
}

fn measured(verdict: &Verdict) -> String {
    match (verdict.measured, verdict.interval) {
        (None, _) => "not measured".to_owned(),
        (Some(value), None) if verdict.n < 2 => format!("{} (n = 1)", show(value)),
        (Some(value), None) => format!("{} (no interval)", show(value)),
        (Some(value), Some((low, high))) => {
            format!("{} [{}, {}]", show(value), show(low), show(high))
        }
    }
}

pub(super) fn bound(verdict: &Verdict) -> String {
    match (verdict.least, verdict.most) {
        (None, None) => "-".to_owned(),
        (Some(least), None) => format!("≥ {}", show(least)),
        (None, Some(most)) => format!("≤ {}", show(most)),
        (Some(least), Some(most)) => format!("{} to {}", show(least), show(most)),
    }
}

/// PASS and MISS are said of full runs only: with fewer seeds the same bound is no verdict.
fn word(verdict: &Verdict, full: bool) -> &'static str {
    match (verdict.outcome, full, verdict.close) {
        (Outcome::Unbounded, ..) => "-",
        (Outcome::Holds, true, false) => "PASS",
        (Outcome::Holds, true, true) => "PASS, close",
        (Outcome::Missed, true, false) => "MISS",
        (Outcome::Missed, true, true) => "MISS, close",
        (Outcome::Holds, false, _) => "inside",
        (Outcome::Missed, false, _) => "outside",
    }
}

/// How many seeds, and how many there should be.
pub(super) fn seeds(scenario: &ScenarioReport) -> String {
    let of = |n: usize| {
        if n == 1 {
            "1 seed".to_owned()
        } else {
            format!("{n} seeds")
        }
    };
    match scenario.seeds < scenario.seeds_in_file {
        true => format!(
            "{} instead of {}",
            of(scenario.seeds),
            scenario.seeds_in_file
        ),
        false => of(scenario.seeds),
    }
}

/// Where a bound comes from and why it is missed, as far as known.
fn because(verdict: &Verdict) -> String {
    let known = [&verdict.note, &verdict.reason].into_iter().flatten();
    let known: Vec<&str> = known.map(String::as_str).collect();
    match &known[..] {
        [] => String::new(),
        known => format!(" ({})", known.join("; ")),
    }
}

fn summary(report: &Report) -> String {
    let (held, bounds) = report.score();
    if !report.full {
        return format!(
            "Fewer seeds than the bounds are meant for, so there is no verdict: {held} of {bounds} \
             means lie inside their bounds.\n"
        );
    }
    let mut text = format!("{held} of {bounds} bounds hold.\n");
    for (scenario, verdict) in report.missed() {
        let row = row(verdict, true);
        let cell = if row[1].is_empty() {
            String::new()
        } else {
            format!(", {}", row[1])
        };
        text += &format!(
            "MISS {}/{} {}{cell}: {} {} is {}, bound {}{}\n",
            scenario.paper,
            scenario.file,
            row[0],
            row[2],
            row[3],
            row[5],
            row[6],
            because(verdict),
        );
    }
    text
}
