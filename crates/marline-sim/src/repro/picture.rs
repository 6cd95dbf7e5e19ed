//! The picture of a scenario: which panels, axes and series show its verdicts best.
//!
//! A measure of a figure is a panel, or several. The axis with the most numbers goes from left to
//! right; without numbers, the axis with the most names goes from top to bottom. Schedulers are
//! told apart by their looks; a single one gives its place to a further axis. What axes are left
//! make a panel of each of their values.

use std::collections::{BTreeMap, BTreeSet};

use super::natural::natural;
use super::{Outcome, ScenarioReport, Verdict};
use crate::report::plot::{Places, PlotError, Point, Sheet, SheetPanel, number, sheet};
use crate::report::{titled, words};

/// More looks than this are hard to tell apart.
const MOST_LOOKS: usize = 6;
/// More panels than this of one measure are too small: their axes become names instead.
const MOST_PANELS: usize = 16;
/// The axis that says over how many cells a mean was taken.
const MEAN: &str = "mean of cells";

/// The picture as an SVG file.
///
/// # Errors
/// If it cannot be drawn.
pub(super) fn svg(scenario: &ScenarioReport) -> Result<String, PlotError> {
    sheet(&chosen(scenario))
}

/// The file of the picture.
pub(super) fn file_of(scenario: &ScenarioReport) -> String {
    format!("{}-{}.svg", scenario.paper, scenario.name())
}

/// What a panel, or some alike, show.
#[derive(PartialEq)]
struct Kind<'a> {
    figure: &'a str,
    measure: &'a str,
    is_ratio: bool,
    mean: Option<&'a str>,
}

impl<'a> Kind<'a> {
    fn of(verdict: &'a Verdict) -> Self {
        Self {
            figure: &verdict.figure,
            measure: &verdict.measure,
            is_ratio: verdict.relative_to.is_some(),
            mean: verdict.cell.get(MEAN).map(String::as_str),
        }
    }

    fn quantity(&self) -> String {
        match self.is_ratio {
            true => format!("{}, ratio", words(self.measure)),
            false => titled(self.measure),
        }
    }
}

fn chosen(scenario: &ScenarioReport) -> Sheet {
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    for verdict in &scenario.verdicts {
        let kind = Kind::of(verdict);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let mut sheet = Sheet {
        title: scenario.title.clone(),
        ..Sheet::default()
    };
    let first = scenario.verdicts.first().map(|one| &one.scheduler);
    let all: Vec<&Verdict> = scenario.verdicts.iter().collect();
    let varied: Vec<&str> = axes(&all).into_keys().collect();
    let is_alone = scenario
        .verdicts
        .iter()
        .all(|one| Some(&one.scheduler) == first);
    for (group, kind) in kinds.iter().enumerate() {
        let all = scenario.verdicts.iter();
        let own: Vec<&Verdict> = all.filter(|one| Kind::of(one) == *kind).collect();
        let fixed = varied.iter().filter_map(|axis| fixed(axis, &own));
        let heading: Vec<String> = std::iter::once(kind.figure.to_owned())
            .chain(fixed)
            .collect();
        add(&mut sheet, (group, kind), &heading, &own, is_alone);
    }
    if !scenario.is_full() {
        // With fewer seeds there is no verdict.
        let panels = sheet.panels.iter_mut();
        panels.for_each(|panel| {
            panel
                .points
                .iter_mut()
                .for_each(|point| point.missed = false)
        });
    }
    sheet
}

/// The value of an axis that all have.
fn fixed(axis: &str, verdicts: &[&Verdict]) -> Option<String> {
    let value = verdicts.first()?.cell.get(axis)?;
    let is_fixed = verdicts.iter().all(|one| one.cell.get(axis) == Some(value));
    is_fixed.then(|| format!("{}={value}", short(axis)))
}

/// Axes with more than one value, and the values in order.
type Axes<'a> = BTreeMap<&'a str, Vec<&'a str>>;

fn axes<'a>(verdicts: &[&'a Verdict]) -> Axes<'a> {
    let mut axes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (axis, value) in verdicts.iter().flat_map(|one| &one.cell) {
        axes.entry(axis).or_default().insert(value);
    }
    let axes = axes.into_iter();
    let axes = axes.filter(|(axis, values)| *axis != MEAN && values.len() > 1);
    axes.map(|(axis, values)| {
        let mut values: Vec<&str> = values.into_iter().collect();
        values.sort_by_key(|value| natural(value));
        (axis, values)
    })
    .collect()
}

