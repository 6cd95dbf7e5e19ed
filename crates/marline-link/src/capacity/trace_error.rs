use alloc::string::{String, ToString};
use core::fmt;

/// A trace that cannot be used: the file, the line, what is wrong with it and how to correct it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    name: String,
    line: usize,
    problem: String,
}

impl TraceError {
    pub(super) fn new(name: &str, line: usize, problem: impl ToString) -> Self {
        Self {
            name: name.to_string(),
            line,
            problem: problem.to_string(),
        }
    }

    /// The line at fault, counted from one.
    pub const fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            line,
            problem,
        } = self;
        write!(f, "trace {name}, line {line}: {problem}")
    }
}

impl core::error::Error for TraceError {}

/// The beginning of `text`, for messages.
pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}
