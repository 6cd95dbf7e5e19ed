//! `docs/REPRODUCTION.md`: a full run, for readers.

use super::list::{HEADER, row, seeds};
use super::{Report, ScenarioReport};

/// The document as Markdown; `command` is what wrote it.
pub fn document(report: &Report, command: &str) -> String {
    let (held, bounds) = report.score();
    let mut text = format!(
        "# Reproduction\n\n\
         Written by `{command}` (marline {}); do not edit it by hand. `marline repro PAPER FIGURE` \
         repeats a part, with `--plot FILE.html` for plots.\n\n\
         Published: what the paper reports, often on a testbed and with parameters that it leaves \
         open; the scenario files say how they were filled. Measured: the mean over seeds with its \
         95 % confidence interval. PASS and MISS hold the mean against the bound; \"close\" says \
         that the interval reaches across a bound, so that other seeds may say otherwise. A bound \
         comes from the paper, from mathematics or from an independent model, as its note says, \
         and stays when it is missed.\n\n",
        report.program
    );
    if report.full {
        text += &format!("{held} of {bounds} bounds hold.\n");
    } else {
        text +=
            "**Written by a run with fewer seeds than the bounds are meant for: no verdicts.**\n";
    }
    let mut paper = "";
    for scenario in &report.scenarios {
        if scenario.paper != paper {
            paper = &scenario.paper;
            text += &format!("\n## {paper}\n");
        }
        text += &section(scenario, report.full);
    }
    text
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
