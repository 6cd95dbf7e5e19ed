//! The control socket's language: one JSON object a line, each with the version of the language.

use super::status::Status;
use crate::recording::Part;
use serde::{Deserialize, Serialize};

/// Version of the language. It rises when an old program would misunderstand a new one.
pub const VERSION: u32 = 1;

/// Longest accepted line, bytes, the line end included.
pub const MAX_REQUEST: usize = 4096;

/// A line from `marline status` or `marline paths`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// [`VERSION`] of the program that wrote it.
    pub version: u32,
    /// What is asked.
    #[serde(flatten)]
    pub request: Request,
}

/// What can be asked of a running Marline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case")]
pub enum Request {
    /// A snapshot of everything.
    Status,
    /// Adds a path, written as `--path` takes it.
    PathsAdd {
        /// `LOCAL[,option...]`.
        path: String,
    },
    /// Removes a path.
    PathsRemove {
        /// Its name or number.
        path: String,
    },
    /// Puts a path on standby or calls it back.
    PathsStandby {
        /// Its name or number.
        path: String,
        /// `true` for standby, `false` for use.
        standby: bool,
    },
    /// Gives a live entry another target rate.
    LiveTarget {
        /// Its name; `None` for the only one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        live: Option<String>,
        /// The rate, written as `--target` takes it, or `auto`.
        target: String,
    },
    /// What was recorded of the paths; the first to ask begins it.
    Record {
        /// Windows from this time on (ms), as the last answer said; `None` for those to come.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since_ms: Option<u64>,
        /// Those that are not whole yet, too.
        all: bool,
    },
    /// Reads the configuration again, as SIGHUP does.
    Reload,
    /// Stops gracefully, as the first SIGTERM does.
    Stop,
}

/// The answer to one request, a line too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Reply {
    /// [`VERSION`] of the program that wrote it.
    pub version: u32,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// The snapshot that was asked for.
    Status {
        /// The snapshot.
        status: Box<Status>,
    },
    /// What was recorded of the paths.
    Recorded {
        /// The windows.
        #[serde(flatten)]
        part: Part,
    },
    /// Carried out.
    Done {
        /// What the result waits for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waits: Option<String>,
    },
    /// Refused or failed.
    Error {
        /// What is wrong.
        message: String,
        /// What to do about it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hint: Option<String>,
    },
}

impl Outcome {
    /// Carried out, with nothing to say about it.
    pub const DONE: Self = Self::Done { waits: None };
}

impl From<Outcome> for Reply {
    fn from(outcome: Outcome) -> Self {
        Reply {
            version: VERSION,
            outcome,
        }
    }
}

/// Reads one request line.
///
/// # Errors
/// What to report to the other side: not JSON, another version, an unknown request.
pub fn parse_request(line: &[u8]) -> Result<Request, String> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    // The version comes first: a newer program's request may not parse at all.
    let Version { version } =
        serde_json::from_slice(line).map_err(|error| format!("not a control request: {error}"))?;
    if version != VERSION {
        return Err(format!(
            "control version {version} was asked, this program speaks {VERSION}"
        ));
    }
    serde_json::from_slice::<Request>(line)
        .map_err(|error| format!("not a control request: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_are_the_documented_lines() {
        for (line, request) in [
            (r#"{"version":1,"request":"status"}"#, Request::Status),
            (
                r#"{"version":1,"request":"paths-add","path":"wlan0"}"#,
                Request::PathsAdd {
                    path: "wlan0".into(),
                },
            ),
            (
                r#"{"version":1,"request":"paths-standby","path":"1","standby":true}"#,
                Request::PathsStandby {
                    path: "1".into(),
                    standby: true,
                },
            ),
            (
                r#"{"version":1,"request":"live-target","live":"cam","target":"8mbit"}"#,
                Request::LiveTarget {
                    live: Some("cam".into()),
                    target: "8mbit".into(),
                },
            ),
            (
                r#"{"version":1,"request":"live-target","target":"auto"}"#,
                Request::LiveTarget {
                    live: None,
                    target: "auto".into(),
                },
            ),
            (
                r#"{"version":1,"request":"record","since_ms":40,"all":false}"#,
                Request::Record {
                    since_ms: Some(40),
                    all: false,
                },
            ),
            (r#"{"version":1,"request":"reload"}"#, Request::Reload),
            (r#"{"version":1,"request":"stop"}"#, Request::Stop),
        ] {
            assert_eq!(parse_request(line.as_bytes()).as_ref(), Ok(&request));
            let envelope = Envelope {
                version: VERSION,
                request,
            };
            assert_eq!(serde_json::to_string(&envelope).unwrap(), line);
        }
    }

    #[test]
    fn another_version_is_named_before_its_unknown_request() {
        let error = parse_request(br#"{"version":9,"request":"dance"}"#).unwrap_err();
        assert_eq!(error, "control version 9 was asked, this program speaks 1");
        assert!(
            parse_request(br#"{"version":1,"request":"dance"}"#)
                .unwrap_err()
                .contains("dance")
        );
        assert!(
            parse_request(br#"{"request":"status"}"#)
                .unwrap_err()
                .contains("version")
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_an_error(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_request(&line);
        }
    }
}
