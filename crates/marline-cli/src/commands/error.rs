//! The one error type of the command line, and what exit code it means.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

/// Why a subcommand ended without doing its work.
///
/// It is printed to standard error as `error: MESSAGE`, and, where there is a hint, a second line
/// `hint: HINT`.
#[derive(Debug)]
pub struct CliError {
    kind: Kind,
    message: String,
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Exit code 1: the work was attempted and failed.
    Runtime,
    /// Exit code 2: the flags or the configuration are wrong.
    Usage,
    /// Standard output says what is wrong, and this is its exit code.
    Told(u8),
    /// The reader of our standard output has gone; it has all that it wanted. Exit code 0.
    BrokenPipe,
}

impl CliError {
    /// A failure at run time (exit code 1).
    pub fn runtime(message: impl Display) -> Self {
        CliError {
            kind: Kind::Runtime,
            message: message.to_string(),
            hint: None,
        }
    }

    /// Wrong flags or configuration (exit code 2).
    pub fn usage(message: impl Display) -> Self {
        CliError {
            kind: Kind::Usage,
            message: message.to_string(),
            hint: None,
        }
    }

    /// An error while writing to standard output. A broken pipe counts as success.
    pub fn output(error: io::Error) -> Self {
        let kind = if error.kind() == io::ErrorKind::BrokenPipe {
            Kind::BrokenPipe
        } else {
            Kind::Runtime
        };
        CliError {
            kind,
            message: format!("cannot write to standard output: {error}"),
            hint: None,
        }
    }

    /// Standard output says what is wrong; nothing is added to it but this exit code.
    pub(super) fn told(code: u8) -> Self {
        CliError {
            kind: Kind::Told(code),
            message: String::new(),
            hint: None,
        }
    }

    /// Adds the line that says what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Puts what it happened to before the message.
    #[must_use]
    pub(super) fn of(mut self, what: impl Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// The message and the hint in one line, for a log.
    pub(super) fn in_one(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{} (hint: {hint})", self.message),
            None => self.message.clone(),
        }
    }

    /// Prints the error to standard error and returns the exit code for it.
    pub fn report(&self) -> ExitCode {
        if !matches!(self.kind, Kind::BrokenPipe | Kind::Told(_)) {
            let mut stderr = io::stderr().lock();
            // Nobody is left to tell when standard error is closed too.
            let _ = writeln!(stderr, "error: {}", self.message);
            if let Some(hint) = &self.hint {
                let _ = writeln!(stderr, "hint: {hint}");
            }
        }
        match self.kind {
            Kind::BrokenPipe => ExitCode::SUCCESS,
            Kind::Told(code) => ExitCode::from(code),
            Kind::Runtime => ExitCode::from(1),
            Kind::Usage => ExitCode::from(2),
        }
    }
}

impl From<crate::config::ConfigError> for CliError {
    fn from(error: crate::config::ConfigError) -> Self {
        let hint = error.hint().map(str::to_owned);
        CliError {
            kind: Kind::Usage,
            message: error.to_string(),
            hint,
        }
    }
}

#[cfg(feature = "experiments")]
impl From<marline_lab::process::ProcessError> for CliError {
    fn from(error: marline_lab::process::ProcessError) -> Self {
        CliError::runtime(error)
    }
}
