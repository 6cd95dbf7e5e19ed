//! One sentence from the figures: what bonding gained, and what it cost.
//!
//! Bonding is held against each single link in all figures, for that is what somebody has who does
//! not bond: the goodput of one link and the delays of another nobody has. The speaker for bonding
//! is one scheduler, named before the runs; the best of several would owe its lead to chance.

use super::report::{Figures, RunReport};

/// A figure worth a word.
struct Figure {
    name: &'static str,
    unit: &'static str,
    higher_is_better: bool,
    /// Differences below this, or below [`SHARE`] of the opponent's figure, are none.
    least: f64,
    decimals: usize,
    of: fn(&Figures) -> Option<f64>,
}

/// Repeated runs differ by about this much.
const SHARE: f64 = 0.03;

const FIGURES: &[Figure] = &[
    Figure {
        name: "goodput",
        unit: "Mb/s",
        higher_is_better: true,
        least: 0.1,
        decimals: 1,
        of: |figures| Some(figures.download.goodput_mbps),
    },
    Figure {
        name: "median delay",
        unit: "ms",
        higher_is_better: false,
        least: 1.0,
        decimals: 0,
        of: |figures| Some(figures.live.delay_ms?.p50),
    },
    Figure {
        name: "p99 delay",
        unit: "ms",
        higher_is_better: false,
        least: 1.0,
        decimals: 0,
        of: |figures| Some(figures.live.delay_ms?.p99),
    },
    Figure {
        name: "longest stall",
        unit: "ms",
        higher_is_better: false,
        least: 5.0,
        decimals: 0,
        of: |figures| Some(figures.live.longest_stall_ms),
    },
    Figure {
        name: "lost messages",
        unit: "%",
        higher_is_better: false,
        least: 0.01,
        decimals: 2,
        of: |figures| Some(100.0 * figures.live.lost as f64 / figures.live.sent.max(1) as f64),
    },
    Figure {
        name: "redundancy",
        unit: "%",
        higher_is_better: false,
        least: 0.5,
        decimals: 1,
        of: |figures| Some(100.0 * figures.redundancy),
    },
];

#[derive(Debug, PartialEq)]
enum Difference {
    Gain(String),
    Cost(String),
    None,
}

impl Figure {
    fn compare(&self, single: &Figures, bonded: &Figures) -> Difference {
        let better = |a: f64, b: f64| if self.higher_is_better { a > b } else { a < b };
        let (single, ours) = match ((self.of)(single), (self.of)(bonded)) {
            (Some(single), Some(ours)) => (single, ours),
            (Some(_), None) => return Difference::Cost(format!("any {} at all", self.name)),
            (None, Some(_)) => return Difference::Gain(format!("a {}", self.name)),
            (None, None) => return Difference::None,
        };
        if (ours - single).abs() < self.least.max(SHARE * single.abs()) {
            return Difference::None;
        }
        let (name, unit, decimals) = (self.name, self.unit, self.decimals);
        let text = format!("{name} ({ours:.decimals$} instead of {single:.decimals$} {unit})");
        if better(ours, single) {
            Difference::Gain(text)
        } else {
            Difference::Cost(text)
        }
    }
}

/// The sentence. `scheduler` speaks for bonding if it was run, else the first that was.
pub(super) fn sentence(runs: &[RunReport], scheduler: &str) -> String {
    let sound = || runs.iter().filter(|run| run.failure().is_none());
    let singles: Vec<(&RunReport, &Figures)> = sound()
        .filter(|run| !run.bonded())
        .filter_map(|run| Some((run, run.figures.as_ref()?)))
        .collect();
    let speaker = sound()
        .filter(|run| run.bonded())
        .min_by_key(|run| run.scheduler != scheduler);
    let all_singles = runs.iter().filter(|run| !run.bonded()).count();
    let Some((run, bonded)) = speaker.and_then(|run| Some((run, run.figures.as_ref()?))) else {
        return "Nothing can be said about bonding: no bonded run succeeded.".to_owned();
    };
    if singles.is_empty() || singles.len() < all_singles {
        return "Nothing can be said about bonding: a run over a single link failed.".to_owned();
    }
    let against = singles.iter().map(|(single, figures)| {
        let (gains, costs) = differences(figures, bonded);
        let link = single.links.join("+");
        format!("against link {link} alone, gained {gains} and cost {costs}")
    });
    let against: Vec<String> = against.collect();
    format!("Bonding with {}, {}.", run.scheduler, against.join("; "))
}

