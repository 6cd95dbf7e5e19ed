//! The messages and their bytes. Numbers are big-endian.
//!
//! ```text
//! message = length (2, of all that follows) | version (2) | kind (1) | body
//! New     = 0x01 | path (8) | parameters (all that is left)
//! Join    = 0x02 | path (8) | session (16) | proof (32)
//! Accept  = 0x11 | session (16) | parameters (all that is left)
//! Refuse  = 0x12 | code (2) | reason (UTF-8, all that is left)
//! ```
//!
//! `length`, `version`, `kind` and the whole of Refuse are the same in every version, so that
//! both ends can always say which version the other one speaks.

use bytes::Bytes;
use marline_proto::wire::{self, PathId, varint};

use super::super::{cut, printable};
use super::proof::Proof;
use super::session_id::SessionId;

/// The version of Marline's protocol that this code speaks: of the handshake and of the session.
pub const VERSION: u16 = wire::VERSION as u16;

/// Longest message (bytes) after its length field.
pub const MAX_MESSAGE: usize = 4096;

/// Longest transport parameters (bytes).
pub const MAX_PARAMS: usize = 2048;

/// Longest reason of a refusal (bytes); more is cut off between two characters.
pub const MAX_REASON: usize = 512;

const NEW: u8 = 0x01;
const JOIN: u8 = 0x02;
const ACCEPT: u8 = 0x11;
const REFUSE: u8 = 0x12;

/// What a client asks for on a new carrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hello {
    /// A new session, with this carrier as its first path.
    New {
        /// The client's number for the path.
        path: PathId,
        /// The client's transport parameters, opaque here, at most [`MAX_PARAMS`] bytes.
        params: Bytes,
    },
    /// One more path of a session.
    Join {
        /// The client's number for the path, never used before in this session.
        path: PathId,
        /// The session.
        session: SessionId,
        /// That this client opened the session.
        proof: Proof,
    },
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The carrier is a path of this session from now on.
    Accept {
        /// The session.
        session: SessionId,
        /// The server's transport parameters, opaque here; empty for a path that joins.
        params: Bytes,
    },
    /// It is not, and the carrier ends.
    Refuse {
        /// Why, for programs.
        code: RefuseCode,
        /// Why, in words.
        reason: String,
    },
}

/// Why a server refuses, for programs. The numbers are fixed for all versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefuseCode {
    /// The server does not list the client's key.
    UnknownClient,
    /// The versions differ.
    Version,
    /// There is no such session: it has ended, or the server was restarted. Start a new one.
    UnknownSession,
    /// The proof does not fit the session, the connection, the path or the client's key.
    Proof,
    /// The path's number was used before.
    Path,
    /// The server has as many sessions or paths as it takes.
    Full,
    /// The server could not read the message.
    Malformed,
    /// The transport parameters are not acceptable.
    Params,
    /// The server is about to stop.
    Stopping,
    /// A number that this version does not know.
    Other(u16),
}

/// Numbers of the codes, which are also those of the carrier's close.
const CODES: [(RefuseCode, u16); 9] = [
    (RefuseCode::UnknownClient, 0x100),
    (RefuseCode::Version, 0x101),
    (RefuseCode::UnknownSession, 0x102),
    (RefuseCode::Proof, 0x103),
    (RefuseCode::Path, 0x104),
    (RefuseCode::Full, 0x105),
    (RefuseCode::Malformed, 0x106),
    (RefuseCode::Params, 0x107),
    (RefuseCode::Stopping, 0x108),
];

impl RefuseCode {
    /// The code's number.
    pub fn number(self) -> u16 {
        match self {
            Self::Other(number) => number,
            known => CODES
                .iter()
                .find(|(code, _)| *code == known)
                .map_or(0, |(_, number)| *number),
        }
    }

    /// The code of a number.
    pub fn from_number(number: u16) -> Self {
        CODES
            .iter()
            .find(|(_, known)| *known == number)
            .map_or(Self::Other(number), |(code, _)| *code)
    }
}

/// Why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Another version, of which only this much can be read.
    #[error("the peer speaks Marline protocol {theirs}, this end {VERSION}")]
    Version {
        /// The peer's version.
        theirs: u16,
    },
    /// It ends within a field.
    #[error("the message ends within its {field}")]
    Truncated {
        /// The field.
        field: &'static str,
    },
    /// A field is longer than it may be.
    #[error("the message's {field} has {len} bytes, {max} are the most")]
    TooLong {
        /// The field.
        field: &'static str,
        /// Its bytes.
        len: usize,
        /// How many are allowed.
        max: usize,
    },
    /// No message of this end's peer has this kind.
    #[error("the message is of an unknown kind, {kind:#04x}")]
    Kind {
        /// The kind.
        kind: u8,
    },
    /// The path's number is larger than a number of a path can be.
    #[error("the path's number, {0}, is larger than 2^62 - 1")]
    Path(u64),
    /// Bytes are left over.
    #[error("{0} bytes follow the message's end")]
    Trailing(usize),
}

