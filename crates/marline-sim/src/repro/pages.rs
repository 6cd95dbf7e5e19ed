//! A page a paper, for readers: what it claims, what holds, pictures, and what is missed for which
//! reason.

use std::collections::BTreeMap;

use super::list::{bound, seeds};
use super::{Outcome, ScenarioReport, Verdict, picture};
use crate::experiments;
use crate::report::{cell_name, show};

/// Where the scenario files are, seen from docs/reproduction.
const SCENARIOS: &str = "../../crates/marline-sim/experiments";

/// What bounds and verdicts there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    holds: usize,
    missed: usize,
    /// Of both, those that other seeds may turn.
    close: usize,
    /// Shown beside a published value or for itself; no bound.
    shown: usize,
}

impl Count {
    fn of<'a>(verdicts: impl Iterator<Item = &'a Verdict>) -> Self {
        let mut count = Self::default();
        for verdict in verdicts {
            match verdict.outcome {
                Outcome::Holds => count.holds += 1,
                Outcome::Missed => count.missed += 1,
                Outcome::Unbounded => count.shown += 1,
            }
            count.close += usize::from(verdict.close && verdict.outcome != Outcome::Unbounded);
        }
        count
    }
}

/// The index of `papers`.
pub(super) fn index(papers: &BTreeMap<String, Vec<ScenarioReport>>) -> String {
    let mut text = "\
# Reproduction

What the papers report beside what is measured here. Written by `marline repro PAPER --write docs/reproduction`, which \
replaces what it ran; do not edit it by hand. `marline repro --write docs/reproduction` runs nothing and writes pages \
and pictures from the CSV files again ([columns](../RESULTS.md)).

A bound comes from the paper, from mathematics or from an independent model; it stays when it is missed. Close: the \
95 % interval over seeds reaches across the bound, so that other seeds may say otherwise. Shown: a value without a \
bound.

| paper | holds | missed | of both, close | shown | numbers |
| --- | --- | --- | --- | --- | --- |
"
    .to_owned();
    let mut all = Count::default();
    for (paper, scenarios) in papers {
        let count = count(scenarios);
        let Count {
            holds,
            missed,
            close,
            shown,
        } = count;
        let (title, _) = about(paper);
        text += &format!(
            "| [{}]({paper}.md) | {holds} | {missed} | {close} | {shown} | [{paper}.csv]({paper}.csv) |\n",
            escape(&title)
        );
        all.holds += holds;
        all.missed += missed;
    }
    text + &format!(
        "\n{} of {} bounds hold.\n",
        all.holds,
        all.holds + all.missed
    )
}

/// The page of a paper.
pub(super) fn page(paper: &str, scenarios: &[ScenarioReport]) -> String {
    let (title, claim) = about(paper);
    let count = count(scenarios);
    let mut text = format!("# {title}\n\n");
    if !claim.is_empty() {
        text += &format!("{claim}\n\n");
    }
    text += &format!(
        "{} of {} bounds hold; {} are close ([what that means](README.md)). The numbers are in [{paper}.csv]({paper}.csv). \
         `marline repro {paper} FILE` repeats a row.\n\n\
         | file | figure | seeds | holds | missed | shown |\n| --- | --- | --- | --- | --- | --- |\n",
        count.holds,
        count.holds + count.missed,
        count.close
    );
    for scenario in scenarios {
        text += &figures(scenario);
    }
    for scenario in scenarios {
        let alt = scenario.title.replace(['[', ']'], "");
        text += &format!("\n![{alt}]({})\n", picture::file_of(scenario));
    }
    text + &misses(scenarios)
}

/// Title and text of the README beside the scenario files.
fn about(paper: &str) -> (String, String) {
    let readme = experiments::file(&format!("{paper}/README.md")).unwrap_or_default();
    let readme = String::from_utf8_lossy(readme);
    match readme
        .strip_prefix("# ")
        .and_then(|text| text.split_once('\n'))
    {
        Some((title, text)) => (title.trim().to_owned(), text.trim().to_owned()),
        None => (paper.to_owned(), String::new()),
    }
}

/// Of scenarios that ran with all of their seeds.
fn count(scenarios: &[ScenarioReport]) -> Count {
    let full = scenarios.iter().filter(|one| one.is_full());
    Count::of(full.flat_map(|one| &one.verdicts))
}

