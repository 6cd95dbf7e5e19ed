//! A configuration file: TOML, and what is wrong with it, with the line, the key and the hint.

use super::error::{ConfigError, Place, Placed as _};
use super::keys::{Raw, keys};
use marline_base::text::Problem;
use marline_base::text::suggest;
use std::ops::Range;
use std::path::PathBuf;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Keys whose values may be tables ([`Entry`](super::Entry)).
const TABLES: [&str; 1] = ["live"];

/// A file that was read.
#[derive(Debug)]
pub(super) struct File {
    /// As it was named.
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl File {
    /// Line of the byte at `offset`, counted from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        let before = self
            .text
            .as_bytes()
            .get(..offset)
            .unwrap_or(self.text.as_bytes());
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    fn place(&self, span: Option<Range<usize>>, key: Option<String>) -> Place {
        Place::File {
            file: self.path.clone(),
            line: span.map(|span| self.line(span.start)),
            key,
            value: String::new(),
        }
    }

    /// The values of a configuration of the kind `R`.
    ///
    /// # Errors
    /// What is not TOML, an unknown key, a value of the wrong type.
    pub(super) fn parse<R: Raw>(&self) -> Result<R, ConfigError> {
        // What could be read in spite of errors shows in which key they are.
        let (table, errors) = DeTable::parse_recoverable(&self.text);
        if let Some(error) = errors.first() {
            return Err(self.refused::<R>(error, table.get_ref()));
        }
        let known = keys::<R>();
        for key in table.get_ref().keys() {
            let name: &str = key.get_ref();
            if !known.iter().any(|candidate| candidate == name) {
                return Err(unknown_key::<R>(name, &known).at(self.place(Some(key.span()), None)));
            }
        }
        R::deserialize(toml::Deserializer::from(table.clone()))
            .map_err(|error| self.refused::<R>(&error, table.get_ref()))
    }

    fn refused<R: Raw>(&self, error: &toml::de::Error, table: &DeTable<'_>) -> ConfigError {
        let span = error.span();
        let (key, problem) = match &span {
            Some(span) if error.message() == "duplicate key" => {
                let key = self.text.get(span.clone()).unwrap_or_default();
                (
                    Some(key.to_owned()),
                    self.twice::<R>(key, span.start, table),
                )
            }
            Some(span) => {
                let key = holder(table, span.start);
                let problem = wrong::<R>(error.message(), key.as_deref());
                (key, problem)
            }
            None => (None, Problem::new(error.message())),
        };
        problem.at(self.place(span, key))
    }

    /// `key` stands at `offset` once more.
    fn twice<R: Raw>(&self, key: &str, offset: usize, table: &DeTable<'_>) -> Problem {
        let problem = Problem::new(match first(table, key, offset) {
            Some(first) => format!("it is given already, in line {}", self.line(first)),
            None => "it is given twice".to_owned(),
        });
        let headed = self.text.get(..offset).is_some_and(|before| {
            let line = before.rsplit('\n').next().unwrap_or_default();
            line.trim_start().starts_with('[')
        });
        if TABLES.contains(&key) && headed {
            problem.hint(several(key))
        } else if is_list::<R>(key) {
            problem.hint(format!(
                "make one list of both: `{key} = [\"...\", \"...\"]`"
            ))
        } else {
            problem.hint("leave one of them out")
        }
    }
}

/// What is wrong with the value of `key`, in toml's words, and the hint. Within a table it is the
/// table's and its own.
fn wrong<R: Raw>(message: &str, key: Option<&str>) -> Problem {
    let problem = Problem::new(message);
    let Some(key) = key else {
        return problem;
    };
    let found = |what| message.starts_with(&format!("invalid type: {what}"));
    let text = found("string") && message.ends_with("expected a sequence");
    match key {
        _ if message.starts_with("missing field") => problem.hint(format!(
            "each `[[{key}]]` has a line such as `address = \"udp://127.0.0.1:5000\"`"
        )),
        _ if TABLES.contains(&key) && found("map") => problem.hint(several(key)),
        _ if text || is_list::<R>(key) && (found("map") || found("sequence")) => {
            problem.hint(format!("write a list: `{key} = [\"...\"]`"))
        }
        _ if found("") || message.starts_with("string values must be quoted") => {
            problem.hint("write every value as text in quotes")
        }
        _ => problem,
    }
}

/// How tables are written of which there may be several.
fn several(key: &str) -> String {
    format!("there may be several: write `[[{key}]]`, in double brackets, above each")
}

fn is_list<R: Raw>(key: &str) -> bool {
    let command = R::augment_args(clap::Command::new("keys"));
    let mut arguments = command.get_arguments();
    arguments.any(|argument| {
        argument.get_long() == Some(key) && matches!(argument.get_action(), clap::ArgAction::Append)
    })
}

/// The key within whose value the byte at `offset` is; of those in a table within, `TABLE.KEY`.
fn holder(table: &DeTable<'_>, offset: usize) -> Option<String> {
    let holds = |span: Range<usize>| (span.start..=span.end).contains(&offset);
    table.iter().find_map(|(key, value)| {
        let name = key.get_ref();
        let inner = tables(value).find_map(|table| holder(table, offset));
        match inner {
            Some(inner) => Some(format!("{name}.{inner}")),
            None => {
                // The span of a list of tables is that of its first header.
                let within = listed(value).iter().any(|value| holds(value.span()));
                (within || holds(key.span()) || holds(value.span())).then(|| name.to_string())
            }
        }
    })
}

/// Where `key` stood the last time before `offset`, in whatever table.
fn first(table: &DeTable<'_>, key: &str, offset: usize) -> Option<usize> {
    let starts = table.iter().filter_map(|(name, value)| {
        let own = (name.get_ref() == key).then(|| name.span().start);
        let inner = tables(value).filter_map(|table| first(table, key, offset));
        own.filter(|start| *start < offset)
            .into_iter()
            .chain(inner)
            .max()
    });
    starts.max()
}

/// The tables that a value is, or has in its list.
fn tables<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> impl Iterator<Item = &'a DeTable<'i>> {
    listed(value)
        .iter()
        .filter_map(|value| match value.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => None,
        })
}

/// The values of a list; of another value, itself.
fn listed<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> &'a [Spanned<DeValue<'i>>] {
    match value.get_ref() {
        DeValue::Array(list) => list,
        _ => std::slice::from_ref(value),
    }
}

fn unknown_key<R: Raw>(name: &str, known: &[String]) -> Problem {
    let (other, others) = R::other();
    let problem = Problem::new(format!("unknown key `{name}`"));
    if others.iter().any(|key| key == name) {
        return problem.hint(format!(
            "`{name}` is a key of `marline {other}`, not of `marline {}`",
            R::SUBCOMMAND
        ));
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    problem.hint(suggest(name, &known, "key"))
}
