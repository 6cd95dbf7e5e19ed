//! Where values come from: the command line or a file, remembered with each value so that an error
//! can name the place.

use super::error::{ConfigError, Place, Placed as _};
use super::file::File;
use super::listening::Listening;
use marline::support::access;
use marline_base::text::Problem;
use serde::de::{DeserializeOwned, Error as _, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};
use std::convert::Infallible;
use std::fmt;
use std::fs;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Largest configuration file that is read, bytes.
const MAX_FILE: u64 = 1 << 20;

/// A value as it was written, and where. Serialized it is its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Written {
    /// The text.
    pub text: String,
    /// Bytes of the file that hold it; `None` for a flag.
    #[serde(skip)]
    span: Option<Range<usize>>,
}

impl Written {
    /// A value from the command line, in the form that clap wants of a parser.
    ///
    /// # Errors
    /// None: what the text means is judged later, together with that of files.
    pub fn flag(text: &str) -> Result<Self, Infallible> {
        Ok(Written {
            text: text.to_owned(),
            span: None,
        })
    }
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = toml::Spanned::<String>::deserialize(deserializer)?;
        Ok(Written {
            span: Some(spanned.span()),
            text: spanned.into_inner(),
        })
    }
}

/// One of several values that may also be written as a table, as under `[[live]]`: `address` is the
/// value itself, and the other keys are its options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry(pub Written);

impl Entry {
    /// As [`Written::flag`].
    ///
    /// # Errors
    /// None.
    pub fn flag(text: &str) -> Result<Self, Infallible> {
        Written::flag(text).map(Entry)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = toml::Spanned::<TextOrTable>::deserialize(deserializer)?;
        Ok(Entry(Written {
            span: Some(spanned.span()),
            text: spanned.into_inner().0,
        }))
    }
}

/// The text of a value, or a table in the form of one.
struct TextOrTable(String);

impl<'de> Deserialize<'de> for TextOrTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = TextOrTable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, or a table with `address`")
            }

            fn visit_str<E>(self, text: &str) -> Result<TextOrTable, E> {
                Ok(TextOrTable(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TextOrTable, A::Error> {
                let (mut address, mut options) = (None, String::new());
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    if key == "address" {
                        address = Some(value);
                    } else {
                        options.push_str(&format!(",{key}={value}"));
                    }
                }
                let address = address.ok_or_else(|| A::Error::missing_field("address"))?;
                Ok(TextOrTable(address + &options))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// A raw configuration: the same struct is filled from flags and from a file.
pub trait Raw: clap::Args + Serialize + DeserializeOwned + Default {
    /// The subcommand that takes it, for messages.
    const SUBCOMMAND: &'static str;

    /// These values, completed by those of `file`. A list that is given replaces the file's list.
    #[must_use]
    fn over(self, file: Self) -> Self;

    /// Where it listens, as far as that can be read.
    fn listening(&self) -> Vec<Listening<'_>>;

    /// Keys of the other subcommand and its name, to tell a misplaced key from a misspelt one.
    fn other() -> (&'static str, Vec<String>);
}

/// Names of the keys of `R`, which are those of its flags.
pub(super) fn keys<R: Raw>() -> Vec<String> {
    R::augment_args(clap::Command::new("keys"))
        .get_arguments()
        .filter_map(|argument| argument.get_long().map(str::to_owned))
        .collect()
}

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