/// The rows of a scenario's figures.
fn figures(scenario: &ScenarioReport) -> String {
    let mut names: Vec<&str> = Vec::new();
    for verdict in &scenario.verdicts {
        if !names.contains(&&*verdict.figure) {
            names.push(&verdict.figure);
        }
    }
    let rows = names.into_iter().map(|figure| {
        let own = scenario.verdicts.iter();
        let count = Count::of(own.filter(|verdict| verdict.figure == figure));
        let name = scenario.name();
        let link = format!("[{name}]({SCENARIOS}/{}/{})", scenario.paper, scenario.file);
        let seeds = seeds(scenario).replace(" seeds", "").replace(" seed", "");
        let verdicts = if scenario.is_full() {
            format!("{} | {}", count.holds, count.missed)
        } else {
            "no verdict | no verdict".to_owned()
        };
        let figure = escape(figure);
        format!(
            "| {link} | {figure} | {seeds} | {verdicts} | {} |\n",
            count.shown
        )
    });
    rows.collect()
}

/// What was missed in one figure by one scheduler in one measure, for one reason.
struct Item<'a> {
    scenario: &'a ScenarioReport,
    verdicts: Vec<&'a Verdict>,
}

/// The misses by their reasons, those without one last.
fn misses(scenarios: &[ScenarioReport]) -> String {
    let mut reasons: Vec<(Option<&str>, Vec<Item<'_>>)> = Vec::new();
    for scenario in scenarios.iter().filter(|one| one.is_full()) {
        let all = scenario.verdicts.iter();
        for verdict in all.filter(|verdict| verdict.outcome == Outcome::Missed) {
            let reason = verdict.reason.as_deref();
            let at = reasons.iter().position(|known| known.0 == reason);
            let at = at.unwrap_or_else(|| {
                reasons.push((reason, Vec::new()));
                reasons.len() - 1
            });
            let items = &mut reasons[at].1;
            let same = items.iter_mut().find(|item| {
                item.scenario.file == scenario.file && alike(item.verdicts[0], verdict)
            });
            match same {
                Some(item) => item.verdicts.push(verdict),
                None => items.push(Item {
                    scenario,
                    verdicts: vec![verdict],
                }),
            }
        }
    }
    if reasons.is_empty() {
        return String::new();
    }
    // A stable sort: those with a reason stay in their order.
    reasons.sort_by_key(|(reason, _)| reason.is_none());
    let mut text = "\n## Missed\n\n".to_owned();
    for (reason, items) in reasons {
        let items = items.iter().map(in_words);
        match reason {
            Some(reason) => {
                let items: Vec<String> = items.collect();
                let stop = if reason.ends_with('.') { "" } else { "." };
                text += &format!("* {}: {reason}{stop}\n", items.join("; "));
            }
            None => items.for_each(|item| text += &format!("* {item}: **no reason is known.**\n")),
        }
    }
    text
}

/// Of one figure, scheduler and measure?
fn alike(a: &Verdict, b: &Verdict) -> bool {
    a.figure == b.figure
        && a.scheduler == b.scheduler
        && a.relative_to == b.relative_to
        && a.measure == b.measure
}

fn in_words(item: &Item<'_>) -> String {
    let first = item.verdicts[0];
    let of = item.scenario.verdicts.iter();
    let of = of.filter(|verdict| verdict.outcome != Outcome::Unbounded && alike(verdict, first));
    let of = of.count();
    let scheduler = match &first.relative_to {
        Some(other) => format!("`{}` / `{other}`", first.scheduler),
        None => format!("`{}`", first.scheduler),
    };
    let missed = item.verdicts.len();
    let at = match (missed, of) {
        (1, 1) => String::new(),
        (1, _) if !first.cell.is_empty() => format!(", {}", escape(&cell_name(&first.cell))),
        _ => format!(", {missed} of {of}"),
    };
    let values = item.verdicts.iter().filter_map(|verdict| verdict.measured);
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    let measured = match (missed, low <= high) {
        (_, false) => "not measured".to_owned(),
        (1, true) => show(low),
        (_, true) if show(low) == show(high) => show(low),
        (_, true) => format!("{} to {}", show(low), show(high)),
    };
    let mut bounds: Vec<String> = item.verdicts.iter().map(|verdict| bound(verdict)).collect();
    bounds.dedup();
    let asked = match &bounds[..] {
        [bound] => format!("asked: {bound}"),
        _ => "bounds differ".to_owned(),
    };
    let close = item.verdicts.iter().filter(|verdict| verdict.close).count();
    let close = match (close, missed) {
        (0, _) => String::new(),
        (1, 1) => "; close".to_owned(),
        _ => format!("; {close} close"),
    };
    format!(
        "{}: {scheduler} {}{at}: {measured} ({asked}{close})",
        escape(&first.figure),
        first.measure
    )
}

/// A bar ends a cell of a table, a star would begin emphasis.
fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*")
}
