//! A configuration as text: what was chosen, and every other key as a comment, each under its help.

use crate::config::Raw;
use std::fmt::Write;

/// Columns of a line of comments.
const WIDTH: usize = 96;

/// The text of `raw`, which is read back as itself.
///
/// # Errors
/// It cannot be written as TOML.
pub(super) fn commented<R: Raw>(raw: &R, intro: &str) -> Result<String, toml::ser::Error> {
    let table = toml::Table::try_from(raw)?;
    let (mut chosen, mut others) = (String::new(), String::new());
    let command = R::augment_args(clap::Command::new("keys"));
    for argument in command.get_arguments() {
        let Some(key) = argument.get_long() else {
            continue;
        };
        let value = table.get(key).filter(|value| !is_empty(value));
        if value.is_none() && argument.is_hide_set() {
            continue;
        }
        let help = argument.get_help().map(ToString::to_string);
        let help = comment(&help.unwrap_or_default());
        // Writing to a string cannot fail.
        let _ = match value {
            Some(value) => writeln!(chosen, "{help}{key} = {value}\n"),
            None => {
                let names = argument.get_value_names().unwrap_or_default();
                let name = names.first().map_or("VALUE", |name| name.as_str());
                match argument.get_action() {
                    clap::ArgAction::Append => writeln!(others, "{help}#{key} = [\"{name}\"]\n"),
                    _ => writeln!(others, "{help}#{key} = \"{name}\"\n"),
                }
            }
        };
    }
    let intro = comment(intro);
    let line = "#".repeat(WIDTH);
    Ok(format!(
        "{intro}\n{chosen}{line}\n# What else there is; each is as in [default: ...] unless it is written here.\n\n{}",
        others.trim_end().to_owned() + "\n"
    ))
}

fn is_empty(value: &toml::Value) -> bool {
    matches!(value, toml::Value::Array(list) if list.is_empty())
}

fn comment(text: &str) -> String {
    let lines = textwrap::wrap(text, WIDTH - 2);
    lines
        .iter()
        .map(|line| format!("# {line}").trim_end().to_owned() + "\n")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::written;
    use super::*;
    use crate::config::{RawClient, RawServer, Source};

    #[test]
    fn a_text_is_read_back_as_what_was_chosen_and_names_every_key() {
        let raw = RawClient {
            server: Some(written("marline://a\"b")),
            path: vec![written("wlan0"), written("wwan0,cost=2")],
            ..RawClient::default()
        };
        let text = commented(&raw, "The client.").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("client.toml");
        std::fs::write(&file, &text).unwrap();
        let read = Source::load(RawClient::default(), Some(&file)).unwrap().raw;
        assert_eq!(
            serde_json::to_value(&read).unwrap(),
            serde_json::to_value(&raw).unwrap()
        );
        assert!(text.starts_with("# The client.\n"), "{text}");
        assert!(text.contains("\npath = [\"wlan0\", \"wwan0,cost=2\"]\n"));
        assert!(text.contains("\n#socks = \"IP:PORT\"\n"), "{text}");
        assert!(!text.contains("sysfs"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn every_key_that_is_a_comment_has_the_type_that_its_line_shows() {
        let text = commented(&RawServer::default(), "The server.").unwrap();
        let all: String = text
            .lines()
            .filter_map(|line| line.strip_prefix('#'))
            .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
            .map(|line| format!("{line}\n"))
            .collect();
        assert!(all.lines().count() > 20, "{all}");
        toml::from_str::<RawServer>(&all).unwrap();
    }
}
