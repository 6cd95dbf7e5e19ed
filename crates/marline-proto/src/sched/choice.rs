//! A chosen scheduler with its options, written `NAME` or `NAME:KEY=VALUE:KEY=VALUE`.
//!
//! Colons separate options, because commas separate what schedulers are written among.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::Scheduler;
use super::options::{Accepts, Value};
use super::registry::{Entry, SCHEDULERS, called_elsewhere, find};
use marline_base::Duration;

/// Most options that a scheduler may have.
pub(super) const MAX_OPTIONS: usize = 8;

/// A scheduler from the registry with a value for each of its options.
#[derive(Clone, Copy)]
pub struct Choice {
    entry: &'static Entry,
    /// In the order of the entry's options.
    values: [Value; MAX_OPTIONS],
}

impl From<&'static Entry> for Choice {
    /// With the default of every option.
    fn from(entry: &'static Entry) -> Self {
        let mut values = [Value::Switch(false); MAX_OPTIONS];
        for (value, option) in values.iter_mut().zip(entry.options) {
            *value = option.default;
        }
        Self { entry, values }
    }
}

impl Choice {
    /// The scheduler's entry in the registry.
    pub const fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// The scheduler's name, without options.
    pub const fn name(&self) -> &'static str {
        self.entry.name
    }

    /// A new scheduler as chosen.
    pub fn make(&self) -> Box<dyn Scheduler> {
        (self.entry.new)(self)
    }

    /// Is the switch on? For the scheduler's constructor; panics if it has no such switch, which
    /// a test over the registry finds.
    pub fn switch(&self, key: &str) -> bool {
        match self.value(key) {
            Value::Switch(on) => on,
            other => unreachable!("`{key}` is {other:?}, not a switch"),
        }
    }

    /// The number; as for [`Choice::switch`].
    pub fn number(&self, key: &str) -> f64 {
        match self.value(key) {
            Value::Number(number) => number,
            other => unreachable!("`{key}` is {other:?}, not a number"),
        }
    }

    /// The word, if the option that takes a number or a word has one; as for [`Choice::switch`].
    pub fn word(&self, key: &str) -> Option<&'static str> {
        match self.value(key) {
            Value::Word(word) => Some(word),
            _ => None,
        }
    }

    /// The duration; as for [`Choice::switch`].
    pub fn time(&self, key: &str) -> Duration {
        match self.value(key) {
            Value::Time(time) => time,
            other => unreachable!("`{key}` is {other:?}, not a time"),
        }
    }

    /// The same with this switch on; as for [`Choice::switch`].
    pub(super) fn switched_on(mut self, key: &str) -> Self {
        self.values[self.index(key)] = Value::Switch(true);
        self
    }

    fn value(&self, key: &str) -> Value {
        self.values[self.index(key)]
    }

    fn index(&self, key: &str) -> usize {
        let mut options = self.entry.options.iter();
        match options.position(|option| option.key == key) {
            Some(index) => index,
            None => unreachable!("scheduler {} has no option `{key}`", self.entry.name),
        }
    }
}

impl PartialEq for Choice {
    fn eq(&self, other: &Self) -> bool {
        self.entry.name == other.entry.name && self.values == other.values
    }
}

impl Eq for Choice {}

impl fmt::Display for Choice {
    /// As it is written, without what is as by default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry.name)?;
        for (value, option) in self.values.iter().zip(self.entry.options) {
            if *value != option.default {
                write!(f, ":{}={value}", option.key)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Choice({self})")
    }
}

impl FromStr for Choice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let entry = find(name).ok_or_else(|| ChoiceError::Scheduler(name.to_string()))?;
        let mut choice = Self::from(entry);
        let mut given = [false; MAX_OPTIONS];
        for word in words {
            let unknown = |key: &str| ChoiceError::Key {
                scheduler: entry.name,
                key: key.to_string(),
            };
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let mut options = entry.options.iter();
            let index = options.position(|option| option.key == key);
            let index = index.ok_or_else(|| unknown(key))?;
            let option = &entry.options[index];
            if core::mem::replace(&mut given[index], true) {
                return Err(ChoiceError::Twice(option.key));
            }
            choice.values[index] = option.read(value).ok_or_else(|| ChoiceError::Value {
                key: option.key,
                value: value.to_string(),
                accepts: option.accepts,
            })?;
        }
        Ok(choice)
    }
}