/// How an axis of a scenario is drawn.
#[derive(Clone, Copy)]
enum Scale<'a> {
    /// By the numbers of its values, all of this unit.
    Numbers(&'a str),
    /// By the numbers before and behind the comma, each in a panel of its own.
    Pairs,
    Names,
}

fn scale<'a>(axis: &str, values: &[&'a str]) -> Scale<'a> {
    let unit_of = |values: &[&'a str]| {
        let numbers: Option<Vec<(f64, &str)>> = values.iter().map(|value| number(value)).collect();
        let numbers = numbers?;
        let unit = numbers.first()?.1;
        numbers.iter().all(|one| one.1 == unit).then_some(unit)
    };
    if let Some(unit) = unit_of(values) {
        return Scale::Numbers(unit);
    }
    let pairs: Option<(Vec<&str>, Vec<&str>)> =
        values.iter().map(|value| value.split_once(", ")).collect();
    match pairs {
        Some((first, second))
            if axis.contains(", ") && unit_of(&first).is_some() && unit_of(&second).is_some() =>
        {
            Scale::Pairs
        }
        _ => Scale::Names,
    }
}

/// What a panel's verdicts stand at.
enum Across<'a> {
    /// Numbers of an axis, or of a part of its name and values.
    Number {
        axis: &'a str,
        title: String,
        part: Option<usize>,
    },
    /// Names: what a verdict's cell has on these axes.
    Names {
        axes: Vec<&'a str>,
        names: Vec<String>,
    },
}

/// Adds the panels of one kind.
fn add(
    sheet: &mut Sheet,
    (group, kind): (usize, &Kind<'_>),
    title: &[String],
    own: &[&Verdict],
    is_alone: bool,
) {
    let mut axes = axes(own);
    let across = across(&mut axes, own);
    let looks = if is_alone { looks(&mut axes) } else { None };
    let parts = panels(&axes, own);
    // What all have is said once.
    let alone = looks.and(own.first()).map(|one| name_of(one));
    let alone = alone.filter(|name| own.iter().all(|one| name_of(one) == *name));
    for across in &across {
        for part in &parts {
            let mut heading = title.to_vec();
            heading.extend(alone.clone());
            heading.extend(
                part.iter()
                    .map(|(axis, value)| format!("{}={value}", short(axis))),
            );
            heading.extend(kind.mean.map(|count| format!("mean of {count} cells")));
            let in_part = own.iter().filter(|one| {
                let mut part = part.iter();
                part.all(|(axis, value)| value_of(one, axis) == *value)
            });
            let points: Vec<Point> = in_part
                .filter_map(|one| {
                    let look = match (looks, &alone) {
                        (None, _) => name_of(one),
                        (Some(axis), Some(_)) => at(one, axis),
                        (Some(axis), None) => format!("{}, {}", name_of(one), at(one, axis)),
                    };
                    let known = sheet.series.iter().position(|known| *known == look);
                    let series = known.unwrap_or_else(|| {
                        sheet.series.push(look);
                        sheet.series.len() - 1
                    });
                    point(one, series, across)
                })
                .collect();
            if points.is_empty() {
                continue;
            }
            sheet.panels.push(SheetPanel {
                heading: heading.join(", "),
                quantity: kind.quantity(),
                group,
                places: match across {
                    Across::Number { title, .. } => Places::Numbers(title.clone()),
                    Across::Names { names, .. } => Places::Names(names.clone()),
                },
                points,
            });
        }
    }
}

/// Takes the axis that goes across, and what more must go with it, from the axes.
fn across<'a>(axes: &mut Axes<'a>, own: &[&'a Verdict]) -> Vec<Across<'a>> {
    let longest = |axes: &Axes<'a>, wanted: fn(Scale<'_>) -> bool| {
        let fit = axes
            .iter()
            .filter(|(axis, values)| wanted(scale(axis, values)));
        // The first of those with most values.
        let longest = fit.max_by_key(|(axis, values)| (values.len(), std::cmp::Reverse(**axis)));
        longest.map(|(axis, _)| *axis)
    };
    let numbers = longest(axes, |scale| !matches!(scale, Scale::Names));
    if let Some(axis) = numbers
        && let Some(values) = axes.remove(axis)
    {
        let titled = |name: &str, unit: &str| match unit {
            "" => short(name).to_owned(),
            _ => format!("{} ({unit})", short(name)),
        };
        if let Scale::Numbers(unit) = scale(axis, &values) {
            let title = titled(axis, unit);
            return vec![Across::Number {
                axis,
                title,
                part: None,
            }];
        }
        let first = values.first().copied().unwrap_or_default();
        let parts = axis.split(", ").zip(first.split(", ")).enumerate();
        return parts
            .map(|(i, (name, value))| Across::Number {
                axis,
                title: titled(name, number(value).map_or("", |number| number.1)),
                part: Some(i),
            })
            .collect();
    }
    let mut named: Vec<&str> = longest(axes, |_| true).into_iter().collect();
    for axis in &named {
        axes.remove(axis);
    }
    while axes.values().map(Vec::len).product::<usize>() > MOST_PANELS {
        let Some(axis) = longest(axes, |_| true) else {
            break;
        };
        axes.remove(axis);
        named.push(axis);
    }
    let mut names: Vec<String> = own.iter().map(|one| name(one, &named)).collect();
    names.sort_by_key(|name| natural(name));
    names.dedup();
    vec![Across::Names { axes: named, names }]
}

/// Where a single scheduler needs no looks, the axis that takes them.
fn looks<'a>(axes: &mut Axes<'a>) -> Option<&'a str> {
    let few = axes.iter().filter(|(_, values)| values.len() <= MOST_LOOKS);
    let axis = few
        .max_by_key(|(_, values)| values.len())
        .map(|(axis, _)| *axis)?;
    axes.remove(axis);
    Some(axis)
}

