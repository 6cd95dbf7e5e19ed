//! What a demo of objects found. The field names are the JSON names; fields may be added.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use marline_base::nearest_rank;
use serde::Serialize;

use super::super::report::LinkReport;

/// The whole demo.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Version of this format: 1.
    pub version: u32,
    /// Seed of everything random in the links and the pages.
    pub seed: u64,
    /// Pages that each run measures.
    pub pages: u64,
    /// Objects of a page, and how many of these are urgent.
    pub objects: u64,
    /// See `objects`.
    pub urgent: u64,
    /// The links, in the order of their names.
    pub links: Vec<LinkReport>,
    /// One run a row of the table, in its order.
    pub runs: Vec<RunReport>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// As the table names it.
    pub name: String,
    /// Names of the links in use: one, or several when bonded.
    pub links: Vec<&'static str>,
    /// The scheduler of the objects.
    pub scheduler: String,
    /// Why the run failed, if it did.
    pub error: Option<String>,
    /// What was measured; `None` if the run failed.
    pub figures: Option<Figures>,
}

/// What one run measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// Objects that came whole, once each.
    pub received: u64,
    /// Every one of them had the SHA-256 of what was sent.
    pub sha256_ok: bool,
    /// Delay from the write of an object until it was whole, ms.
    pub all: Delays,
    /// The same of the urgent ones.
    pub urgent: Delays,
    /// (bytes sent − source bytes) / source bytes.
    pub redundancy: f64,
}

/// Quantiles of delays (ms).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Delays {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl Delays {
    /// Of delays in ms.
    pub(super) fn of(mut delays: Vec<f64>) -> Self {
        delays.sort_unstable_by(f64::total_cmp);
        let at = |percent| nearest_rank(&delays, percent).unwrap_or(f64::NAN);
        Delays {
            p50: at(50),
            p95: at(95),
            p99: at(99),
        }
    }
}

impl RunReport {
    /// What went wrong in it: it failed, or what came was not what was sent.
    pub fn failure(&self, expected: u64) -> Option<String> {
        match (&self.error, &self.figures) {
            (Some(error), _) => Some(error.clone()),
            (None, None) => Some("nothing was measured".to_owned()),
            (None, Some(figures)) if !figures.sha256_ok => {
                Some("an object's SHA-256 differs from what was sent".to_owned())
            }
            (None, Some(figures)) if figures.received != expected => {
                let received = figures.received;
                Some(format!("{received} of {expected} objects came"))
            }
            (None, Some(_)) => None,
        }
    }
}

impl Report {
    /// What went wrong, run by run.
    pub fn failures(&self) -> Vec<String> {
        let expected = self.pages * self.objects;
        let failed = self.runs.iter();
        failed
            .filter_map(|run| Some(format!("{}: {}", run.name, run.failure(expected)?)))
            .collect()
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut table = Table::new();
        table
            .load_style(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header([
                "",
                "p50\nms",
                "p95\nms",
                "p99\nms",
                "urgent\np50 ms",
                "urgent\np95 ms",
                "redundancy\n%",
                "SHA-256",
            ]);
        for run in &self.runs {
            table.add_row(row(run));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let mut text = String::new();
        for link in &self.links {
            text += &format!("Link {}: {}\n", link.name, link.config);
        }
        text += &format!(
            "Each run: {} pages of {} objects, {} of them urgent, written at once.\n\
             Delays are from the write of an object until it is whole.\n\n",
            self.pages, self.objects, self.urgent
        );
        for line in table.lines() {
            text += line.trim_end();
            text.push('\n');
        }
        for failure in self.failures() {
            text += &format!("\n{failure}\n");
        }
        text.trim_end().to_owned()
    }
}

fn row(run: &RunReport) -> Vec<String> {
    let mut row = vec![run.name.clone()];
    let Some(figures) = &run.figures else {
        row.resize(8, "-".to_owned());
        return row;
    };
    let Figures { all, urgent, .. } = figures;
    let delays = [all.p50, all.p95, all.p99, urgent.p50, urgent.p95];
    row.extend(delays.map(|delay| format!("{delay:.1}")));
    row.push(format!("{:.1}", 100.0 * figures.redundancy));
    row.push(if figures.sha256_ok { "ok" } else { "DIFFERS" }.to_owned());
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_fail_by_an_error_a_checksum_or_what_is_missing() {
        let delays = Delays::of((1..=100).map(f64::from).collect());
        assert_eq!((delays.p50, delays.p95, delays.p99), (50.0, 95.0, 99.0));
        let figures = Figures {
            received: 200,
            sha256_ok: true,
            all: delays,
            urgent: delays,
            redundancy: 0.0,
        };
        let run = |error: Option<&str>, figures| RunReport {
            name: "bonded, sos".into(),
            links: vec!["A", "B"],
            scheduler: "sos".into(),
            error: error.map(str::to_owned),
            figures,
        };
        assert_eq!(run(None, Some(figures)).failure(200), None);
        assert!(
            run(None, Some(figures))
                .failure(300)
                .unwrap()
                .contains("200 of 300")
        );
        let differs = Figures {
            sha256_ok: false,
            ..figures
        };
        assert!(
            run(None, Some(differs))
                .failure(200)
                .unwrap()
                .contains("SHA-256")
        );
        assert_eq!(run(Some("no"), None).failure(200).unwrap(), "no");
    }
}
