//! The table for a terminal.

use std::collections::BTreeSet;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::number::with_interval;
use crate::results::{DRAW, Group, Results};

/// Rows are cells and schedulers, columns the measures with their 95 % intervals.
///
/// Where the columns do not fit `width` characters they go on in a further table below, each with
/// its row names, so that a long list of schedulers or measures stays readable.
pub fn table(results: &Results, measures: &[String], width: usize) -> String {
    let groups = results.groups();
    let names = row_names(results, &groups);
    let columns: Vec<Vec<String>> = measures
        .iter()
        .map(|measure| column(measure, &groups))
        .collect();
    let first: usize = names.iter().map(|column| taken(column)).sum();

    let mut text = String::new();
    let mut rest = &columns[..];
    loop {
        let mut used = first;
        let fit = rest
            .iter()
            .take_while(|column| {
                used += taken(column);
                used <= width
            })
            .count();
        let (now, later) = rest.split_at(fit.max(1).min(rest.len()));
        text += &draw(&names, now, &groups);
        rest = later;
        if rest.is_empty() {
            return text + &footnote(&groups) + &drawn(results, measures);
        }
        text.push('\n');
    }
}

/// Characters that a column takes, with its padding.
fn taken(column: &[String]) -> usize {
    let lines = column.iter().flat_map(|cell| cell.lines());
    lines.map(|line| line.chars().count()).max().unwrap_or(0) + 2
}

