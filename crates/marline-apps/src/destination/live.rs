//! The name by which a client's live entry finds the server's:
//!
//! ```text
//! version (1) = 2 | name (1 to 32)
//! ```

use bytes::Bytes;
use marline_base::text::Problem;
use std::fmt;
use std::str::FromStr;

pub(super) const VERSION: u8 = 2;
const LONGEST: usize = 32;

/// What a live entry is called: 1 to 32 lower-case letters, digits and `._-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LiveName(String);

impl Default for LiveName {
    /// Of an entry that is given none.
    fn default() -> Self {
        LiveName("live".to_owned())
    }
}

impl LiveName {
    /// The bytes that open a flow.
    pub fn encode(&self) -> Bytes {
        [&[VERSION], self.0.as_bytes()].concat().into()
    }

    /// Reads what [`encode`](Self::encode) wrote; `None` for everything else.
    pub fn decode(bytes: &[u8]) -> Option<LiveName> {
        let (&VERSION, name) = bytes.split_first()? else {
            return None;
        };
        std::str::from_utf8(name).ok()?.parse().ok()
    }
}

impl fmt::Display for LiveName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for LiveName {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let plain = |c: u8| matches!(c, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
        if (1..=LONGEST).contains(&text.len()) && text.bytes().all(plain) {
            Ok(LiveName(text.to_owned()))
        } else {
            let wrong = Problem::new(format!("name `{text}` is not usable"));
            Err(wrong.hint(format!(
                "use 1 to {LONGEST} lower-case letters, digits or ._-"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Target;
    use super::*;

    #[test]
    fn a_name_opens_a_flow_and_is_no_target() {
        let name: LiveName = "cam-2".parse().unwrap();
        assert_eq!(&name.encode()[..], b"\x02cam-2");
        assert_eq!(LiveName::decode(&name.encode()), Some(name.clone()));
        assert!(Target::decode(&name.encode()).is_err());
        for wrong in [&b""[..], b"\x02", b"\x01cam", b"\x02Cam", b"\x02c\xff"] {
            assert_eq!(LiveName::decode(wrong), None, "{wrong:?}");
        }
        let long = [2; 34];
        assert_eq!(LiveName::decode(&long), None);
    }
}
