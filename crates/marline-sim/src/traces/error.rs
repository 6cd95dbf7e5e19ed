use std::fmt;

/// A recorded workload that cannot be used: the file, the line if there is one, what is wrong and
/// how to correct it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceError {
    name: String,
    line: Option<u64>,
    problem: String,
}

impl TraceError {
    pub(super) fn new(name: &str, line: u64, problem: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            line: Some(line),
            problem: problem.into(),
        }
    }

    pub(super) fn of_file(name: &str, problem: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            line: None,
            problem: problem.into(),
        }
    }

    /// The line at fault, counted from one, unless it is the file as a whole.
    pub const fn line(&self) -> Option<u64> {
        self.line
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}, line {line}: {}", self.name, self.problem),
            None => write!(f, "{}: {}", self.name, self.problem),
        }
    }
}

impl std::error::Error for TraceError {}
