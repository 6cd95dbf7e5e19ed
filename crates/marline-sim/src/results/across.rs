//! One scheduler against another over cells that were drawn at random.

use std::collections::BTreeMap;

use super::{DRAW, Group, Results, Summary};

/// A ratio over draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Across {
    /// Number of draws; a cell that was not drawn counts as one.
    pub n: usize,
    /// Geometric mean over the draws, of each the geometric mean of its cells' ratios.
    pub value: f64,
    /// Its 95 % confidence interval, of Student's t over the draws' logarithms; `None` for one
    /// draw.
    pub interval: Option<(f64, f64)>,
    /// The smallest and the largest ratio of a cell.
    pub range: (f64, f64),
}

/// Groups by scheduler and cell, for many comparisons.
#[derive(Clone, Debug)]
pub struct Comparison<'a>(BTreeMap<&'a str, BTreeMap<&'a Cell, Group<'a>>>);

type Cell = BTreeMap<String, String>;

impl Results {
    /// The groups, to be compared.
    pub fn comparison(&self) -> Comparison<'_> {
        let mut of: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for group in self.groups() {
            let cells = of.entry(group.scheduler).or_default();
            cells.insert(group.cell, group);
        }
        Comparison(of)
    }
}

impl Comparison<'_> {
    /// The measure of a scheduler relative to that of another, over the cells where both have one
    /// above zero and a ratio; `None` if there is no such cell.
    ///
    /// What was drawn independently is a sample of what could be drawn, so that the interval speaks
    /// of all of that. The cells that an axis makes of one draw are no such sample, for they have
    /// all else in common; so they are one value. Of cells that somebody chose the interval says
    /// nothing.
    pub fn across(&self, scheduler: &str, to: &str, measure: &str) -> Option<Across> {
        let others = self.0.get(to)?;
        let ratios = self.0.get(scheduler)?.iter().filter_map(|(cell, group)| {
            let ratio = group.ratio(others.get(cell)?, measure)?.value;
            (ratio > 0.0).then(|| (*cell, ratio.ln()))
        });
        let mut all = Vec::new();
        let mut draws: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for (cell, ratio) in ratios {
            let number = cell.get(DRAW);
            let chosen = number.is_none().then_some(cell);
            draws.entry((number, chosen)).or_default().push(ratio);
            all.push(ratio);
        }
        let mean = |ratios: &Vec<f64>| ratios.iter().sum::<f64>() / ratios.len() as f64;
        let means: Vec<f64> = draws.values().map(mean).collect();
        let (summary, cells) = (Summary::of(&means)?, Summary::of(&all)?);
        Some(Across {
            n: summary.n,
            value: summary.mean.exp(),
            interval: summary.interval.map(|(low, high)| (low.exp(), high.exp())),
            range: (cells.min.exp(), cells.max.exp()),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::results::{DRAW, sample};

    #[test]
    fn ratios_of_cells_have_a_geometric_mean() {
        let mut results = sample::results();
        let measure = "video.in_order_delay.p99_ms";
        // Twice as long in one cell, half as long in the other.
        for run in &mut results.runs {
            let quick = run.cell["links.b.rtt"] == "20ms";
            let value = match (run.scheduler.as_str(), quick) {
                ("edpf", _) => 20.0,
                (_, true) => 10.0,
                (_, false) => 40.0,
            };
            run.values.insert(measure.into(), value);
        }
        let across = results
            .comparison()
            .across("min-rtt", "edpf", measure)
            .unwrap();
        assert!((across.value - 1.0).abs() < 1e-12, "{across:?}");
        assert_eq!(across.n, 2);
        assert!((across.range.0 - 0.5).abs() < 1e-12, "{across:?}");
        assert!((across.range.1 - 2.0).abs() < 1e-12, "{across:?}");
        // t(1) = 12.7062, times the standard error ln 2.
        let high = across.interval.unwrap().1;
        assert!(
            (high.ln() - 12.7062 * 2_f64.ln()).abs() < 1e-3,
            "{across:?}"
        );
        assert_eq!(
            results.comparison().across("min-rtt", "no-such", measure),
            None
        );
    }

    #[test]
    fn the_cells_that_an_axis_makes_of_a_draw_are_one_value() {
        let mut results = sample::results();
        let measure = "video.in_order_delay.p99_ms";
        let chosen = results.runs.clone();
        results.runs.clear();
        // The draw decides the ratio, and the axis a little.
        for (draw, ratio) in [("1", 2.0), ("2", 4.0), ("3", 8.0)] {
            for mut run in chosen.iter().cloned() {
                let little = if run.cell["links.b.rtt"] == "20ms" {
                    1.25
                } else {
                    0.8
                };
                let value = match run.scheduler.as_str() {
                    "edpf" => 10.0,
                    _ => 10.0 * ratio * little,
                };
                run.values.insert(measure.into(), value);
                run.cell.insert(DRAW.into(), draw.into());
                results.runs.push(run);
            }
        }
        let across = results.comparison().across("min-rtt", "edpf", measure);
        let across = across.unwrap();
        assert_eq!(across.n, 3);
        assert!((across.value - 4.0).abs() < 1e-9, "{across:?}");
        // t(2) = 4.3027, times the standard error ln 2 / √3.
        let high = across.interval.unwrap().1;
        let half = 4.3027 * 2_f64.ln() / 3_f64.sqrt();
        assert!((high.ln() - 4_f64.ln() - half).abs() < 1e-3, "{across:?}");
        assert!((across.range.0 - 1.6).abs() < 1e-9, "{across:?}");
        assert!((across.range.1 - 10.0).abs() < 1e-9, "{across:?}");
    }

    #[test]
    fn a_cell_without_a_ratio_is_left_out() {
        let mut results = sample::results();
        let measure = "video.in_order_delay.p99_ms";
        for run in &mut results.runs {
            if run.cell["links.b.rtt"] == "160ms" {
                run.values.insert(measure.into(), 0.0);
            }
        }
        let across = results
            .comparison()
            .across("min-rtt", "edpf", measure)
            .unwrap();
        assert_eq!((across.n, across.interval), (1, None));
    }
}