/// What the verdicts of a panel have in common: the combinations of the axes that are left.
fn panels<'a>(axes: &Axes<'a>, own: &[&Verdict]) -> Vec<Vec<(&'a str, String)>> {
    let mut parts: Vec<Vec<(&str, String)>> = Vec::new();
    for one in own {
        let part = axes
            .keys()
            .map(|axis| (*axis, value_of(one, axis).to_owned()));
        let part: Vec<(&str, String)> = part.collect();
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.sort_by_key(|part| {
        let values = part.iter().map(|(_, value)| natural(value));
        values.collect::<Vec<_>>()
    });
    parts
}

fn point(verdict: &Verdict, series: usize, across: &Across<'_>) -> Option<Point> {
    let at = match across {
        Across::Number { axis, part, .. } => {
            let value = value_of(verdict, axis);
            let value = match part {
                Some(i) => value.split(", ").nth(*i)?,
                None => value,
            };
            number(value)?.0
        }
        Across::Names { axes, names } => {
            let name = name(verdict, axes);
            names.iter().position(|known| *known == name)? as f64
        }
    };
    let is_missed = verdict.outcome == Outcome::Missed;
    Some(Point {
        series,
        at,
        value: verdict.measured,
        interval: verdict.interval,
        published: verdict.published,
        // Most measures cannot be below zero: that is no bound to look at.
        least: verdict.least.filter(|least| *least != 0.0 || is_missed),
        most: verdict.most,
        missed: is_missed,
    })
}

fn value_of<'a>(verdict: &'a Verdict, axis: &str) -> &'a str {
    verdict.cell.get(axis).map_or("", String::as_str)
}

fn name(verdict: &Verdict, axes: &[&str]) -> String {
    let values: Vec<&str> = axes.iter().map(|axis| value_of(verdict, axis)).collect();
    values.join(", ")
}

/// The scheduler, and what it is compared with.
fn name_of(verdict: &Verdict) -> String {
    match &verdict.relative_to {
        Some(other) => format!("{} / {other}", verdict.scheduler),
        None => verdict.scheduler.clone(),
    }
}

fn at(verdict: &Verdict, axis: &str) -> String {
    format!("{}={}", short(axis), value_of(verdict, axis))
}

