//! `marline sim list`: scenarios, schedulers, workloads and measures by name.

use crate::commands::{CliError, output};
use marline_proto::congestion::registry::CONTROLLERS;
use marline_proto::sched::registry;
use marline_sim::experiments;
use marline_sim::measure::{CATALOGUE, Scope};
use marline_sim::scenario::{Document, KINDS};
use serde::Serialize;

const ABOUT: &str = "List scenarios, schedulers, congestion controllers, workloads and measures";

/// The flags of `marline sim list`.
#[derive(Debug, clap::Args)]
#[command(about = ABOUT)]
pub(super) struct Args {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// A list of names and what they are.
#[derive(Debug, Serialize)]
struct Section {
    title: &'static str,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    help: String,
    /// How it is written, or its options.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    details: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let sections = [
        scenarios(),
        schedulers(),
        congestion(),
        workloads(),
        measures(),
    ];
    if args.json {
        return output::json(&sections);
    }
    let mut text = String::new();
    for section in &sections {
        text += &format!("{}:\n", section.title);
        let width = section.rows.iter().map(|row| row.name.len()).max();
        let width = width.unwrap_or(0);
        for row in &section.rows {
            text += &format!("  {:width$}  {}\n", row.name, row.help);
            for detail in &row.details {
                text += &format!("  {:width$}    {detail}\n", "");
            }
        }
        text.push('\n');
    }
    output::line(text.trim_end())
}

fn scenarios() -> Section {
    let rows = experiments::all().into_iter().map(|one| {
        let title = Document::parse(one.path, one.text)
            .ok()
            .and_then(|document| document.title());
        Row {
            name: one.path.trim_end_matches(".toml").to_owned(),
            help: title.unwrap_or_default(),
            details: Vec::new(),
        }
    });
    Section {
        title: "Scenarios (marline sim run NAME)",
        rows: rows.collect(),
    }
}

fn schedulers() -> Section {
    let rows = registry::all().map(|entry| {
        let option = |option: &marline_proto::sched::OptionSpec| {
            format!(":{}={} {}", option.key, option.default, option.help)
        };
        Row {
            name: entry.name.to_owned(),
            help: format!("{} ({})", entry.help, entry.publication),
            details: entry.options.iter().map(option).collect(),
        }
    });
    Section {
        title: "Schedulers, written NAME or NAME:KEY=VALUE",
        rows: rows.collect(),
    }
}

fn congestion() -> Section {
    let rows = CONTROLLERS.iter().map(|entry| Row {
        name: entry.name.to_owned(),
        help: format!("{} ({})", entry.help, entry.publication),
        details: Vec::new(),
    });
    Section {
        title: "Congestion controllers",
        rows: rows.collect(),
    }
}

fn workloads() -> Section {
    let rows = KINDS.iter().map(|kind| Row {
        name: kind.name.to_owned(),
        help: kind.help.to_owned(),
        details: vec![kind.keys.to_owned()],
    });
    Section {
        title: "Workloads",
        rows: rows.collect(),
    }
}

fn measures() -> Section {
    let rows = CATALOGUE.iter().map(|entry| {
        let of = match entry.scope {
            Scope::Workload => "WORKLOAD.",
            Scope::Path => "path.NAME.",
            Scope::Link => "link.NAME.",
            Scope::Cross => "cross.NAME.",
        };
        let values = entry.values();
        let many = values.len() > 1;
        Row {
            name: format!("{of}{}", entry.name),
            help: entry.help.to_owned(),
            details: if many {
                vec![values.join(", ")]
            } else {
                Vec::new()
            },
        }
    });
    Section {
        title: "Measures",
        rows: rows.collect(),
    }
}
