//! What is wrong in a configuration, where, and what to do.

use marline_base::text::Problem;
use std::fmt;
use std::path::PathBuf;

/// A refused configuration: file and line or flag, the key, the value, and the hint.
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

/// A problem that is said to stand somewhere.
pub(crate) trait Placed {
    /// Says where the problem stands.
    fn at(self, place: Place) -> ConfigError;
}

impl Placed for Problem {
    fn at(self, place: Place) -> ConfigError {
        ConfigError {
            place: Box::new(place),
            problem: self,
        }
    }
}

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