impl Hello {
    /// The message's bytes with its length field. Parameters past [`MAX_PARAMS`] are an error of
    /// the caller that the peer would refuse.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_as(VERSION)
    }

    /// The message as an end of another version would write it; for tests.
    pub fn encode_as(&self, version: u16) -> Vec<u8> {
        match self {
            Self::New { path, params } => message(version, NEW, &[&path.0.to_be_bytes(), params]),
            Self::Join {
                path,
                session,
                proof,
            } => message(
                version,
                JOIN,
                &[&path.0.to_be_bytes(), &session.0, proof.as_bytes()],
            ),
        }
    }

    /// Reads a message without its length field.
    ///
    /// # Errors
    /// Any bytes that are not exactly a Hello of this version.
    pub fn decode(bytes: &Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let version = u16::from_be_bytes(reader.array("version")?);
        if version != VERSION {
            return Err(DecodeError::Version { theirs: version });
        }
        let [kind] = reader.array("kind")?;
        match kind {
            NEW => Ok(Self::New {
                path: reader.path()?,
                params: reader.params(bytes)?,
            }),
            JOIN => {
                let hello = Self::Join {
                    path: reader.path()?,
                    session: SessionId(reader.array("session")?),
                    proof: Proof::from_bytes(reader.array("proof")?),
                };
                reader.end()?;
                Ok(hello)
            }
            kind => Err(DecodeError::Kind { kind }),
        }
    }
}

impl Reply {
    /// The message's bytes with its length field.
    pub fn encode(&self) -> Vec<u8> {
        self.encode_as(VERSION)
    }

    /// The message as an end of another version would write it; for tests.
    pub fn encode_as(&self, version: u16) -> Vec<u8> {
        match self {
            Self::Accept { session, params } => message(version, ACCEPT, &[&session.0, params]),
            Self::Refuse { code, reason } => message(
                version,
                REFUSE,
                &[
                    &code.number().to_be_bytes(),
                    cut(reason, MAX_REASON).as_bytes(),
                ],
            ),
        }
    }

    /// Reads a message without its length field, with the version of its sender: a Refuse is
    /// read whatever that is.
    ///
    /// # Errors
    /// Any bytes that are not exactly a Reply.
    pub fn decode(bytes: &Bytes) -> Result<(u16, Self), DecodeError> {
        let mut reader = Reader::new(bytes);
        let version = u16::from_be_bytes(reader.array("version")?);
        let [kind] = reader.array("kind")?;
        let reply = match kind {
            REFUSE => Self::Refuse {
                code: RefuseCode::from_number(u16::from_be_bytes(reader.array("code")?)),
                reason: printable(reader.bounded("reason", MAX_REASON)?, MAX_REASON),
            },
            _ if version != VERSION => return Err(DecodeError::Version { theirs: version }),
            ACCEPT => Self::Accept {
                session: SessionId(reader.array("session")?),
                params: reader.params(bytes)?,
            },
            kind => return Err(DecodeError::Kind { kind }),
        };
        Ok((version, reply))
    }
}

fn message(version: u16, kind: u8, fields: &[&[u8]]) -> Vec<u8> {
    let body: usize = fields.iter().map(|field| field.len()).sum();
    // The length wraps only for a caller that broke the bound, whose message is then refused.
    let length = (3 + body) as u16;
    let mut out = Vec::with_capacity(5 + body);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&version.to_be_bytes());
    out.push(kind);
    fields.iter().for_each(|field| out.extend_from_slice(field));
    out
}

/// What is left of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn new(bytes: &'a Bytes) -> Self {
        Self(bytes)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let (head, rest) = self
            .0
            .split_first_chunk::<N>()
            .ok_or(DecodeError::Truncated { field })?;
        self.0 = rest;
        Ok(*head)
    }

    fn path(&mut self) -> Result<PathId, DecodeError> {
        match u64::from_be_bytes(self.array("path")?) {
            path if path <= varint::MAX => Ok(PathId(path)),
            path => Err(DecodeError::Path(path)),
        }
    }

    /// All that is left, if that is not too much.
    fn bounded(&mut self, field: &'static str, max: usize) -> Result<&'a [u8], DecodeError> {
        match self.0.len() {
            len if len > max => Err(DecodeError::TooLong { field, len, max }),
            _ => Ok(std::mem::take(&mut self.0)),
        }
    }

    fn params(&mut self, message: &Bytes) -> Result<Bytes, DecodeError> {
        let params = self.bounded("parameters", MAX_PARAMS)?;
        Ok(message.slice_ref(params))
    }

    fn end(self) -> Result<(), DecodeError> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing(left)),
        }
    }
}

#[cfg(test)]
mod tests;
