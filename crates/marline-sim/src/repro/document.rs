//! `docs/REPRODUCTION.md`: a full run, for readers.

use super::list::{HEADER, row, seeds};
use super::{Report, ScenarioReport};
use crate::experiments;
use std::collections::BTreeMap;

/// The document as Markdown; `command` is what wrote it. What `old`, the document as it was, has of
/// other scenarios is kept, as long as their files are there.
pub fn document(report: &Report, command: &str, old: &str) -> String {
    let mut text = format!(
        "# Reproduction\n\n\
         Written by `{command}` (marline {}), which replaced what it ran and kept what earlier runs of \
         other parts had written; do not edit it by hand. `marline repro PAPER FIGURE` repeats a \
         part, with `--plot FILE.html` for plots.\n\n\
         Published: what the paper reports, often on a testbed and with parameters that it leaves \
         open; the scenario files say how they were filled. Measured: the mean over seeds with its \
         95 % confidence interval. PASS and MISS hold the mean against the bound; \"close\" says \
         that the interval reaches across a bound, so that other seeds may say otherwise. A bound \
         comes from the paper, from mathematics or from an independent model, as its note says, \
         and stays when it is missed.\n\n",
        report.program
    );
    let mut sections = kept(old);
    for scenario in &report.scenarios {
        let of = (scenario.paper.clone(), scenario.file.clone());
        sections.insert(of, section(scenario, report.full));
    }
    if report.full {
        let (held, bounds) = score(&sections);
        text += &format!("{held} of {bounds} {HOLD}\n");
    } else {
        text +=
            "**Written by a run with fewer seeds than the bounds are meant for: no verdicts.**\n";
    }
    let mut paper = "";
    for ((of, _), section) in &sections {
        if of != paper {
            paper = of;
            text += &format!("\n## {paper}\n");
        }
        text += section;
    }
    text
}

/// Was the document written by runs with all seeds?
pub fn has_verdicts(document: &str) -> bool {
    document.lines().any(|line| line.ends_with(HOLD))
}

/// How the line of a document ends that says how many bounds hold.
const HOLD: &str = "bounds hold.";

/// By paper and file.
type Sections = BTreeMap<(String, String), String>;

/// The sections of a document whose scenarios are still there.
fn kept(document: &str) -> Sections {
    let mut sections = Sections::new();
    let parts = document.split("\n### ").skip(1);
    for part in parts {
        let part = part.split("\n## ").next().unwrap_or(part);
        let link = part.split_once("](../experiments/");
        let path = link.and_then(|(_, rest)| rest.split_once(')'));
        let Some((paper, file)) = path.and_then(|(path, _)| path.split_once('/')) else {
            continue;
        };
        if experiments::file(&format!("{paper}/{file}")).is_some() {
            let section = format!("\n### {}\n", part.trim_end());
            sections.insert((paper.to_owned(), file.to_owned()), section);
        }
    }
    sections
}

/// How many bounds hold, and how many there are.
fn score(sections: &Sections) -> (usize, usize) {
    let rows = || sections.values().flat_map(|section| section.lines());
    let with = |verdict: &str| rows().filter(|row| row.contains(verdict)).count();
    let held = with("| PASS");
    (held, held + with("| MISS"))
}

fn section(scenario: &ScenarioReport, full: bool) -> String {
    let ScenarioReport {
        paper,
        file,
        title,
        about,
        ..
    } = scenario;
    let name = file.strip_suffix(".toml").unwrap_or(file);
    let mut text = format!(
        "\n### {title}\n\n{about}\n\n[{paper}/{file}](../experiments/{paper}/{file}), {}; \
         `marline repro {paper} {name}`\n\n",
        seeds(scenario)
    );
    let mut header = HEADER.map(str::to_owned).to_vec();
    header.push("note".to_owned());
    text += &line(&header);
    text += &line(&vec!["---".to_owned(); header.len()]);
    let mut notes: Vec<&str> = Vec::new();
    for verdict in &scenario.verdicts {
        let mut row = row(verdict, full);
        let note = verdict.note.as_deref();
        row.push(note.map_or_else(String::new, |note| {
            let at = notes
                .iter()
                .position(|known| *known == note)
                .unwrap_or_else(|| {
                    notes.push(note);
                    notes.len() - 1
                });
            (at + 1).to_string()
        }));
        text += &line(&row);
    }
    if !notes.is_empty() {
        text.push('\n');
    }
    for (i, note) in notes.iter().enumerate() {
        text += &format!("{}. {note}\n", i + 1);
    }
    text
}

fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}
