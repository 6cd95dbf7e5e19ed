//! One scheduler against another over cells that were drawn at random.

use super::{Group, Results, Summary};

/// A ratio over cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Across {
    /// Number of cells.
    pub n: usize,
    /// Geometric mean of the cells' ratios.
    pub value: f64,
    /// Its 95 % confidence interval, of Student's t over the logarithms; `None` for one cell.
    pub interval: Option<(f64, f64)>,
    /// The smallest and the largest ratio.
    pub range: (f64, f64),
}

impl Results {
    /// The measure of a scheduler relative to that of another, over the cells where both have one above zero and a ratio;
    /// `None` if there is no such cell.
    ///
    /// Cells that were drawn independently are a sample of those that could be drawn, so that the interval speaks of
    /// all of these. Of cells that somebody chose it says nothing.
    pub fn across(&self, scheduler: &str, to: &str, measure: &str) -> Option<Across> {
        let groups = self.groups();
        let of = |name| move |group: &&Group<'_>| group.scheduler == name;
        let ratios = groups.iter().filter(of(scheduler)).filter_map(|group| {
            let mut others = groups.iter().filter(of(to));
            let other = others.find(|other| other.cell == group.cell)?;
            let ratio = group.ratio(other, measure)?.value;
            (ratio > 0.0).then(|| ratio.ln())
        });
        let summary = Summary::of(&ratios.collect::<Vec<f64>>())?;
        Some(Across {
            n: summary.n,
            value: summary.mean.exp(),
            interval: summary.interval.map(|(low, high)| (low.exp(), high.exp())),
            range: (summary.min.exp(), summary.max.exp()),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::results::sample;

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
        let across = results.across("min-rtt", "edpf", measure).unwrap();
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
        assert_eq!(results.across("min-rtt", "no-such", measure), None);
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
        let across = results.across("min-rtt", "edpf", measure).unwrap();
        assert_eq!((across.n, across.interval), (1, None));
    }
}
