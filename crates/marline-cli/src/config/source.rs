//! Where values come from: the command line or a file, remembered with each value so that an error
//! can name the place.

use super::error::{ConfigError, Place, Placed as _};
use super::file::File;
use super::keys::Raw;
use super::written::Written;
use marline::support::access;
use marline_base::text::Problem;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Largest configuration file that is read, bytes.
const MAX_FILE: u64 = 1 << 20;

/// Raw values and the file behind them, ready to be checked.
#[derive(Debug)]
pub struct Source<R> {
    /// Flags over file.
    pub raw: R,
    file: Option<File>,
}

impl<R: Raw> Source<R> {
    /// Flags alone.
    pub fn flags(raw: R) -> Self {
        Source { raw, file: None }
    }

    /// Flags, completed by the file where one is named.
    ///
    /// # Errors
    /// When the file cannot be read, is not TOML, or holds an unknown key or a value of the wrong
    /// type.
    pub fn load(flags: R, file: Option<&Path>) -> Result<Self, ConfigError> {
        let Some(path) = file else {
            return Ok(Source::flags(flags));
        };
        let place = || Place::File {
            file: path.to_owned(),
            line: None,
            key: None,
            value: String::new(),
        };
        let whole = |message: String| Problem::new(message).at(place());
        let unreadable = |error| whole(format!("cannot read the configuration: {error}"));
        let opened = fs::File::open(path).map_err(unreadable)?;
        let metadata = opened.metadata().map_err(unreadable)?;
        access::rules(&metadata).map_err(|access::TooOpen { mode }| {
            Problem::new(format!(
                "its permissions are {mode:03o}, so everybody on this host may change the configuration"
            ))
            .hint(format!("run `chmod o-w {}`", path.display()))
            .at(place())
        })?;
        let mut text = String::new();
        opened
            .take(MAX_FILE + 1)
            .read_to_string(&mut text)
            .map_err(unreadable)?;
        if text.len() as u64 > MAX_FILE {
            return Err(whole(format!(
                "a configuration has at most {MAX_FILE} bytes, this has more"
            )));
        }
        let file = File {
            path: path.to_owned(),
            text,
        };
        let raw: R = file.parse()?;
        Ok(Source {
            raw: flags.over(raw),
            file: Some(file),
        })
    }

    /// Where `value` of `key` was written.
    pub fn place(&self, key: &str, value: &Written) -> Place {
        match (&value.span, &self.file) {
            (Some(span), Some(file)) => Place::File {
                file: file.path.clone(),
                line: Some(file.line(span.start)),
                key: Some(key.to_owned()),
                value: value.text.clone(),
            },
            _ => Place::Flag {
                key: key.to_owned(),
                value: value.text.clone(),
            },
        }
    }

    /// Reads `value` of `key` with `parse`, and names the place when it refuses.
    ///
    /// # Errors
    /// That of `parse`.
    pub fn read<T>(
        &self,
        key: &str,
        value: &Written,
        parse: impl FnOnce(&str) -> Result<T, Problem>,
    ) -> Result<T, ConfigError> {
        parse(&value.text).map_err(|problem| problem.at(self.place(key, value)))
    }

    /// A path named by `value`: one in a configuration file is relative to the file's folder.
    pub fn resolve(&self, value: &Written) -> PathBuf {
        match (&value.span, &self.file) {
            (Some(_), Some(file)) => file
                .path
                .parent()
                .unwrap_or(Path::new(""))
                .join(&value.text),
            _ => PathBuf::from(&value.text),
        }
    }

    /// The place to blame for a key that is missing altogether.
    pub fn missing(&self, key: &str) -> Place {
        match &self.file {
            Some(file) => Place::File {
                file: file.path.clone(),
                line: None,
                key: Some(key.to_owned()),
                value: String::new(),
            },
            None => Place::Flag {
                key: key.to_owned(),
                value: String::new(),
            },
        }
    }
}
