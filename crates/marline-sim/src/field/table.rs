//! The report for a terminal.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::measured::Measure;
use super::report::{Report, Row};
use super::verdict::{PairedRatio, geometric};

/// Cells that are shown as the worst.
const WORST: usize = 10;

/// What was found, as text.
pub fn text(report: &Report) -> String {
    let seeds = report.seeds.len();
    let mut text = format!(
        "Links that nobody chose: {} runs, {seeds} seeds a cell; --seed {} repeats them.\n",
        report.runs, report.seed
    );
    for missing in &report.missing {
        let _ = writeln!(text, "LEFT OUT {missing}");
    }
    let compared = report.rows.iter().any(|row| row.best.is_some());
    if compared {
        text += &score(report);
    }
    text += "\nMeans are geometric, over all cells of a set but those where all links but one are \
             useless. Each is `auto` over the other: of goodput more is better, of all else less.\n\n";
    text += &means(report, |_| "all");
    text += "\nBy load:\n\n";
    text += &means(report, |row| row.load);
    if compared {
        text +=
            "\nThe worst cells, by the promise to be at least 0.95 of the best single link:\n\n";
        text += &worst(report);
    }
    text
}

fn score(report: &Report) -> String {
    let (cells, broken, missed) = report.score();
    let share = |part: usize| 100.0 * part as f64 / cells.max(1) as f64;
    if !report.full {
        return format!(
            "A look, no verdict: the mean of {missed} of {cells} cells ({:.0} %) misses 0.95 of the \
             best single link.\n",
            share(missed)
        );
    }
    format!(
        "{broken} of {cells} cells ({:.1} %) are broken; the mean of {missed} ({:.1} %) misses 0.95 \
         of the best single link.\n",
        share(broken),
        share(missed)
    )
}

fn table(header: &[&str], rows: Vec<Vec<String>>, left: &[usize]) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    table.add_rows(rows);
    for column in (0..header.len()).filter(|column| !left.contains(column)) {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
        .lines()
        .fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

/// The rows of each set and measure, and of each `part` of them, in order of appearance.
fn means(report: &Report, part: fn(&Row) -> &'static str) -> String {
    let mut keys: Vec<(&str, &str, Measure)> = Vec::new();
    for row in &report.rows {
        let key = (&*row.set, part(row), row.of);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let set_of = |set: &str| report.rows.iter().position(|row| row.set == set);
    let part_of = |name: &str| report.rows.iter().position(|row| part(row) == name);
    keys.sort_by_key(|(set, name, measure)| (set_of(set), part_of(name), *measure));
    let has_ideal = report.rows.iter().any(|row| row.to_ideal.is_some());
    let mut header = vec![
        "set",
        "load",
        "measure",
        "cells",
        "broken",
        "missed",
        "auto",
        "/best link",
        "/edpf",
        "/min-rtt",
    ];
    header.extend(has_ideal.then_some("/ideal"));
    let mut lines = Vec::new();
    for (set, name, measure) in keys {
        let all = || {
            let rows = report.rows.iter();
            rows.filter(|row| row.set == set && part(row) == name && row.of == measure)
        };
        // Bonding can win nothing where there is only one link.
        let kept = || all().filter(|row| !row.one_link);
        let mean = |of: fn(&Row) -> Option<PairedRatio>| {
            let mean = geometric(kept().filter_map(of).map(|ratio| ratio.value));
            mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.2}"))
        };
        let values = || kept().map(|row| row.auto);
        let shown = match measure {
            // Shares are often nothing, so that their mean is the plain one.
            Measure::GivenUp => values().sum::<f64>() / values().count().max(1) as f64,
            _ => geometric(values()).unwrap_or(f64::NAN),
        };
        let count = |wanted: fn(&Row) -> bool| match measure.is_judged() {
            true => all().filter(|row| wanted(row)).count().to_string(),
            false => "-".to_owned(),
        };
        let mut line = vec![
            set.to_owned(),
            name.to_owned(),
            measure.name().to_owned(),
            all().count().to_string(),
            count(|row| row.broken),
            count(|row| row.missed),
            format!("{} {}", digits(shown), measure.unit()),
            mean(|row| row.to_best),
            mean(|row| row.to_edpf),
            mean(|row| row.to_min_rtt),
        ];
        line.extend(has_ideal.then(|| mean(|row| row.to_ideal)));
        lines.push(line);
    }
    table(&header, lines, &[0, 1, 2])
}

/// Three digits or so.
fn digits(value: f64) -> String {
    match value {
        value if value.is_nan() => "-".to_owned(),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn worst(report: &Report) -> String {
    let judged = report.rows.iter().filter(|row| row.judged);
    let mut rows: Vec<(&Row, PairedRatio)> =
        judged.filter_map(|row| Some((row, row.to_best?))).collect();
    // What is surely broken first, then by how much.
    rows.sort_by(|(a, to_a), (b, to_b)| {
        let badness = |row: &Row, ratio: &PairedRatio| ratio.badness(row.of);
        let by_badness = badness(b, to_b).total_cmp(&badness(a, to_a));
        b.broken.cmp(&a.broken).then(by_badness)
    });
    let header = [
        "cell",
        "load",
        "measure",
        "auto",
        "best link",
        "ratio",
        "90 % interval",
        "",
        "worst seed",
    ];
    let lines = rows.into_iter().take(WORST).map(|(row, ratio)| {
        vec![
            format!("{}/{}", row.set, row.place),
            row.load.to_owned(),
            row.measure.to_owned(),
            format!("{} {}", digits(row.auto), row.unit),
            format!(
                "{} {} ({})",
                digits(row.best.unwrap_or(f64::NAN)),
                row.unit,
                row.best_link
            ),
            format!("{:.2}", ratio.value),
            format!("[{:.2}, {:.2}]", ratio.low, ratio.high),
            if row.broken { "broken" } else { "" }.to_owned(),
            row.worst_seed.to_string(),
        ]
    });
    table(&header, lines.collect(), &[0, 1, 2])
}
