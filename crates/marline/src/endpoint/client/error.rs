//! Why no session came up.

use std::fmt;
use std::time::Duration;

use crate::carrier::handshake::RefuseCode;
use crate::carrier::{DialError, SocketError};
use crate::identity::PublicKey;

/// Why a path could not be dialled, in words, and whether trying again may help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathFailure {
    /// What is wrong, and where.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// What kind of failure it is.
    pub kind: FailureKind,
}

/// What a failure means for trying again; of several, the greatest says most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FailureKind {
    /// This host has no way to the server by the path's interface or address now.
    NoRoute,
    /// This host does not have the address, or its interface has none of the server's family.
    NoAddress,
    /// This host has no such interface now.
    NoInterface,
    /// The server's name cannot be looked up now.
    NoName,
    /// Nobody answers, or what answers cannot go on now; it may later.
    Passing,
    /// The configuration does not fit: source and server of different families, a congestion
    /// control that this system does not have.
    Configuration,
    /// What answers over this path is another server than the one that is meant.
    WrongServer,
    /// The server that is meant will not have this client, over whichever path.
    Refused,
}

impl FailureKind {
    /// May it heal by itself, as when a modem is plugged in or a network comes up?
    pub const fn may_heal(self) -> bool {
        match self {
            Self::NoRoute | Self::NoAddress | Self::NoInterface | Self::NoName | Self::Passing => {
                true
            }
            Self::Configuration | Self::WrongServer | Self::Refused => false,
        }
    }
}

impl PathFailure {
    pub(super) fn passing(message: String) -> Self {
        Self {
            message,
            hint: None,
            kind: FailureKind::Passing,
        }
    }

    pub(super) fn of(error: &DialError, client: PublicKey) -> Self {
        if let DialError::Neither { quic, tcp } = error {
            let (quic, tcp) = (Self::of(quic, client), Self::of(tcp, client));
            let worse = if tcp.kind > quic.kind { tcp } else { quic };
            return Self {
                message: error.to_string(),
                ..worse
            };
        }
        let kind = match error {
            DialError::Socket(SocketError::BadInterface { .. } | SocketError::NoneFits { .. }) => {
                FailureKind::NoInterface
            }
            DialError::Socket(SocketError::NotLocal { .. } | SocketError::NoAddress { .. }) => {
                FailureKind::NoAddress
            }
            DialError::Socket(SocketError::NoRoute { .. }) => FailureKind::NoRoute,
            DialError::Socket(SocketError::Family { .. } | SocketError::Congestion { .. })
            | DialError::Config(_)
            | DialError::Tls(_)
            | DialError::Params { .. } => FailureKind::Configuration,
            DialError::WrongKey { .. } => FailureKind::WrongServer,
            DialError::Version { .. }
            | DialError::Malformed { .. }
            | DialError::Refused {
                code:
                    RefuseCode::UnknownClient
                    | RefuseCode::Version
                    | RefuseCode::Malformed
                    | RefuseCode::Params,
                ..
            } => FailureKind::Refused,
            // Other refusals are of a session that is over, or of a server that may have room
            // later. What is no Marline server may be a captive portal in its place.
            _ => FailureKind::Passing,
        };
        let hint = match error {
            DialError::Refused {
                code: RefuseCode::UnknownClient,
                ..
            } => Some(format!(
                "start the server with `--allow-client {client}`, or add that key to its \
                 `--allow-clients-file` and send it SIGHUP"
            )),
            DialError::Socket(
                SocketError::BadInterface { .. }
                | SocketError::NoneFits { .. }
                | SocketError::NotLocal { .. },
            ) => Some("it is dialled when that comes; or correct the path".to_owned()),
            DialError::Socket(SocketError::Congestion { .. }) => {
                Some("correct `tcp-cc=` of that path".to_owned())
            }
            _ => None,
        };
        Self {
            message: error.to_string(),
            hint,
            kind,
        }
    }
}

/// There is no session at present: why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no session with the server: {0}")]
pub struct NoSession(pub String);

/// No session with the server came up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectError {
    /// Each path's name with why it failed; `None` while it is still being dialled.
    pub paths: Vec<(String, Option<PathFailure>)>,
    /// How long was tried.
    pub after: Duration,
}

impl ConnectError {
    /// The failure that says most: a refusal before a wrong configuration before the rest.
    pub fn worst(&self) -> Option<&PathFailure> {
        let failures = self
            .paths
            .iter()
            .filter_map(|(_, failure)| failure.as_ref());
        failures.max_by_key(|failure| failure.kind)
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.worst()?.hint.as_deref()
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |failure: &Option<PathFailure>| match failure {
            Some(failure) => failure.message.clone(),
            None => format!("no answer within {:.1} s", self.after.as_secs_f64()),
        };
        match &self.paths[..] {
            [] => f.write_str("no session with the server: there is no path to dial"),
            [(name, failure)] => write!(
                f,
                "no session with the server: path {name}: {}",
                words(failure)
            ),
            paths => {
                f.write_str("no session with the server over any path")?;
                for (name, failure) in paths {
                    write!(f, "\n  path {name}: {}", words(failure))?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ConnectError {}
