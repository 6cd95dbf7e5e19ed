//! Values as they were written, on the command line or in a file.

use serde::de::{Error as _, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};
use std::convert::Infallible;
use std::fmt;
use std::ops::Range;

/// A value as it was written, and where. Serialized it is its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Written {
    /// The text.
    pub text: String,
    /// Bytes of the file that hold it; `None` for a flag.
    #[serde(skip)]
    pub(super) span: Option<Range<usize>>,
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
