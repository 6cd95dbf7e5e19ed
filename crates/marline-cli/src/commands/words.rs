//! The words of the command line, before they are understood.

use std::ffi::OsString;

/// `words`, where a number below zero is one with the flag before it: `--latency=-5ms` for
/// `--latency -5ms`. No flag begins with one dash and a digit, and so the error is about the flag
/// and its value rather than about a flag `-5`.
pub(super) fn joined(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    let mut flags = true;
    for word in words {
        flags &= word != "--";
        match joined.last_mut() {
            Some(last) if flags && below_zero(&word) && wants_value(last) => {
                last.push("=");
                last.push(word);
            }
            _ => joined.push(word),
        }
    }
    joined
}

fn below_zero(word: &OsString) -> bool {
    let mut bytes = word.as_encoded_bytes().iter();
    bytes.next() == Some(&b'-')
        && bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.')
}

fn wants_value(word: &OsString) -> bool {
    let bytes = word.as_encoded_bytes();
    bytes.starts_with(b"--") && !bytes.contains(&b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_below_zero_is_its_flags() {
        for (line, expected) in [
            (
                "marline link --loss -1% --to h",
                "marline link --loss=-1% --to h",
            ),
            (
                "marline sim --at -.5 --seed -3 -4",
                "marline sim --at=-.5 --seed=-3 -4",
            ),
            ("marline live target -5mbps", "marline live target -5mbps"),
            ("marline --log -v -h", "marline --log -v -h"),
            ("marline x -- --at -5", "marline x -- --at -5"),
        ] {
            let words = line.split(' ').map(OsString::from);
            let found: Vec<String> = joined(words)
                .into_iter()
                .map(|word| word.into_string().unwrap())
                .collect();
            assert_eq!(found.join(" "), expected);
        }
    }
}