/// What bonding gained and what it cost, each as a list.
fn differences(single: &Figures, bonded: &Figures) -> (String, String) {
    let (mut gains, mut costs) = (Vec::new(), Vec::new());
    for figure in FIGURES {
        match figure.compare(single, bonded) {
            Difference::Gain(text) => gains.push(text),
            Difference::Cost(text) => costs.push(text),
            Difference::None => {}
        }
    }
    (list(&gains), list(&costs))
}

fn list(items: &[String]) -> String {
    if items.is_empty() {
        "nothing".to_owned()
    } else {
        items.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::run;
    use super::*;

    fn singles() -> Vec<RunReport> {
        vec![
            run(&["A"], [17.0, 16.0, 2000.0, 2010.0, 0.011]),
            run(&["B"], [9.5, 41.0, 45.0, 12.0, 0.0]),
        ]
    }

    fn with(figures: [f64; 5]) -> String {
        let mut runs = singles();
        runs.push(run(&["A", "B"], figures));
        sentence(&runs, "edpf")
    }

    #[test]
    fn gains_and_costs_are_told_of_each_link() {
        assert_eq!(
            with([25.3, 16.2, 80.0, 65.0, 0.02]),
            "Bonding with edpf, against link A alone, gained goodput (25.3 instead of 17.0 Mb/s), \
             p99 delay (80 instead of 2000 ms), longest stall (65 instead of 2010 ms) and cost \
             redundancy (2.0 instead of 1.1 %); against link B alone, gained goodput (25.3 instead \
             of 9.5 Mb/s), median delay (16 instead of 41 ms) and cost p99 delay (80 instead of 45 \
             ms), longest stall (65 instead of 12 ms), redundancy (2.0 instead of 0.0 %)."
        );
    }

    #[test]
    fn what_costs_nothing_or_gains_nothing_is_said() {
        assert!(with([25.3, 16.2, 30.0, 12.0, 0.0]).ends_with(
            "against link B alone, gained goodput (25.3 instead of 9.5 Mb/s), median delay (16 \
             instead of 41 ms), p99 delay (30 instead of 45 ms) and cost nothing."
        ));
        let text = with([8.0, 50.0, 46.0, 13.0, 1.0]);
        assert!(
            text.ends_with(
                "against link B alone, gained nothing and cost goodput (8.0 instead of 9.5 Mb/s), \
                 median delay (50 instead of 41 ms), redundancy (100.0 instead of 0.0 %)."
            ),
            "{text}"
        );
    }

    #[test]
    fn a_stream_that_never_came_is_a_cost() {
        let mut runs = singles();
        let mut silent = run(&["A", "B"], [25.0, 0.0, 0.0, 9000.0, 0.0]);
        let live = &mut silent.figures.as_mut().unwrap().live;
        (live.delay_ms, live.received, live.lost) = (None, 0, 100);
        runs.push(silent);
        let text = sentence(&runs, "edpf");
        assert!(text.contains("cost any median delay at all"), "{text}");
        assert!(text.contains("lost messages (100.00 instead of 0.00 %)"));
    }

    #[test]
    fn the_named_scheduler_speaks_and_a_failed_run_does_not() {
        let mut runs = singles();
        for (scheduler, goodput) in [("min-rtt", 30.0), ("edpf", 20.0)] {
            let mut bonded = run(&["A", "B"], [goodput, 16.0, 45.0, 12.0, 0.0]);
            bonded.scheduler = scheduler.to_owned();
            runs.push(bonded);
        }
        assert!(sentence(&runs, "edpf").starts_with("Bonding with edpf,"));
        assert!(sentence(&runs, "other").starts_with("Bonding with min-rtt,"));
        runs[3].error = Some("no session".to_owned());
        assert!(sentence(&runs, "edpf").starts_with("Bonding with min-rtt,"));
        runs[2].error = Some("no session".to_owned());
        assert!(sentence(&runs, "edpf").contains("no bonded run succeeded"));
        runs[2].error = None;
        runs[1].error = Some("no session".to_owned());
        assert!(sentence(&runs, "edpf").contains("a run over a single link failed"));
    }
}
