//! A scenario file as a tree whose every value knows where it was written.

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::mistake::{Mistake, Mistakes, Place};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

/// What a TOML file can say here; it has no dates.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Bool(bool),
    List(Vec<Node>),
    Table(Table),
}

/// Keys in the order of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) entries: Vec<Entry>,
}

/// A key and its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    /// Where the key stands.
    pub(super) place: Place,
    pub(super) node: Node,
}

impl Table {
    pub(super) fn get(&self, key: &str) -> Option<&Node> {
        let found = self.entries.iter().find(|entry| entry.key == key);
        found.map(|entry| &entry.node)
    }

    pub(super) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let found = self.entries.iter_mut().find(|entry| entry.key == key);
        found.map(|entry| &mut entry.node)
    }

    pub(super) fn keys(&self) -> Vec<&str> {
        self.entries.iter().map(|e| e.key.as_str()).collect()
    }

    /// Adds the key or replaces its value.
    pub(super) fn set(&mut self, key: &str, node: Node) {
        match self.entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => {
                entry.place = node.place.clone();
                entry.node = node;
            }
            None => self.entries.push(Entry {
                key: key.into(),
                place: node.place.clone(),
                node,
            }),
        }
    }
}

impl Node {
    pub(super) fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// A single value as it would be written in the text form of a link; `None` for lists and
    /// tables.
    pub(super) fn scalar(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) => Some(text.clone()),
            Value::Integer(number) => Some(number.to_string()),
            Value::Float(number) => Some(number.to_string()),
            Value::Bool(yes) => Some(if *yes { "yes" } else { "no" }.into()),
            Value::List(_) | Value::Table(_) => None,
        }
    }

    /// What kind of value it is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "a text",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Bool(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

/// Reads TOML.
pub(super) fn parse(file: &str, text: &str) -> Result<Table, Mistakes> {
    let lines = Lines {
        file: file.into(),
        text,
    };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let mend = match error.message() {
            "duplicate key" => "remove one of the two, or put their keys into one table",
            _ => "write TOML: KEY = VALUE, texts in \"\"",
        };
        lines.mistake(at, error.message(), mend)
    })?;
    lines.table(table.get_ref())
}

/// Reads a value of the command line: a TOML list, table or quoted text, a number, true or false,
/// else a text as it stands.
pub(super) fn parse_flag(place: &Place, text: &str) -> Result<Node, String> {
    let text = text.trim();
    let structured = text.starts_with(['[', '{', '"', '\'']);
    let node = |value| Node {
        place: place.clone(),
        value,
    };
    match DeValue::parse(text) {
        Ok(value) => {
            let lines = Lines {
                file: "".into(),
                text,
            };
            let mut found = lines
                .node(&value)
                .map_err(|error| error.list()[0].message.clone())?;
            found.replace(place);
            // A number keeps how it was written: 0.010 stays 0.010 in the name of a cell.
            Ok(found)
        }
        Err(error) if structured => Err(error.message().to_string()),
        Err(_) => Ok(node(Value::Text(text.into()))),
    }
}

impl Node {
    fn replace(&mut self, place: &Place) {
        self.place = place.clone();
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| item.replace(place)),
            Value::Table(table) => {
                for entry in &mut table.entries {
                    entry.place = place.clone();
                    entry.node.replace(place);
                }
            }
            Value::Text(_) | Value::Integer(_) | Value::Float(_) | Value::Bool(_) => {}
        }
    }
}

struct Lines<'a> {
    file: Arc<str>,
    text: &'a str,
}

impl Lines<'_> {
    fn place(&self, at: usize) -> Place {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Place::File {
            file: self.file.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// The key that the line of this place is about, as far as a text that may not be TOML shows
    /// it: what stands before its `=`, under the last header before it. Empty where that is no key.
    fn key(&self, at: usize) -> String {
        let before = self.text.get(..at).unwrap_or(self.text);
        let start = before.rfind('\n').map_or(0, |end| end + 1);
        let mut lines = self.text[start..].lines();
        let line = lines.next().unwrap_or_default();
        if let Some(header) = header(line) {
            return header.to_owned();
        }
        let own = line.split_once('=').map_or(line, |(own, _)| own).trim();
        let own = own.trim_matches(['"', '\'']);
        if !is_key(own) {
            return String::new();
        }
        let table = self.text[..start].lines().rev().find_map(header);
        table.map_or_else(|| own.to_owned(), |table| format!("{table}.{own}"))
    }

    fn mistake(&self, at: usize, message: &str, mend: &str) -> Mistakes {
        Mistake {
            place: self.place(at),
            key: self.key(at),
            message: message.replace('\n', ", "),
            mend: mend.into(),
        }
        .into()
    }

    fn table(&self, table: &DeTable<'_>) -> Result<Table, Mistakes> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let entries = entries.into_iter().map(|(key, value)| {
            Ok(Entry {
                key: key.get_ref().to_string(),
                place: self.place(key.span().start),
                node: self.node(value)?,
            })
        });
        Ok(Table {
            entries: entries.collect::<Result<_, Mistakes>>()?,
        })
    }

    fn node(&self, value: &Spanned<DeValue<'_>>) -> Result<Node, Mistakes> {
        let at = value.span().start;
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => {
                let read = i64::from_str_radix(number.as_str(), number.radix());
                Value::Integer(read.map_err(|_| {
                    self.mistake(at, "the number is too large", "write at most 2^63 - 1")
                })?)
            }
            DeValue::Float(number) => match number.as_str().parse::<f64>() {
                Ok(read) if read.is_finite() => Value::Float(read),
                _ => return Err(self.mistake(at, "not a finite number", "write a number")),
            },
            DeValue::Boolean(yes) => Value::Bool(*yes),
            DeValue::Datetime(_) => {
                return Err(self.mistake(
                    at,
                    "a scenario has no dates",
                    "write a time from the start of the run, such as \"10s\"",
                ));
            }
            DeValue::Array(items) => {
                let nodes = items.iter().map(|item| self.node(item));
                Value::List(nodes.collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => Value::Table(self.table(table)?),
        };
        Ok(Node {
            place: self.place(at),
            value,
        })
    }
}

/// The name in `[NAME]` or `[[NAME]]`, if the line is such a header.
fn header(line: &str) -> Option<&str> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let name = line.strip_prefix('[')?.strip_suffix(']')?;
    let inner = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    let name = inner.unwrap_or(name).trim();
    is_key(name).then_some(name)
}

/// Is it a dotted key without quotes?
fn is_key(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    !text.is_empty() && text.chars().all(letter)
}