/// Why a text chooses no scheduler.
#[derive(Clone, Debug, PartialEq)]
pub enum ChoiceError {
    /// No scheduler of that name.
    Scheduler(String),
    /// The scheduler has no option of that key.
    Key {
        /// The scheduler.
        scheduler: &'static str,
        /// The key as written.
        key: String,
    },
    /// The option is given twice.
    Twice(&'static str),
    /// The option does not accept the value.
    Value {
        /// The option.
        key: &'static str,
        /// The value as written; empty if there was none.
        value: String,
        /// What it accepts.
        accepts: Accepts,
    },
}

impl ChoiceError {
    /// What is wrong, as a clause.
    pub fn message(&self) -> String {
        match self {
            Self::Scheduler(name) => format!("unknown scheduler `{name}`"),
            Self::Key { scheduler, key } => {
                format!("scheduler `{scheduler}` has no option `{key}`")
            }
            Self::Twice(key) => format!("option `{key}` is given twice"),
            Self::Value { key, value, .. } if value.is_empty() => {
                format!("option `{key}` needs a value")
            }
            Self::Value { key, value, .. } => format!("option `{key}` does not take `{value}`"),
        }
    }

    /// What to write instead.
    pub fn hint(&self) -> String {
        match self {
            Self::Scheduler(name) => {
                if let Some(own) = called_elsewhere(name) {
                    return format!("it is called `{own}` here");
                }
                let known = SCHEDULERS
                    .iter()
                    .map(|entry| entry.name)
                    .collect::<Vec<_>>();
                nearest(name, &known, "schedulers")
            }
            Self::Key { scheduler, key } => {
                let options = find(scheduler).map_or(&[][..], |entry| entry.options);
                let known: Vec<_> = options.iter().map(|option| option.key).collect();
                if known.is_empty() {
                    return "it has none; write its name alone".to_string();
                }
                nearest(key, &known, "its options")
            }
            Self::Twice(_) => "write it once".to_string(),
            Self::Value { key, accepts, .. } => format!("write `{key}=` and {accepts}"),
        }
    }
}

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message(), self.hint())
    }
}

impl core::error::Error for ChoiceError {}

/// Names the nearest known word if few letters differ, else all of them.
fn nearest(word: &str, known: &[&str], what: &str) -> String {
    let best = known.iter().map(|k| (distance(word, k), k)).min();
    match best {
        Some((letters, best)) if letters * 2 <= word.len().max(1) => {
            format!("did you mean `{best}`?")
        }
        _ => format!("{what}: {}", known.join(", ")),
    }
}

/// Letters to insert, drop, replace or swap with their neighbour to make one word the other
/// (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    // Rows of the table for the letters of `a`: the one before the last, the last, and this one.
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for j in 0..b.len() {
            let replaced = last[j] + usize::from(a[i] != b[j]);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = core::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(text: &str) -> Choice {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn a_choice_is_written_without_its_defaults() {
        assert_eq!(choice("edpf").to_string(), "edpf");
        let both = choice("edpf:revise=10ms:horizon=2000ms");
        assert_eq!(both.to_string(), "edpf:horizon=2s");
        assert_eq!(both, choice("edpf:horizon=2s"));
        assert_ne!(both, choice("edpf"));
        assert_eq!(both.time("horizon"), Duration::from_secs(2));
        assert_eq!(both.time("revise"), Duration::from_millis(10));
    }

    #[test]
    fn errors_name_the_key_and_the_mend() {
        for (text, message, hint) in [
            ("", "unknown scheduler ``", "schedulers: "),
            (
                "min-rt",
                "unknown scheduler `min-rt`",
                "did you mean `min-rtt`?",
            ),
            ("edfp", "unknown scheduler `edfp`", "did you mean `edpf`?"),
            (
                "ols-x:copies=off",
                "unknown scheduler `ols-x`",
                "called `hedge` here",
            ),
            (
                "fastest-of-all",
                "unknown scheduler `fastest-of-all`",
                "min-rtt",
            ),
            (
                "edpf:horizont=2s",
                "scheduler `edpf` has no option `horizont`",
                "did you mean `horizon`?",
            ),
            (
                "edpf:x=on",
                "scheduler `edpf` has no option `x`",
                "its options: horizon, revise",
            ),
            ("edpf:", "has no option ``", "its options: "),
            ("round-robin:x=1", "has no option `x`", "it has none"),
            (
                "edpf:horizon",
                "`horizon` needs a value",
                "a time from 0s to 10s",
            ),
            (
                "edpf:horizon=20",
                "option `horizon` does not take `20`",
                "write `horizon=` and a time from 0s to 10s with its unit",
            ),
            ("edpf:revise=2ms:revise=2ms", "given twice", "once"),
        ] {
            let error = text.parse::<Choice>().expect_err(text);
            assert!(error.message().contains(message), "{text}: {error}");
            assert!(error.hint().contains(hint), "{text}: {error}");
        }
    }
}
