//! A chosen scheduler as it is written: `NAME` or `NAME:KEY=VALUE:KEY=VALUE`.
//!
//! Colons separate options, because commas separate what schedulers are written among.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use super::entry::{Choice, MAX_OPTIONS};
use super::options::Accepts;
use super::registry::{all, called_elsewhere, find};
use marline_base::text;

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
            let value = option.read(value).ok_or_else(|| ChoiceError::Value {
                key: option.key,
                value: value.to_string(),
                accepts: option.accepts,
            })?;
            choice.set(index, value);
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
                let known: Vec<_> = all().map(|entry| entry.name).collect();
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

/// Names the known word that was meant, else all of them.
fn nearest(word: &str, known: &[&str], what: &str) -> String {
    match text::nearest(word, known) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("{what}: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marline_base::Duration;

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
