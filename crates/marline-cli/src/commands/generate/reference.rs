//! The reference: Markdown from the description of the flags and from the tables of schedulers,
//! controllers, metrics and measures.

mod measured;
mod metrics;
mod schedulers;

use crate::commands::Cli;
use crate::config::{Raw, RawClient, RawServer};
use crate::control::example::example;
use clap::{Arg, ArgAction, Command, CommandFactory as _};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// Writes all of it into `folder`.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, text) in [
        ("commands.md", commands()),
        ("configuration.md", configuration()),
        ("schedulers.md", schedulers::page()),
        ("metrics.md", metrics::page(&example())?),
        ("measures.md", measured::page()),
    ] {
        std::fs::write(folder.join(name), text)?;
    }
    let status = serde_json::to_string_pretty(&example())?;
    std::fs::write(folder.join("status.json"), status + "\n")
}

/// Every command with what `--help` says.
fn commands() -> String {
    let mut command = Cli::command().term_width(100);
    command.build();
    let mut text = "# Commands and flags\n\nWhat `--help` says, of every command.\n\n".to_owned();
    let mut all = Vec::new();
    below(&command, "marline", &mut all);
    for (name, command) in &all {
        let about = command.get_about().map(ToString::to_string);
        let anchor = name.replace(' ', "-");
        let _ = writeln!(
            text,
            "* [`{name}`](#{anchor}) {}",
            about.unwrap_or_default()
        );
    }
    for (name, command) in all {
        let help = command.clone().render_long_help();
        let _ = write!(
            text,
            "\n## {name}\n\n```text\n{}\n```\n",
            trimmed(&help.to_string())
        );
    }
    text
}

/// `command` and those below it that are shown, with their whole names.
fn below<'a>(command: &'a Command, name: &str, all: &mut Vec<(String, &'a Command)>) {
    all.push((name.to_owned(), command));
    let shown = command.get_subcommands();
    for inner in shown.filter(|inner| !inner.is_hide_set() && inner.get_name() != "help") {
        below(inner, &format!("{name} {}", inner.get_name()), all);
    }
}

/// Lines without spaces at their ends.
fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// The keys of both configuration files.
fn configuration() -> String {
    let mut text = "\
# Configuration keys

A TOML file that `--config FILE` names has the flags of its command as keys, without the dashes \
before them; what stands on the command line goes before the file. Values are text in quotes, \
also numbers; a flag that may be given several times is a list of these. `marline setup` writes \
such files, with every key and its help.
"
    .to_owned();
    keys::<RawClient>(&mut text);
    keys::<RawServer>(&mut text);
    text
}

fn keys<R: Raw>(text: &mut String) {
    let name = R::SUBCOMMAND;
    let _ = write!(
        text,
        "\n## marline {name}\n\n| key | value | |\n| --- | --- | --- |\n"
    );
    let command = R::augment_args(Command::new("keys"));
    for argument in command.get_arguments().filter(|one| !one.is_hide_set()) {
        let Some(key) = argument.get_long() else {
            continue;
        };
        let value = format!("`{}`", value_of(argument));
        row(text, &[&format!("`{key}`"), &value, &help_of(argument)]);
    }
}

/// What a key's value looks like.
fn value_of(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let value = names.first().map_or("", |name| name.as_str());
    match argument.get_action() {
        ArgAction::Append => format!("[\"{value}\", …]"),
        _ => format!("\"{value}\""),
    }
}

fn help_of(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    help.map(ToString::to_string).unwrap_or_default()
}

/// A row of a table.
fn row(text: &mut String, cells: &[&str]) {
    for cell in cells {
        let _ = write!(text, "| {} ", escaped(cell));
    }
    text.push_str("|\n");
}

/// A cell's text in one line, in which nothing ends the cell or becomes a tag.
fn escaped(cell: &str) -> String {
    let words: Vec<&str> = cell.split_whitespace().collect();
    let mut text = String::new();
    // Within `code` a backslash would be seen; only the bar ends a cell there, too.
    let mut code = false;
    for letter in words.join(" ").chars() {
        match letter {
            '`' => code = !code,
            '|' => text.push('\\'),
            '<' | '*' | '_' | '[' | ']' if !code => text.push('\\'),
            _ => {}
        }
        text.push(letter);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_proto::sched::registry::SCHEDULERS;

    fn written() -> impl Fn(&str) -> String {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        move |name| std::fs::read_to_string(folder.path().join(name)).unwrap()
    }

    #[test]
    fn every_command_and_every_key_is_there() {
        let read = written();
        let commands = read("commands.md");
        for name in ["marline client", "marline sim run", "marline setup server"] {
            assert!(commands.contains(&format!("\n## {name}\n")), "{name}");
        }
        assert!(!commands.contains("## marline generate"));
        assert!(commands.contains("--tun-route"));
        let keys = read("configuration.md");
        let client = keys.split("## marline server").next().unwrap();
        assert!(client.contains("| `path` | `[\"PATH\", …]` |"), "{client}");
        assert!(keys.contains("| `allow-client` |"));
    }

    #[test]
    fn every_scheduler_option_controller_and_measure_is_there() {
        let read = written();
        let schedulers = read("schedulers.md");
        for entry in SCHEDULERS {
            assert!(schedulers.contains(&format!("\n## {}\n", entry.name)));
            for option in entry.options {
                assert!(schedulers.contains(&format!("| `{}` |", option.key)));
            }
        }
        assert!(schedulers.contains("| `bbr-gentle` |"));
        assert!(read("measures.md").contains("in_order_delay"));
    }

    #[test]
    fn every_metric_has_its_type_labels_and_help() {
        let metrics = written()("metrics.md");
        for row in [
            "| `marline_path_bytes_total` | counter | `session`, `path`, `direction` |",
            "| `marline_path_rtt_seconds` | gauge | `session`, `path` |",
            "| `marline_uptime_seconds` | gauge |  |",
        ] {
            assert!(metrics.contains(row), "{row} is not in\n{metrics}");
        }
        // Each that is rendered, and none without a help text.
        assert!(!metrics.contains("|  |\n"), "{metrics}");
    }

    #[test]
    fn cells_stay_in_their_row() {
        assert_eq!(escaped("a|b <x>\n  `c|_d`"), "a\\|b \\<x> `c\\|_d`");
    }
}
