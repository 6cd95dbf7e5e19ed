//! What was found, for people and for programs.

use super::compare::agree;
use crate::commands::real::{Quantiles, Real};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

/// What a simulated run measured.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Simulated {
    pub(super) delay_ms: Quantiles,
    /// Share of the messages that did not come.
    pub(super) lost: f64,
}

/// Everything, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Of this form.
    pub(super) version: u32,
    pub(super) scenarios: Vec<Verdict>,
}

/// A scenario with a scheduler, both ways.
#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    scenario: String,
    scheduler: String,
    quantiles: Vec<Line>,
    simulated: Vec<Simulated>,
    real: Vec<Real>,
}

/// A quantile both ways (milliseconds): means over runs, and the range of the simulated ones.
#[derive(Debug, Serialize)]
struct Line {
    quantile: &'static str,
    simulated: f64,
    least: f64,
    most: f64,
    real: f64,
    agrees: bool,
}

impl Verdict {
    /// From at least one run of either kind.
    pub(super) fn new(
        scenario: &str,
        scheduler: &str,
        simulated: Vec<Simulated>,
        real: Vec<Real>,
    ) -> Self {
        let runs: Vec<Quantiles> = simulated.iter().map(|run| run.delay_ms).collect();
        let real_runs: Vec<Quantiles> = real.iter().filter_map(|run| run.calm_ms).collect();
        let means = Quantiles::mean(&runs).zip(Quantiles::mean(&real_runs));
        let mut quantiles = Vec::new();
        if let Some((mean, real)) = means {
            for (i, (quantile, simulated)) in mean.named().into_iter().enumerate() {
                let ones = runs.iter().map(|run| run.named()[i].1);
                let real = real.named()[i].1;
                quantiles.push(Line {
                    quantile,
                    simulated,
                    least: ones.clone().fold(f64::INFINITY, f64::min),
                    most: ones.fold(f64::NEG_INFINITY, f64::max),
                    real,
                    agrees: agree(simulated, real),
                });
            }
        }
        Self {
            scenario: scenario.to_owned(),
            scheduler: scheduler.to_owned(),
            quantiles,
            simulated,
            real,
        }
    }
}

impl Report {
    /// Quantiles that do not agree.
    pub(super) fn misses(&self) -> usize {
        let lines = self.scenarios.iter().flat_map(|one| &one.quantiles);
        lines.filter(|line| !line.agrees).count()
    }
}

const HEADER: [&str; 11] = [
    "scenario",
    "",
    "simulated\nms",
    "of all seeds\nms",
    "real\nms",
    "difference\nms",
    "",
    "lost %\nsim, real",
    "late p99, ms\nrelay, sender",
    "left out\n%",
    "",
];

/// The table.
pub(super) fn text(report: &Report) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(HEADER);
    for verdict in &report.scenarios {
        for (i, line) in verdict.quantiles.iter().enumerate() {
            let [name, lost, late, left_out] = match i {
                0 => first(verdict),
                _ => [const { String::new() }; 4],
            };
            let name = match i {
                1 => format!("  {}", verdict.scheduler),
                _ => name,
            };
            let difference = line.simulated - line.real;
            table.add_row([
                name,
                line.quantile.to_owned(),
                format!("{:.1}", line.simulated),
                format!("{:.1}–{:.1}", line.least, line.most),
                format!("{:.1}", line.real),
                format!("{difference:+.1}"),
                format!("{:+.0} %", 100.0 * difference / line.real),
                lost,
                late,
                left_out,
                if line.agrees { "PASS" } else { "MISS" }.to_owned(),
            ]);
        }
    }
    for column in 2..HEADER.len() - 1 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned() + "\n");
    let count: usize = report.scenarios.iter().map(|one| one.quantiles.len()).sum();
    let agreed = count - report.misses();
    lines.collect::<String>()
        + &format!("\n{agreed} of {count} quantiles agree within 10 % or 1 ms")
}

/// Name, losses, lateness and what was left out of a scenario.
fn first(verdict: &Verdict) -> [String; 4] {
    let real = &verdict.real;
    let mean = |sum: f64, count: usize| sum / count.max(1) as f64;
    let simulated: f64 = verdict.simulated.iter().map(|run| run.lost).sum();
    let lost = real.iter().map(|run| run.lost).sum();
    let left_out = real.iter().map(|run| run.left_out).sum();
    let [relays, sender]: [fn(&Real) -> f64; 2] =
        [|run| run.relays_late_ms, |run| run.sender_late_ms];
    let worst = |of: fn(&Real) -> f64| real.iter().map(of).fold(0.0, f64::max);
    [
        verdict.scenario.clone(),
        format!(
            "{:.2}, {:.2}",
            100.0 * mean(simulated, verdict.simulated.len()),
            100.0 * mean(lost, real.len())
        ),
        format!("{:.2}, {:.2}", worst(relays), worst(sender)),
        format!("{:.1}", 100.0 * mean(left_out, real.len())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantiles(p50: f64, p95: f64, p99: f64) -> Quantiles {
        Quantiles { p50, p95, p99 }
    }

    fn report() -> Report {
        let simulated = |delay_ms| Simulated {
            delay_ms,
            lost: 0.0,
        };
        let real = Real {
            delay_ms: Some(quantiles(20.5, 31.5, 90.0)),
            calm_ms: Some(quantiles(20.5, 31.5, 60.0)),
            lost: 0.01,
            left_out: 0.034,
            goodput_mbps: 4.0,
            redundancy: None,
            relays_late_ms: 0.1,
            sender_late_ms: 0.2,
        };
        let runs = [quantiles(20.0, 30.0, 40.0), quantiles(20.0, 32.0, 50.0)];
        let simulated = runs.map(simulated).to_vec();
        Report {
            version: 1,
            scenarios: vec![Verdict::new("loss", "edpf", simulated, vec![real])],
        }
    }

    #[test]
    fn a_quantile_that_differs_too_much_is_a_miss() {
        let report = report();
        let agrees: Vec<_> = report.scenarios[0]
            .quantiles
            .iter()
            .map(|l| l.agrees)
            .collect();
        // 45 ms on average against 60.
        assert_eq!(agrees, [true, true, false]);
        assert_eq!(report.misses(), 1);
    }

    #[test]
    fn the_table_says_all_of_it() {
        let text = text(&report());
        for part in [
            "loss",
            "edpf",
            "40.0–50.0",
            "-15.0",
            "-25 %",
            "MISS",
            "0.00, 1.00",
            "3.4",
        ] {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
        assert!(text.ends_with("2 of 3 quantiles agree within 10 % or 1 ms"));
    }
}
