//! Reads the keys of one table, and notes every mistake on the way.
//!
//! A getter answers `None` when the key is absent and when its value is wrong; the mistake is then
//! noted, and the caller goes on with a default to find further ones.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::RangeInclusive;

use marline_base::text::units;
use marline_base::{Duration, Instant, Rate};

use super::called::{called, names_of};
use super::mistake::{Mistake, Place, Sink, nearest};
use super::tree::{Node, Table, Value};

/// No time in a scenario is longer.
pub(super) const LONGEST: Duration = Duration::from_secs(86_400);

/// A table being read.
pub(super) struct Reader<'a> {
    pub(super) sink: &'a Sink,
    pub(super) table: &'a Table,
    pub(super) place: Place,
    /// The dotted key of the table, empty at the top.
    pub(super) path: String,
    /// Keys that were asked for: those that may be given.
    known: RefCell<Vec<&'static str>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(sink: &'a Sink, table: &'a Table, place: &Place, path: &str) -> Self {
        Self {
            sink,
            table,
            place: place.clone(),
            path: path.into(),
            known: RefCell::default(),
        }
    }

    /// The dotted key of `key` in this table.
    pub(super) fn key(&self, key: &str) -> String {
        if self.path.is_empty() {
            return key.into();
        }
        format!("{}.{key}", self.path)
    }

    /// Notes a mistake of the value of `key`.
    pub(super) fn wrong(&self, key: &str, node: &Node, message: impl Display, mend: impl Display) {
        self.wrong_at(&node.place, &self.key(key), message, mend);
    }

    /// Notes a mistake elsewhere.
    pub(super) fn wrong_at(
        &self,
        place: &Place,
        key: &str,
        message: impl Display,
        mend: impl Display,
    ) {
        self.sink.add(Mistake {
            place: place.clone(),
            key: key.into(),
            message: message.to_string(),
            mend: mend.to_string(),
        });
    }

    /// Notes that `key` is missing.
    pub(super) fn missing(&self, key: &str, example: impl Display) {
        let mend = format!("write {example}");
        self.wrong_at(&self.place, &self.key(key), "is missing", mend);
    }

    /// The value, whatever it is.
    pub(super) fn get(&self, key: &'static str) -> Option<&'a Node> {
        let mut known = self.known.borrow_mut();
        if !known.contains(&key) {
            known.push(key);
        }
        self.table.get(key)
    }

    /// Notes keys that nobody asked for.
    pub(super) fn finish(&self) {
        let known = self.known.borrow();
        for entry in &self.table.entries {
            if !known.contains(&entry.key.as_str()) {
                let mend = nearest(&entry.key, &known, "key");
                self.wrong_at(
                    &entry.place,
                    &self.key(&entry.key),
                    "no such key here",
                    mend,
                );
            }
        }
    }

    /// A single value, read from its text.
    pub(super) fn parse<T>(
        &self,
        key: &'static str,
        accepted: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        let node = self.get(key)?;
        let Some(text) = node.scalar() else {
            self.wrong(key, node, format!("is {}", node.kind()), accepted);
            return None;
        };
        let value = read(&text);
        if value.is_none() {
            self.wrong(key, node, format!("\"{text}\" cannot be read"), accepted);
        }
        value
    }

    /// A text that is not empty.
    pub(super) fn text(&self, key: &'static str) -> Option<String> {
        let read = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
        self.parse(key, "write a text that is not empty", read)
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let node = self.get(key)?;
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let text = node.scalar().unwrap_or_default();
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let message = match node.scalar() {
                Some(text) => format!("\"{text}\" is not known"),
                None => format!("is {}", node.kind()),
            };
            self.wrong(key, node, message, mend_word(&text, &known));
        }
        found.map(|(_, value)| *value)
    }

    pub(super) fn flag(&self, key: &'static str) -> Option<bool> {
        self.word(
            key,
            &[
                ("yes", true),
                ("no", false),
                ("true", true),
                ("false", false),
            ],
        )
    }

    /// A time in the range.
    pub(super) fn time_in(
        &self,
        key: &'static str,
        range: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let time = self.parse(key, units::A_TIME, units::time)?;
        self.within(key, time, &range, units::show_time)
    }

    /// A time from zero to a day.
    pub(super) fn time(&self, key: &'static str) -> Option<Duration> {
        self.time_in(key, Duration::ZERO..=LONGEST)
    }

    /// A time above zero, at least a microsecond.
    pub(super) fn span(&self, key: &'static str) -> Option<Duration> {
        self.time_in(key, Duration::from_micros(1)..=LONGEST)
    }

    /// As [`Self::span`], which must be given.
    pub(super) fn need_span(&self, key: &'static str, example: &str) -> Option<Duration> {
        self.needed(key, example);
        self.span(key)
    }

    /// A moment, as the time from the start of the run.
    pub(super) fn moment(&self, key: &'static str) -> Option<Instant> {
        self.time(key).map(|time| Instant::ZERO + time)
    }

    /// A rate from 1 kb/s to 1 Tb/s.
    pub(super) fn rate(&self, key: &'static str) -> Option<Rate> {
        let rate = self.parse(key, units::A_RATE, units::rate)?;
        let range = Rate::from_kbps(1)..=Rate::from_mbps(1_000_000);
        self.within(key, rate, &range, units::show_rate)
    }

    /// As [`Self::rate`], which must be given.
    pub(super) fn need_rate(&self, key: &'static str, example: &str) -> Option<Rate> {
        self.needed(key, example);
        self.rate(key)
    }

    /// A number of bytes in the range: a whole number, or a text with its unit.
    pub(super) fn bytes(&self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let read = |text: &str| text.parse().ok().or_else(|| units::size(text));
        let bytes = self.parse(key, A_SIZE, read)?;
        self.within(key, bytes, &range, |bytes| format!("{bytes} bytes"))
    }

    /// A share in the range: `"20%"` or 0.2.
    pub(super) fn share(&self, key: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        let share = self.parse(key, A_SHARE, units::share)?;
        self.within(key, share, &range, units::show_share)
    }

    /// A whole number in the range.
    pub(super) fn whole(&self, key: &'static str, range: RangeInclusive<u64>) -> Option<u64> {
        let accepted = format!(
            "write a whole number {}",
            between(&range, |n| n.to_string())
        );
        let number = self.parse(key, &accepted, |text| text.parse().ok())?;
        self.within(key, number, &range, |number| number.to_string())
    }

    /// A finite number.
    pub(super) fn number(&self, key: &'static str) -> Option<f64> {
        let read = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
        self.parse(key, "write a number", read)
    }

    /// Notes that `key` is missing if it is; `example` is a value, and what it is after a comma.
    pub(super) fn needed(&self, key: &'static str, example: &str) {
        if self.get(key).is_none() {
            let (value, what) = example.split_at(example.find(", ").unwrap_or(example.len()));
            self.missing(key, format!("`{key} = {value}`{what}"));
        }
    }

    /// A list; a single value counts as a list of one.
    pub(super) fn list(&self, key: &'static str) -> Option<Vec<&'a Node>> {
        Some(match &self.get(key)?.value {
            Value::List(items) => items.iter().collect(),
            _ => self.get(key).into_iter().collect(),
        })
    }

    /// A list of tables, each called as a dotted key calls it.
    pub(super) fn tables(&self, key: &'static str) -> Option<Vec<Reader<'a>>> {
        let node = self.get(key)?;
        let Value::List(items) = &node.value else {
            let mend = format!(
                "write each as a table of its own under [[{}]]",
                self.key(key)
            );
            self.wrong(
                key,
                node,
                format!("is {}, not a list of tables", node.kind()),
                mend,
            );
            return None;
        };
        let mut readers = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let Some(table) = item.table() else {
                let mend = format!("write it as a table under [[{}]]", self.key(key));
                self.wrong(key, item, format!("is {}, not a table", item.kind()), mend);
                continue;
            };
            let called = called(table, names_of(key)).unwrap_or_else(|| (i + 1).to_string());
            let path = self.key(&format!("{key}.{called}"));
            readers.push(Reader::new(self.sink, table, &item.place, &path));
        }
        Some(readers)
    }

    /// A table in this one.
    pub(super) fn inner(&self, key: &'static str) -> Option<Reader<'a>> {
        let node = self.get(key)?;
        let Some(table) = node.table() else {
            let mend = format!("write its keys under [{}]", self.key(key));
            self.wrong(key, node, format!("is {}, not a table", node.kind()), mend);
            return None;
        };
        Some(Reader::new(self.sink, table, &node.place, &self.key(key)))
    }

    fn within<T: PartialOrd + Copy>(
        &self,
        key: &'static str,
        value: T,
        range: &RangeInclusive<T>,
        show: impl Fn(T) -> String,
    ) -> Option<T> {
        if range.contains(&value) {
            return Some(value);
        }
        let node = self.get(key)?;
        let mend = format!("must be {}", between(range, &show));
        self.wrong(key, node, format!("{} is out of range", show(value)), mend);
        None
    }
}

pub(super) const A_SIZE: &str =
    "not a size; give bytes, or a number with B, kB, MB, KiB or MiB, such as \"20kB\"";

const A_SHARE: &str = "not a share; give a percentage such as \"20%\", or 0.2";

fn between<T: Copy>(range: &RangeInclusive<T>, show: impl Fn(T) -> String) -> String {
    format!("from {} to {}", show(*range.start()), show(*range.end()))
}

fn mend_word(word: &str, known: &[&str]) -> String {
    match nearest(word, known, "word") {
        near if near.starts_with("did") => format!("{near} (known: {})", known.join(", ")),
        all => all,
    }
}
