//! Bounds against measurements.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::measure::is_less_better;
use crate::results::{Group, Results, unit};
use crate::scenario::Expectation;

/// What became of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The mean lies within.
    Holds,
    /// The mean lies outside, or nothing was measured.
    Missed,
    /// There is no bound, only a published value beside the measured one.
    Unbounded,
}

/// A bound in one cell, judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// The figure or table of the publication.
    pub figure: String,
    /// Values of the axes.
    pub cell: BTreeMap<String, String>,
    /// The scheduler.
    pub scheduler: String,
    /// What the value is divided by: a scheduler, or the best of some cells.
    pub relative_to: Option<String>,
    /// The measure.
    pub measure: String,
    /// Its unit; empty for counts, fractions and ratios.
    pub unit: &'static str,
    /// What the publication reports.
    pub published: Option<f64>,
    /// The mean over seeds; `None` if nothing was measured.
    pub measured: Option<f64>,
    /// Its 95 % confidence interval; `None` for one seed.
    pub interval: Option<(f64, f64)>,
    /// Seeds behind it.
    pub n: usize,
    /// Smallest mean that passes.
    pub least: Option<f64>,
    /// Largest mean that passes.
    pub most: Option<f64>,
    /// What became of it.
    pub outcome: Outcome,
    /// The interval reaches across a bound: other seeds may say otherwise.
    pub close: bool,
    /// Where the bound comes from.
    pub note: Option<String>,
    /// Why the bound is missed; of no other.
    pub reason: Option<String>,
}

/// Judges every expectation in every cell that it speaks of, or the mean over them, in the order of
/// the expectations.
///
/// An expectation that speaks of no cell of the results is missed: nothing was measured.
pub fn judge(results: &Results, expectations: &[Expectation]) -> Vec<Verdict> {
    let groups = results.groups();
    let mut verdicts = Vec::new();
    for expectation in expectations {
        let mut fits = groups
            .iter()
            .filter(|group| group.scheduler == expectation.scheduler)
            .filter(|group| {
                let mut wanted = expectation.cell.iter();
                wanted.all(|(key, value)| group.cell.get(key) == Some(value))
            })
            .peekable();
        let mut wanted: BTreeMap<_, _> = expectation.cell.iter().cloned().collect();
        if fits.peek().is_none() {
            verdicts.push(verdict(expectation, wanted, None));
            continue;
        }
        if expectation.mean {
            let all: Vec<_> = fits
                .map(|group| measured(expectation, group, &groups))
                .collect();
            wanted.insert("mean of cells".to_owned(), all.len().to_string());
            verdicts.push(verdict(expectation, wanted, mean(&all)));
            continue;
        }
        for group in fits {
            let measured = measured(expectation, group, &groups);
            verdicts.push(verdict(expectation, group.cell.clone(), measured));
        }
    }
    verdicts
}

/// Value, interval, number of seeds.
type Measured = (f64, Option<(f64, f64)>, usize);

fn measured(
    expectation: &Expectation,
    group: &Group<'_>,
    groups: &[Group<'_>],
) -> Option<Measured> {
    let measure = &expectation.measure;
    let scheduler = match (&expectation.relative_to, &expectation.best_of) {
        (None, None) => {
            let estimate = group.estimate(measure)?;
            return Some((estimate.value(), estimate.interval(), estimate.n()));
        }
        (Some(other), _) => other,
        (None, Some(_)) => &expectation.scheduler,
    };
    let known = |cell: &BTreeMap<String, String>| {
        let mut known = groups.iter();
        known.find(|known| known.scheduler == scheduler && known.cell == cell)
    };
    let other = match &expectation.best_of {
        None => known(group.cell)?,
        Some((axis, values)) => {
            let sign = if is_less_better(measure) { 1.0 } else { -1.0 };
            let others = values.iter().filter_map(|value| {
                let mut cell = group.cell.clone();
                cell.insert(axis.clone(), value.clone());
                let other = known(&cell)?;
                Some((sign * other.estimate(measure)?.value(), other))
            });
            others.min_by(|a, b| a.0.total_cmp(&b.0))?.1
        }
    };
    let ratio = group.ratio(other, measure)?;
    Some((ratio.value, ratio.interval, ratio.n))
}

/// The mean over cells; none if a cell lacks a value. It has no interval: cells share seeds, so
/// their intervals say nothing of its own.
fn mean(cells: &[Option<Measured>]) -> Option<Measured> {
    let cells: Option<Vec<Measured>> = cells.iter().copied().collect();
    let cells = cells?;
    let count = cells.len() as f64;
    let value = cells.iter().map(|(value, ..)| value / count).sum();
    Some((value, None, cells.iter().map(|(.., n)| *n).min()?))
}

/// Does the verdict speak of what the expectation does, with the same bounds?
pub(super) fn is_of(verdict: &Verdict, expectation: &Expectation) -> bool {
    let mut cell = expectation.cell.iter();
    verdict.figure == expectation.figure
        && verdict.scheduler == expectation.scheduler
        && verdict.measure == expectation.measure
        && verdict.relative_to == divisor(expectation)
        && (verdict.least, verdict.most) == (expectation.least, expectation.most)
        && cell.all(|(axis, value)| verdict.cell.get(axis) == Some(value))
}

/// What a value is divided by, in words.
fn divisor(expectation: &Expectation) -> Option<String> {
    let Some((axis, values)) = &expectation.best_of else {
        return expectation.relative_to.clone();
    };
    let scheduler = expectation.relative_to.as_ref();
    let scheduler = scheduler.unwrap_or(&expectation.scheduler);
    Some(format!(
        "{scheduler} with the best {axis} of {}",
        values.join(", ")
    ))
}

fn verdict(
    expectation: &Expectation,
    cell: BTreeMap<String, String>,
    measured: Option<Measured>,
) -> Verdict {
    let (least, most) = (expectation.least, expectation.most);
    let outcome = match measured {
        _ if least.is_none() && most.is_none() => Outcome::Unbounded,
        Some((value, ..))
            if least.is_none_or(|least| value >= least)
                && most.is_none_or(|most| value <= most) =>
        {
            Outcome::Holds
        }
        _ => Outcome::Missed,
    };
    let interval = measured.and_then(|measured| measured.1);
    let bounds = [least, most];
    let close = interval.is_some_and(|(low, high)| {
        let mut bounds = bounds.iter().flatten();
        bounds.any(|bound| (low..=high).contains(bound))
    });
    Verdict {
        figure: expectation.figure.clone(),
        cell,
        scheduler: expectation.scheduler.clone(),
        relative_to: divisor(expectation),
        measure: expectation.measure.clone(),
        unit: match divisor(expectation) {
            Some(_) => "",
            None => unit(&expectation.measure),
        },
        published: expectation.published,
        measured: measured.map(|measured| measured.0),
        interval,
        n: measured.map_or(0, |measured| measured.2),
        least,
        most,
        outcome,
        close,
        note: expectation.note.clone(),
        reason: expectation
            .missed
            .clone()
            .filter(|_| outcome == Outcome::Missed),
    }
}
