//! What the laws were worth, as a table.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use super::claims::Estimator;
use super::score::Score;

/// Runs with fewer packets say nothing of deciles.
const LEAST: u64 = 100;
/// The line that is the mean of all.
const ALL: &str = "all";

/// A run's scores.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub(super) set: String,
    pub(super) name: String,
    pub(super) scores: [(Estimator, Score); 3],
}

/// What an estimator was worth over the links of a set: means over runs, each counting the same.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The set.
    pub set: String,
    /// Who said when packets arrive.
    pub estimator: &'static str,
    /// Runs.
    pub runs: usize,
    /// Packets of all runs.
    pub packets: u64,
    /// Log-likelihood of an arrival, to the millisecond (nats).
    pub likelihood: f64,
    /// Mean distance of the law from what happened (CRPS, ms).
    pub off_ms: f64,
    /// Share of arrivals in each tenth of the law.
    pub deciles: [f64; 10],
    /// How far these are from a tenth, on average over tenths and runs.
    pub uneven: f64,
    /// Log-likelihood of being lost or not (nats).
    pub fate: f64,
    /// Packets that were to be lost, of a thousand, and those that were.
    pub expected_lost: f64,
    /// See `expected_lost`.
    pub lost: f64,
}

/// The outcome.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of the program.
    pub program: String,
    /// From which all that was drawn follows.
    pub seed: u64,
    /// Sets, and each estimator.
    pub lines: Vec<Line>,
    /// The same of each run.
    pub runs: Vec<Line>,
}

impl Report {
    pub(super) fn new(seed: u64, made: &[Judged]) -> Self {
        let mut sets: Vec<&str> = Vec::new();
        for run in made {
            if !sets.contains(&&*run.set) {
                sets.push(&run.set);
            }
        }
        let enough: Vec<&Judged> = made
            .iter()
            .filter(|run| run.scores[0].1.packets() >= LEAST)
            .collect();
        let lines = |name: &str, runs: &[&Judged]| -> Vec<Line> {
            let each = Estimator::ALL.iter().enumerate();
            let line = |(n, estimator): (usize, &Estimator)| {
                let scores: Vec<&Score> = runs.iter().map(|run| &run.scores[n].1).collect();
                line(name, *estimator, &scores)
            };
            each.map(line).collect()
        };
        let mut all = Vec::new();
        for set in &sets {
            let of: Vec<&Judged> = enough
                .iter()
                .copied()
                .filter(|run| run.set == *set)
                .collect();
            if !of.is_empty() {
                all.extend(lines(set, &of));
            }
        }
        all.extend(lines(ALL, &enough));
        let run = |run: &&Judged| lines(&format!("{}/{}", run.set, run.name), &[*run]);
        Self {
            program: env!("CARGO_PKG_VERSION").to_owned(),
            seed,
            lines: all,
            runs: enough.iter().flat_map(run).collect(),
        }
    }
}

fn line(set: &str, estimator: Estimator, scores: &[&Score]) -> Line {
    let count = scores.len().max(1) as f64;
    let mean = |of: &dyn Fn(&Score) -> f64| scores.iter().map(|s| of(s)).sum::<f64>() / count;
    let packets = |s: &Score| s.packets().max(1) as f64;
    let decile = |n: usize| {
        mean(&|s: &Score| {
            let deciles = s.calibration().deciles;
            deciles[n] as f64 / deciles.iter().sum::<u64>().max(1) as f64
        })
    };
    Line {
        set: set.to_owned(),
        estimator: estimator.name(),
        runs: scores.len(),
        packets: scores.iter().map(|s| s.packets()).sum(),
        likelihood: mean(&Score::likelihood),
        off_ms: mean(&Score::off_ms),
        deciles: std::array::from_fn(decile),
        uneven: mean(&|s: &Score| s.calibration().off().unwrap_or(0.0)),
        fate: mean(&Score::fate),
        expected_lost: mean(&|s: &Score| 1e3 * s.calibration().expected_lost / packets(s)),
        lost: mean(&|s: &Score| 1e3 * s.calibration().lost as f64 / packets(s)),
    }
}

const HEADER: [&str; 10] = [
    "links",
    "estimator",
    "runs",
    "likelihood",
    "off, ms",
    "uneven, %",
    "arrivals in each tenth, %",
    "fate",
    "lost, ‰: said",
    "was",
];

/// The table for a terminal.
pub fn text(report: &Report, runs: bool) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(HEADER);
    let lines = if runs { &report.runs } else { &report.lines };
    for line in lines {
        let deciles = line.deciles.map(|share| format!("{:.0}", 100.0 * share));
        table.add_row([
            line.set.clone(),
            line.estimator.to_owned(),
            line.runs.to_string(),
            format!("{:.3}", line.likelihood),
            format!("{:.2}", line.off_ms),
            format!("{:.1}", 100.0 * line.uneven),
            deciles.join(" "),
            format!("{:.4}", line.fate),
            format!("{:.1}", line.expected_lost),
            format!("{:.1}", line.lost),
        ]);
    }
    for column in 2..HEADER.len() {
        if let Some(column) = table.column_mut(column) {
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