/// The last part of an axis's name: `workloads.tcp.congestion` is `congestion`.
fn short(axis: &str) -> &str {
    axis.rsplit('.').next().unwrap_or(axis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::plot::sheet::tests::{assert_well_formed, rings};
    use crate::repro::tests::report;

    /// A scenario with a verdict for each cell, each `(axis, value)`s and a scheduler.
    fn scenario(cells: &[(&[(&str, &str)], &str)]) -> ScenarioReport {
        let mut scenario = report(3).scenarios.remove(0);
        let first = scenario.verdicts[0].clone();
        let verdicts = cells.iter().map(|(cell, scheduler)| Verdict {
            cell: cell
                .iter()
                .map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned()))
                .collect(),
            scheduler: (*scheduler).to_owned(),
            ..first.clone()
        });
        scenario.verdicts = verdicts.collect();
        scenario
    }

    #[test]
    fn each_published_value_has_its_ring() {
        let scenario = report(3).scenarios.remove(0);
        let published = scenario
            .verdicts
            .iter()
            .filter(|one| one.published.is_some());
        let svg = svg(&scenario).unwrap();
        assert_well_formed(&svg);
        assert_eq!(rings(&svg), published.count());
    }

    #[test]
    fn numbers_go_across_schedulers_are_looks_and_other_axes_panels() {
        let mut cells: Vec<(&[(&str, &str)], &str)> = Vec::new();
        for scheduler in ["edpf", "mend"] {
            cells.push((&[("links.a.rtt", "20ms"), ("load", "web")], scheduler));
            cells.push((&[("links.a.rtt", "100ms"), ("load", "web")], scheduler));
            cells.push((&[("links.a.rtt", "20ms"), ("load", "bulk")], scheduler));
        }
        let sheet = chosen(&scenario(&cells));
        assert_eq!(sheet.series, ["edpf", "mend"]);
        let headings: Vec<&str> = sheet.panels.iter().map(|panel| &*panel.heading).collect();
        assert_eq!(headings, ["Figure 3, load=bulk", "Figure 3, load=web"]);
        let web = &sheet.panels[1];
        assert_eq!(web.places, Places::Numbers("rtt (ms)".to_owned()));
        assert_eq!(web.quantity, "video: delay in order, 99th percentile (ms)");
        let at: Vec<f64> = web.points.iter().map(|point| point.at).collect();
        assert_eq!(at, [20.0, 100.0, 20.0, 100.0]);
    }

    #[test]
    fn names_go_down_and_a_single_scheduler_leaves_its_look_to_an_axis() {
        let cells: [(&[(&str, &str)], &str); 4] = [
            (&[("pair", "lte"), ("order", "kept")], "edpf"),
            (&[("pair", "dsl"), ("order", "kept")], "edpf"),
            (&[("pair", "wifi"), ("order", "kept")], "edpf"),
            (&[("pair", "wifi"), ("order", "lost")], "edpf"),
        ];
        let sheet = chosen(&scenario(&cells));
        assert_eq!(sheet.series, ["order=kept", "order=lost"]);
        assert_eq!(sheet.panels[0].heading, "Figure 3, edpf");
        let names = ["dsl", "lte", "wifi"].map(str::to_owned).to_vec();
        assert_eq!(sheet.panels[0].places, Places::Names(names));
        assert_eq!(sheet.panels.len(), 1);
    }

    #[test]
    fn an_axis_of_pairs_is_shown_by_each_number() {
        let cells: [(&[(&str, &str)], &str); 2] = [
            (&[("rtt, tunnel", "20ms, 35%")], "edpf"),
            (&[("rtt, tunnel", "40ms, 50%")], "edpf"),
        ];
        let sheet = chosen(&scenario(&cells));
        let places: Vec<&Places> = sheet.panels.iter().map(|panel| &panel.places).collect();
        let numbers = |title: &str| Places::Numbers(title.to_owned());
        assert_eq!(places, [&numbers("rtt (ms)"), &numbers("tunnel (%)")]);
        assert_eq!(sheet.panels[1].points[1].at, 50.0);
    }

    #[test]
    fn fewer_seeds_have_no_misses() {
        let points = |seeds| {
            let sheet = chosen(&report(seeds).scenarios[0]);
            let panels = sheet.panels.into_iter();
            panels
                .flat_map(|panel| panel.points)
                .filter(|point| point.missed)
                .count()
        };
        assert_eq!((points(3), points(2)), (1, 0));
    }
}