/// The axes and the scheduler; what repeats from row to row is left out.
fn row_names(results: &Results, groups: &[Group<'_>]) -> Vec<Vec<String>> {
    let mut columns: Vec<Vec<String>> = results
        .axes()
        .into_iter()
        .map(|axis| {
            let mut column = vec![axis.replace('.', ".\n")];
            for (i, group) in groups.iter().enumerate() {
                let repeats = i > 0 && groups[i - 1].cell == group.cell;
                let value = group.cell.get(axis).filter(|_| !repeats);
                column.push(value.cloned().unwrap_or_default());
            }
            column
        })
        .collect();
    let schedulers = groups.iter().map(|group| group.scheduler.to_owned());
    columns.push(
        std::iter::once("scheduler".to_owned())
            .chain(schedulers)
            .collect(),
    );
    columns
}

fn column(measure: &str, groups: &[Group<'_>]) -> Vec<String> {
    let cells = groups.iter().map(|group| match group.estimate(measure) {
        None => "-".to_owned(),
        Some(estimate) if estimate.n() < group.runs.len() && estimate.n() > 1 => {
            format!("{} (n = {})", with_interval(&estimate), estimate.n())
        }
        Some(estimate) => with_interval(&estimate),
    });
    std::iter::once(measure.replace('.', ".\n"))
        .chain(cells)
        .collect()
}

fn draw(names: &[Vec<String>], columns: &[Vec<String>], groups: &[Group<'_>]) -> String {
    let all: Vec<&Vec<String>> = names.iter().chain(columns).collect();
    let row = |i: usize| all.iter().map(move |column| column[i].clone());
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(row(0));
    for (i, group) in groups.iter().enumerate() {
        // A blank line between cells, where a cell has several rows.
        let alone = groups
            .iter()
            .filter(|other| other.cell == group.cell)
            .count()
            == 1;
        if i > 0 && groups[i - 1].cell != group.cell && !alone {
            table.add_row(vec![""; all.len()]);
        }
        table.add_row(row(i + 1));
    }
    for index in names.len()..all.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = String::new();
    for line in table.lines() {
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn footnote(groups: &[Group<'_>]) -> String {
    let seeds = groups
        .iter()
        .map(|group| group.runs.len())
        .max()
        .unwrap_or(0);
    match seeds {
        0 => "\nNo runs.\n".to_owned(),
        1 => "\nOne seed: no intervals (n = 1) except of fractions, [Wilson 95 %].\n".to_owned(),
        _ => format!(
            "\n{seeds} seeds; ± is the 95 % confidence interval of the mean, [ ] that of a fraction.\n"
        ),
    }
}

/// Over cells that were drawn: the schedulers relative to the first one. Empty without such cells.
fn drawn(results: &Results, measures: &[String]) -> String {
    let groups = results.groups();
    let is_drawn = groups.iter().any(|group| group.cell.contains_key(DRAW));
    let Some(first) = groups.first().filter(|_| is_drawn) else {
        return String::new();
    };
    let mut names: Vec<&str> = groups.iter().map(|group| group.scheduler).collect();
    let mut known = BTreeSet::new();
    names.retain(|name| *name != first.scheduler && known.insert(*name));
    let comparison = results.comparison();
    let mut text = String::new();
    for name in names {
        for measure in measures {
            let Some(across) = comparison.across(name, first.scheduler, measure) else {
                continue;
            };
            let (low, high) = across.range;
            let interval = across.interval.map_or(String::new(), |(low, high)| {
                format!(" [{low:.3}, {high:.3}]")
            });
            text += &format!(
                "  {name}: {measure} {:.3}{interval}, from {low:.2} to {high:.2} (n = {})\n",
                across.value, across.n
            );
        }
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "\nRelative to {}, the geometric mean over the drawn cells [its 95 % interval], and their range:\n{text}",
        first.scheduler
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    fn measures() -> Vec<String> {
        ["video.in_order_delay.p99_ms", "video.late"]
            .map(str::to_owned)
            .to_vec()
    }

    #[test]
    fn cells_and_schedulers_are_rows_and_measures_columns() {
        let text = table(&sample::results(), &measures(), 100);
        assert_eq!(
            format!("\n{text}"),
            "
 links.  scheduler           video.            video.
 b.                 in_order_delay.              late
 rtt                         p99_ms
 20ms    edpf            21.0 ± 2.5  2.0 % [0.9, 4.3]
         min-rtt         41.0 ± 2.5  2.0 % [0.9, 4.3]

 160ms   edpf            81.0 ± 2.5  2.0 % [0.9, 4.3]
         min-rtt        161.0 ± 2.5  2.0 % [0.9, 4.3]

3 seeds; ± is the 95 % confidence interval of the mean, [ ] that of a fraction.
"
        );
    }

    #[test]
    fn what_does_not_fit_goes_on_below_with_its_row_names() {
        let text = table(&sample::results(), &measures(), 45);
        assert_eq!(text.matches("min-rtt").count(), 4);
        assert!(
            text.lines().take(15).all(|line| line.chars().count() <= 45),
            "{text}"
        );
        let narrow = table(&sample::results(), &measures(), 1);
        assert!(
            narrow.contains("161.0 ± 2.5") && narrow.contains("late"),
            "{narrow}"
        );
    }

    #[test]
    fn drawn_cells_are_compared_and_chosen_ones_are_not() {
        let mut results = sample::results();
        assert!(!table(&results, &measures(), 200).contains("Relative to"));
        for run in &mut results.runs {
            let number = if run.cell["links.b.rtt"] == "20ms" {
                "1"
            } else {
                "2"
            };
            run.cell.insert(DRAW.into(), number.into());
            // Twice as long in one cell, half as long in the other.
            let delay = match (run.scheduler.as_str(), number) {
                ("edpf", _) => 20.0,
                (_, "1") => 40.0,
                _ => 10.0,
            };
            run.values
                .insert("video.in_order_delay.p99_ms".into(), delay);
        }
        let text = table(&results, &measures(), 200);
        assert!(text.contains("Relative to edpf"), "{text}");
        assert!(
            text.contains("min-rtt: video.in_order_delay.p99_ms 1.000 ["),
            "{text}"
        );
        assert!(text.contains("from 0.50 to 2.00 (n = 2)"), "{text}");
        assert!(!text.contains("  edpf:"), "{text}");
    }

    #[test]
    fn single_seeds_and_missing_values_are_said() {
        let mut results = sample::results();
        results.runs.retain(|run| run.seed == 1);
        let text = table(&results, &measures(), 100);
        assert!(
            text.contains("20.00 (n = 1)") && text.contains("One seed"),
            "{text}"
        );

        let mut results = sample::results();
        results.runs[0].values.clear();
        let text = table(&results, &["video.goodput_mbps".to_owned()], 100);
        assert!(text.contains("(n = 2)"), "{text}");
        for run in &mut results.runs[..3] {
            run.values.clear();
        }
        let text = table(&results, &["video.goodput_mbps".to_owned()], 100);
        assert!(
            text.lines()
                .any(|line| line.contains("edpf") && line.ends_with(" -")),
            "{text}"
        );
    }
}
