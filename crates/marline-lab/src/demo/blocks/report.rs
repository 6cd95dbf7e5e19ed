//! What a demo of blocks found. The field names are the JSON names; fields may be added.

use super::super::report::LinkReport;
use super::{Load, SIMULATED};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use marline_base::nearest_rank;
use serde::Serialize;

/// The whole demo.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Version of this format: 1.
    pub version: u32,
    /// Seed of everything random in the links and the blocks.
    pub seed: u64,
    /// Length of each run, seconds.
    pub seconds: f64,
    /// The beginning of each run that does not count, seconds.
    pub warmup_s: f64,
    /// Both ends and each relay were processes of their own.
    pub processes: bool,
    /// The blocks.
    pub load: Load,
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
    /// Names of the links in use.
    pub links: Vec<&'static str>,
    /// The scheduler of the blocks; `None` of plain TCP.
    pub scheduler: Option<String>,
    /// The congestion controller of each path or connection.
    pub congestion: &'static str,
    /// Why the run failed, if it did.
    pub error: Option<String>,
    /// What was measured; `None` if the run failed.
    pub figures: Option<Figures>,
    /// The same in the simulator, over some seeds; `None` of what it cannot run.
    pub simulated: Option<Lateness>,
}

/// What one run measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// Blocks that did not come by their deadline, whatever the reason.
    pub lateness: Lateness,
    /// Blocks that the session refused.
    pub refused: u64,
    /// Blocks that were taken and never came.
    pub missing: u64,
    /// Arrivals that were not what was sent, or came twice, the warm-up's included.
    pub damaged: u64,
    /// Delay from the write of a block until it was whole, of those that came, ms.
    pub delay_ms: Option<Delays>,
    /// (bytes sent − source bytes) / source bytes, the warm-up's included.
    pub redundancy: f64,
    /// How late the relays sent datagrams, the worst of them: 99th percentile, ms. More than a
    /// millisecond says that the machine was too busy for a measurement.
    pub relays_late_ms: f64,
}

/// Late blocks out of all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Lateness {
    /// Late ones.
    pub late: u64,
    /// All that count.
    pub blocks: u64,
    /// `late / blocks`.
    pub fraction: f64,
    /// Wilson's 95 % interval of the fraction. Late blocks come in series, so it is rather too
    /// narrow.
    pub interval: [f64; 2],
}

/// Quantiles of delays (ms).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Delays {
    /// Median.
    pub p50: f64,
    /// 98th percentile.
    pub p98: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl Delays {
    /// Of delays in ms; `None` without any.
    pub(super) fn of(mut delays: Vec<f64>) -> Option<Self> {
        delays.sort_unstable_by(f64::total_cmp);
        let at = |percent| nearest_rank(&delays, percent);
        Some(Delays {
            p50: at(50)?,
            p98: at(98)?,
            p99: at(99)?,
        })
    }
}

impl RunReport {
    /// What went wrong in it: it failed, or what came was not what was sent.
    pub fn failure(&self) -> Option<String> {
        match (&self.error, &self.figures) {
            (Some(error), _) => Some(error.clone()),
            (None, None) => Some("nothing was measured".to_owned()),
            (None, Some(figures)) if figures.damaged > 0 => Some(format!(
                "{} blocks were not what was sent, or came twice",
                figures.damaged
            )),
            (None, Some(_)) => None,
        }
    }
}

impl Report {
    /// What went wrong, run by run.
    pub fn failures(&self) -> Vec<String> {
        let failed = self.runs.iter();
        failed
            .filter_map(|run| Some(format!("{}: {}", run.name, run.failure()?)))
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
                "late\n%",
                "95 %\ninterval",
                "simulated\n%",
                "95 %\ninterval",
                "p50\nms",
                "p98\nms",
                "refused",
                "redundancy\n%",
                "relays\nlate ms",
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
        let Load {
            size,
            every,
            deadline,
            reliability,
        } = self.load;
        text += &format!(
            "A block of {} kB every {every:?} for {} s; late is what is not whole {deadline:?} after it was written.\n\
             Asked for: {} % on time. The first {:.1} s do not count. Simulated: {SIMULATED} runs with other draws.\n\
             {}.\n\n",
            size as f64 / 1e3,
            self.seconds,
            100.0 * reliability,
            self.warmup_s,
            match self.processes {
                true => "Each relay, sender and receiver is a process of its own",
                false => "Relays, sender and receiver are threads of one process",
            },
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
    let none = || "-".to_owned();
    let fraction = |lateness: Option<Lateness>| match lateness {
        Some(Lateness {
            fraction,
            interval: [low, high],
            ..
        }) => [
            format!("{:.1}", 100.0 * fraction),
            format!("{:.1} to {:.1}", 100.0 * low, 100.0 * high),
        ],
        None => [none(), none()],
    };
    let figures = run.figures;
    let delays = figures.and_then(|figures| figures.delay_ms);
    let mut row = vec![run.name.clone()];
    row.extend(fraction(figures.map(|figures| figures.lateness)));
    row.extend(fraction(run.simulated));
    row.push(delays.map_or_else(none, |delays| format!("{:.1}", delays.p50)));
    row.push(delays.map_or_else(none, |delays| format!("{:.1}", delays.p98)));
    row.push(figures.map_or_else(none, |figures| figures.refused.to_string()));
    row.push(figures.map_or_else(none, |figures| format!("{:.1}", 100.0 * figures.redundancy)));
    row.push(figures.map_or_else(none, |figures| format!("{:.2}", figures.relays_late_ms)));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_of_what_came() {
        let delays = Delays::of((1..=100).rev().map(f64::from).collect()).unwrap();
        assert_eq!((delays.p50, delays.p98, delays.p99), (50.0, 98.0, 99.0));
        assert_eq!(Delays::of(Vec::new()), None);
    }

    #[test]
    fn runs_fail_by_an_error_or_by_what_came() {
        let figures = Figures {
            lateness: super::super::tally::lateness(&[marline_sim::results::Fraction {
                hits: 1,
                trials: 2,
            }])
            .unwrap(),
            refused: 0,
            missing: 1,
            damaged: 0,
            delay_ms: None,
            redundancy: 0.0,
            relays_late_ms: 0.0,
        };
        let run = |error: Option<&str>, figures| RunReport {
            name: "hop-jump".into(),
            links: vec!["A", "B"],
            scheduler: Some("hop-jump".into()),
            congestion: "none",
            error: error.map(str::to_owned),
            figures,
            simulated: None,
        };
        // Late blocks are a figure, not a failure.
        assert_eq!(run(None, Some(figures)).failure(), None);
        assert_eq!(run(Some("no"), None).failure().unwrap(), "no");
        let damaged = Figures {
            damaged: 3,
            ..figures
        };
        assert!(
            run(None, Some(damaged))
                .failure()
                .unwrap()
                .contains("3 blocks")
        );
        assert_eq!(
            row(&run(None, Some(figures)))[1..3],
            ["50.0", "9.5 to 90.5"]
        );
        assert_eq!(row(&run(Some("no"), None)).len(), 10);
    }
}
