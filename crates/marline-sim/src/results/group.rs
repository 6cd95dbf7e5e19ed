//! The runs of one cell and one scheduler together.

use std::collections::{BTreeMap, BTreeSet};

use super::{Fraction, Proportion, Ratio, Results, Run, Summary};

/// All seeds of one cell under one scheduler.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// The axes' values, as written, by key.
    pub cell: &'a BTreeMap<String, String>,
    /// The scheduler, as written.
    pub scheduler: &'a str,
    /// Its runs, by seed.
    pub runs: Vec<&'a Run>,
}

/// A measure over the seeds of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Estimate {
    /// Of a scalar: the mean over seeds.
    Mean(Summary),
    /// Of a fraction: pooled over seeds.
    Share(Proportion),
}

impl Estimate {
    /// The mean, or the pooled fraction.
    pub fn value(&self) -> f64 {
        match self {
            Self::Mean(summary) => summary.mean,
            Self::Share(share) => share.value,
        }
    }

    /// The 95 % confidence interval of [`Self::value`], if it has one.
    pub fn interval(&self) -> Option<(f64, f64)> {
        match self {
            Self::Mean(summary) => summary.interval,
            Self::Share(share) => Some(share.interval),
        }
    }

    /// Number of seeds behind it.
    pub fn n(&self) -> usize {
        match self {
            Self::Mean(summary) => summary.n,
            Self::Share(share) => share.n,
        }
    }
}

impl Group<'_> {
    /// The measure over those seeds that have it; `None` if none has, or a value is not finite.
    pub fn estimate(&self, measure: &str) -> Option<Estimate> {
        let fractions: Vec<Fraction> = self
            .runs
            .iter()
            .filter_map(|run| run.fractions.get(measure).copied())
            .collect();
        if !fractions.is_empty() {
            return Proportion::pooled(&fractions).map(Estimate::Share);
        }
        let values: Vec<f64> = self
            .runs
            .iter()
            .filter_map(|run| run.values.get(measure).copied())
            .collect();
        Summary::of(&values).map(Estimate::Mean)
    }

    /// The measure relative to another group's, over the seeds that both have.
    pub fn ratio(&self, to: &Group<'_>, measure: &str) -> Option<Ratio> {
        let value = |run: &Run| {
            let fraction = run.fractions.get(measure);
            fraction
                .filter(|fraction| fraction.trials > 0)
                .map(|fraction| fraction.hits as f64 / fraction.trials as f64)
                .or_else(|| run.values.get(measure).copied())
        };
        let others: BTreeMap<u64, f64> = to
            .runs
            .iter()
            .filter_map(|run| Some((run.seed, value(run)?)))
            .collect();
        let pairs: Vec<(f64, f64)> = self
            .runs
            .iter()
            .filter_map(|run| Some((value(run)?, *others.get(&run.seed)?)))
            .collect();
        Ratio::paired(&pairs)
    }
}

impl Results {
    /// The runs by cell and scheduler, in the order in which they first appear.
    pub fn groups(&self) -> Vec<Group<'_>> {
        let mut groups: Vec<Group<'_>> = Vec::new();
        let mut known: BTreeMap<(&BTreeMap<String, String>, &str), usize> = BTreeMap::new();
        for run in &self.runs {
            let index = *known.entry((&run.cell, &run.scheduler)).or_insert_with(|| {
                groups.push(Group {
                    cell: &run.cell,
                    scheduler: &run.scheduler,
                    runs: Vec::new(),
                });
                groups.len() - 1
            });
            groups[index].runs.push(run);
        }
        for group in &mut groups {
            group.runs.sort_by_key(|run| run.seed);
        }
        groups
    }

    /// The names of all scalars and fractions, in order.
    pub fn measures(&self) -> BTreeSet<&str> {
        self.runs
            .iter()
            .flat_map(|run| run.values.keys().chain(run.fractions.keys()))
            .map(String::as_str)
            .collect()
    }

    /// The keys of the axes, in order.
    pub fn axes(&self) -> BTreeSet<&str> {
        self.runs
            .iter()
            .flat_map(|run| run.cell.keys())
            .map(String::as_str)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    #[test]
    fn groups_keep_the_order_of_the_runs() {
        let results = sample::results();
        let names: Vec<String> = results
            .groups()
            .iter()
            .map(|group| format!("{} {}", group.cell["links.b.rtt"], group.scheduler))
            .collect();
        assert_eq!(
            names,
            ["20ms edpf", "20ms min-rtt", "160ms edpf", "160ms min-rtt"]
        );
    }

    #[test]
    fn scalars_are_averaged_and_fractions_pooled() {
        let results = sample::results();
        let groups = results.groups();
        let Some(Estimate::Mean(delay)) = groups[0].estimate("video.in_order_delay.p99_ms") else {
            panic!("a scalar");
        };
        assert_eq!((delay.n, delay.mean), (3, 21.0));
        let Some(Estimate::Share(late)) = groups[0].estimate("video.late") else {
            panic!("a fraction");
        };
        assert_eq!((late.hits, late.trials, late.n), (6, 300, 3));
        assert_eq!(groups[0].estimate("video.no_such"), None);
    }

    #[test]
    fn ratios_pair_seeds_and_leave_out_those_without_a_partner() {
        let mut results = sample::results();
        let groups = results.groups();
        let ratio = groups[3].ratio(&groups[2], "video.in_order_delay.p99_ms");
        assert_eq!(ratio.unwrap().n, 3);
        results.runs.remove(0);
        let groups = results.groups();
        let ratio = groups[1].ratio(&groups[0], "video.in_order_delay.p99_ms");
        assert_eq!(ratio.unwrap().n, 2);
    }
}
