//! What is wrong in a configuration, where, and what to do.

use std::fmt;
use std::path::PathBuf;

/// A refused configuration: file and line or flag, the key, the value, and the mend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// Boxed, so that a `Result` stays small.
    place: Box<Place>,
    problem: Problem,
}

/// Where the refused value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// On the command line, as `--KEY VALUE`.
    Flag {
        /// Name of the key and of the flag.
        key: String,
        /// The value as it was written; empty when there is none.
        value: String,
    },
    /// In a file.
    File {
        /// The file as it was named.
        file: PathBuf,
        /// Line, counted from 1; `None` when the whole file is meant.
        line: Option<usize>,
        /// The key, where one is known.
        key: Option<String>,
        /// The value as it was written; empty when there is none.
        value: String,
    },
}

/// What is wrong with a value, and the mend, without saying where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, as a clause without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        Problem {
            message: message.into(),
            hint: None,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says where the problem stands.
    #[must_use]
    pub fn at(self, place: Place) -> ConfigError {
        ConfigError {
            place: Box::new(place),
            problem: self,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl ConfigError {
    /// What to do about it, if the error knows.
    pub fn hint(&self) -> Option<&str> {
        self.problem.hint.as_deref()
    }
}

impl Place {
    /// The key as one gives it there: `--KEY`, or `` `KEY` in FILE ``.
    pub fn key(&self) -> String {
        match self {
            Place::Flag { key, .. } => format!("--{key}"),
            Place::File { file, key, .. } => {
                let key = key.as_deref().unwrap_or_default();
                format!("`{key}` in {}", file.display())
            }
        }
    }

    /// Within a sentence about another value, from the same file if it is from one.
    pub(super) fn brief(&self) -> String {
        match self {
            Place::File {
                line: Some(line),
                key: Some(key),
                value,
                ..
            } => format!("`{key}` \"{value}\" in line {line}"),
            place => place.to_string(),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Flag { key, value } if value.is_empty() => write!(f, "--{key}"),
            Place::Flag { key, value } => write!(f, "--{key} {value}"),
            Place::File {
                file,
                line,
                key,
                value,
            } => {
                write!(f, "{}", file.display())?;
                if let Some(line) = line {
                    write!(f, ":{line}")?;
                }
                if let Some(key) = key {
                    write!(f, ": key `{key}`")?;
                }
                if !value.is_empty() {
                    write!(f, ": \"{value}\"")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem.message)
    }
}

impl std::error::Error for ConfigError {}
