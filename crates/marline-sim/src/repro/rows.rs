//! The verdicts of a paper as CSV: a line a verdict, with all that a page needs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Outcome, ScenarioReport, Verdict, measure};
use crate::experiments::Experiment;
use crate::results::unit;

/// A line; its fields are the columns, in this order (docs/RESULTS.md).
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Row {
    file: String,
    figure: String,
    cell: String,
    scheduler: String,
    relative_to: Option<String>,
    measure: String,
    unit: String,
    published: Option<f64>,
    measured: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    n: usize,
    least: Option<f64>,
    most: Option<f64>,
    outcome: Outcome,
    close: bool,
    seeds: usize,
    seeds_in_file: usize,
    note: Option<String>,
    reason: Option<String>,
}

/// Between the values of two axes.
const BETWEEN: &str = "; ";

/// The lines of these scenarios, below a header.
pub(super) fn csv(scenarios: &[ScenarioReport]) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for scenario in scenarios {
        for verdict in &scenario.verdicts {
            writer.serialize(row(scenario, verdict))?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads them again, but for those whose file is none of `experiments`.
pub(super) fn read(
    text: &str,
    experiments: &[Experiment],
) -> Result<Vec<ScenarioReport>, csv::Error> {
    let mut scenarios: Vec<ScenarioReport> = Vec::new();
    for row in csv::Reader::from_reader(text.as_bytes()).into_deserialize() {
        let row: Row = row?;
        let known = experiments.iter().find(|one| one.name == row.file);
        let Some(experiment) = known else {
            continue;
        };
        let file = format!("{}.toml", experiment.name);
        if scenarios.last().is_none_or(|last| last.file != file) {
            let title = measure::title(experiment).unwrap_or_default();
            scenarios.push(ScenarioReport {
                seeds: row.seeds,
                seeds_in_file: row.seeds_in_file,
                ..ScenarioReport::new(experiment, &title, "")
            });
        }
        if let Some(scenario) = scenarios.last_mut() {
            scenario.verdicts.push(verdict(row));
        }
    }
    Ok(scenarios)
}

fn row(scenario: &ScenarioReport, verdict: &Verdict) -> Row {
    let verdict = verdict.clone();
    let values = verdict.cell.iter();
    let values: Vec<String> = values
        .map(|(axis, value)| format!("{axis}={value}"))
        .collect();
    Row {
        file: scenario.name().to_owned(),
        figure: verdict.figure,
        cell: values.join(BETWEEN),
        scheduler: verdict.scheduler,
        relative_to: verdict.relative_to,
        measure: verdict.measure,
        unit: verdict.unit.to_owned(),
        published: verdict.published,
        measured: verdict.measured,
        low: verdict.interval.map(|(low, _)| low),
        high: verdict.interval.map(|(_, high)| high),
        n: verdict.n,
        least: verdict.least,
        most: verdict.most,
        outcome: verdict.outcome,
        close: verdict.close,
        seeds: scenario.seeds,
        seeds_in_file: scenario.seeds_in_file,
        note: verdict.note,
        reason: verdict.reason,
    }
}

fn verdict(row: Row) -> Verdict {
    Verdict {
        figure: row.figure,
        cell: cell(&row.cell),
        unit: match row.relative_to {
            Some(_) => "",
            None => unit(&row.measure),
        },
        scheduler: row.scheduler,
        relative_to: row.relative_to,
        measure: row.measure,
        published: row.published,
        measured: row.measured,
        interval: row.low.zip(row.high),
        n: row.n,
        least: row.least,
        most: row.most,
        outcome: row.outcome,
        close: row.close,
        note: row.note,
        reason: row.reason,
    }
}

fn cell(text: &str) -> BTreeMap<String, String> {
    let values = text
        .split(BETWEEN)
        .filter_map(|value| value.split_once('='));
    values
        .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::*;
    use crate::experiments;

    const FIG_3: Experiment = Experiment {
        folder: "ols",
        name: "fig-3",
        path: "ols/fig-3.toml",
        text: "title = \"Two paths\"",
    };

    #[test]
    fn what_was_written_is_read_with_every_digit() {
        let mut report = report(3);
        let scenario = &mut report.scenarios[0];
        scenario.about.clear();
        scenario.verdicts[0].measured = Some(1.0 / 3.0);
        scenario.verdicts[0].note = Some("A \"quote\", a comma,\nand a line".to_owned());
        let cell = &mut scenario.verdicts[0].cell;
        cell.insert("rtt, tunnel".to_owned(), "2.2ms, 35.2%".to_owned());
        cell.insert("cap".to_owned(), "x=1".to_owned());
        scenario.verdicts[2].measured = None;
        let text = csv(&report.scenarios).unwrap();
        let read = read(&text, &[FIG_3]).unwrap();
        assert_eq!(read[0].verdicts, report.scenarios[0].verdicts);
        assert_eq!(csv(&read).unwrap(), text);
        assert_eq!((read[0].seeds, &*read[0].title), (3, "Two paths"));
    }

    #[test]
    fn a_file_that_is_no_more_is_left_out_and_a_wrong_line_is_named() {
        let text = csv(&report(3).scenarios).unwrap();
        assert!(read(&text, &[]).unwrap().is_empty());
        let wrong = text.replacen("holds", "perhaps", 1);
        let error = read(&wrong, &[FIG_3]).unwrap_err().to_string();
        assert!(error.contains("line: 2"), "{error}");
    }

    #[test]
    fn no_value_of_an_axis_is_taken_for_two() {
        for experiment in experiments::all() {
            assert!(
                !experiment.text.contains("name = \"")
                    || experiment
                        .text
                        .lines()
                        .all(|line| !line.contains("name = \"") || !line.contains(BETWEEN)),
                "{}",
                experiment.path
            );
        }
    }

    /// Every column is in docs/RESULTS.md, and no other.
    #[test]
    fn columns_are_documented() {
        let document = include_str!("../../../../docs/RESULTS.md");
        let section = document
            .split("\n## ")
            .find(|part| part.starts_with("CSV, pages and pictures of `marline repro --write`"));
        let lines = section.unwrap().lines();
        let documented = lines.filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
        let documented: Vec<&str> = documented.map(|(column, _)| column).collect();
        let text = csv(&report(3).scenarios).unwrap();
        let header: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        assert_eq!(documented, header);
    }
}
