//! What is wrong in a scenario, where, and what to write instead.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the scenario file.
    File {
        /// The file as it was named.
        file: Arc<str>,
        /// Line, counted from 1.
        line: usize,
        /// Column in characters, counted from 1.
        column: usize,
    },
    /// On the command line, as written: `--set links.a.rate=0`.
    Flag(Arc<str>),
}

impl Place {
    /// Is it on the command line?
    pub(super) fn is_flag(&self) -> bool {
        matches!(self, Self::Flag(_))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// One mistake: where, which key, what is wrong, and the hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where it was written.
    pub place: Place,
    /// The dotted key, as `--set` takes it; empty when the whole file is meant.
    pub key: String,
    /// What is wrong, as a clause.
    pub message: String,
    /// What to write instead.
    pub mend: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.key.is_empty() {
            write!(f, "key `{}`: ", self.key)?;
        }
        f.write_str(&self.message)?;
        if !self.mend.is_empty() {
            write!(f, "; {}", self.mend)?;
        }
        Ok(())
    }
}

/// All mistakes that were found, at least one, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// The mistakes.
    pub fn list(&self) -> &[Mistake] {
        &self.0
    }
}

impl From<Mistake> for Mistakes {
    fn from(mistake: Mistake) -> Self {
        Self(vec![mistake])
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, mistake) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// Collects mistakes, so that one check finds them all.
#[derive(Debug, Default)]
pub(super) struct Sink(RefCell<Vec<Mistake>>);

impl Sink {
    pub(super) fn add(&self, mistake: Mistake) {
        let mut list = self.0.borrow_mut();
        // Each cell of a scenario's axes finds the same ones again.
        if !list.contains(&mistake) {
            list.push(mistake);
        }
    }

    /// Was nothing wrong so far?
    pub(super) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// `found`, provided that there was no mistake.
    pub(super) fn answer<T>(self, found: Option<T>) -> Result<T, Mistakes> {
        let mut list = self.0.into_inner();
        list.sort_by(|a, b| a.place.cmp(&b.place));
        match found {
            Some(found) if list.is_empty() => Ok(found),
            _ => Err(Mistakes(list)),
        }
    }
}

/// Names the known word nearest to `word`, or lists all when none is near.
pub(super) fn nearest(word: &str, known: &[&str], what: &str) -> String {
    match marline_base::text::nearest(word, known) {
        _ if known.is_empty() => format!("there is no {what}"),
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("known: {}", known.join(", ")),
    }
}
