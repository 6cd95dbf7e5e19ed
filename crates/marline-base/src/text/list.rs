//! Lists of options as people write them: `KEY=VALUE,KEY,…`.

use alloc::format;
use alloc::vec::Vec;

use super::{Problem, suggest};

/// One option of a list: its key, and what stands after `=`; nothing of one that stands alone.
pub type Pair<'a> = (&'a str, &'a str);

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// It stands alone.
    Nothing,
    /// `KEY=VALUE`.
    Value,
}

/// Options of one kind of list, by key.
pub type Keys = [(&'static str, Takes)];

/// Splits `HEAD,KEY=VALUE,KEY,…` into its head and its options, as [`pairs`] reads them.
///
/// # Errors
/// What is wrong with an option, and the hint.
pub fn list<'a>(text: &'a str, keys: &Keys) -> Result<(&'a str, Vec<Pair<'a>>), Problem> {
    let (head, rest) = match text.split_once(',') {
        Some((head, rest)) => (head, Some(rest)),
        None => (text, None),
    };
    let options = rest.map_or(Ok(Vec::new()), |rest| pairs(rest, keys))?;
    Ok((head.trim(), options))
}

/// Reads `KEY=VALUE,KEY,…`: each key is one of `keys`, stands once, and has a value if it needs
/// one.
///
/// # Errors
/// What is wrong with an option, and the mend.
pub fn pairs<'a>(text: &'a str, keys: &Keys) -> Result<Vec<Pair<'a>>, Problem> {
    let mut options: Vec<Pair<'a>> = Vec::new();
    for word in text.split(',').map(str::trim) {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (word, None),
        };
        if options.iter().any(|(other, _)| *other == key) {
            return Err(Problem::new(format!("option `{key}` is given twice")));
        }
        let Some((_, takes)) = keys.iter().find(|(known, _)| *known == key) else {
            let known: Vec<&str> = keys.iter().map(|(key, _)| *key).collect();
            return Err(unknown(key).hint(suggest(key, &known, "option")));
        };
        match (takes, value) {
            (Takes::Value, None | Some("")) => {
                return Err(Problem::new(format!(
                    "option `{key}` needs a value: `{key}=...`"
                )));
            }
            (Takes::Nothing, Some(_)) => {
                return Err(Problem::new(format!("option `{key}` takes no value")));
            }
            _ => options.push((key, value.unwrap_or_default())),
        }
    }
    Ok(options)
}

/// That there is no such option.
pub fn unknown(key: &str) -> Problem {
    Problem::new(format!("unknown option `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: &Keys = &[("cost", Takes::Value), ("standby", Takes::Nothing)];

    #[test]
    fn a_list_has_a_head_and_options() {
        let (head, options) = list("wlan0, cost=2,standby", KEYS).unwrap();
        assert_eq!(head, "wlan0");
        assert_eq!(options, [("cost", "2"), ("standby", "")]);
        assert_eq!(list("", KEYS).unwrap(), ("", Vec::new()));
    }

    #[test]
    fn what_no_option_is_is_refused() {
        for (text, reason) in [
            ("a,cost", "option `cost` needs a value: `cost=...`"),
            ("a,cost=", "option `cost` needs a value: `cost=...`"),
            ("a,standby=yes", "option `standby` takes no value"),
            ("a,standby,standby", "option `standby` is given twice"),
            ("a,stanby", "unknown option `stanby`"),
        ] {
            assert_eq!(list(text, KEYS).unwrap_err().message, reason, "{text}");
        }
        let hint = list("a,stanby", KEYS).unwrap_err().hint;
        assert_eq!(hint.as_deref(), Some("did you mean the option `standby`?"));
    }
}
