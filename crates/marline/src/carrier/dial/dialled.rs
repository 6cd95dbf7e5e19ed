//! A connection before it belongs to a session.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use marline_proto::wire::PathId;
use tokio::time::{Instant, timeout_at};

use super::error::{DialError, ended};
use crate::carrier::handshake::{
    self, DecodeError, ExchangeError, Hello, MAX_PARAMS, RefuseCode, Reply, SessionKey, VERSION,
};
use crate::carrier::link::{Link, PathCarrier, QuicLink};
use crate::carrier::{CarrierEnd, CarrierKind, TcpCarrier};
use crate::identity::PublicKey;

/// A connection whose two ends have proved their keys, and which belongs to no session yet. The
/// server waits for what follows only as long as its own handshake time-out.
pub struct Dialled {
    pub(in super::super) link: Link,
    pub(super) client: PublicKey,
    pub(super) remote: SocketAddr,
    pub(in super::super) timeout: Duration,
}

/// A new session, with its first path.
#[derive(Debug)]
pub struct Opened {
    /// The path's carrier.
    pub carrier: PathCarrier,
    /// The session's name and what further paths join it by.
    pub key: SessionKey,
    /// The server's transport parameters.
    pub params: Bytes,
}

impl Dialled {
    /// What the connection runs over.
    pub const fn kind(&self) -> CarrierKind {
        match &self.link {
            Link::Quic(_) => CarrierKind::Quic,
            Link::Tcp(_) => CarrierKind::Tcp,
        }
    }

    /// Opens a new session with this connection as its first path. The server's session may send
    /// datagrams at once.
    ///
    /// # Errors
    /// The server refuses, ends the connection, is silent, or answers nonsense.
    pub async fn open(mut self, path: PathId, params: Bytes) -> Result<Opened, DialError> {
        if params.len() > MAX_PARAMS {
            return Err(DialError::Params { len: params.len() });
        }
        let (session, params) = self.ask(&Hello::New { path, params }).await?;
        let export = self.link.exported(session);
        let key = match export {
            Some(export) => SessionKey::new(session, self.client, &export),
            None => return Err(self.malformed("no key can be exported")),
        };
        Ok(Opened {
            carrier: self.carrier()?,
            key,
            params,
        })
    }

    /// Adds this connection to a session as path `path`, a number that the session never had.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`RefuseCode::UnknownSession`] says that the session is no more.
    pub async fn join(mut self, key: &SessionKey, path: PathId) -> Result<PathCarrier, DialError> {
        let session = key.session();
        let Some(export) = self.link.exported(session) else {
            return Err(self.malformed("no key can be exported"));
        };
        let proof = key.prove(&export, path);
        let (answered, _) = self
            .ask(&Hello::Join {
                path,
                session,
                proof,
            })
            .await?;
        if answered != session {
            return Err(self.malformed("it accepted the path into another session"));
        }
        self.carrier()
    }

    fn carrier(self) -> Result<PathCarrier, DialError> {
        match self.link {
            Link::Tcp(link) => Ok(PathCarrier::Tcp(TcpCarrier::new(*link, &[]))),
            Link::Quic(link) => {
                let carrier = link.into_carrier().map(PathCarrier::Quic);
                carrier.ok_or(DialError::NotMarline {
                    addr: self.remote,
                    detail: "it takes no datagrams".into(),
                })
            }
        }
    }

    fn malformed(&self, detail: &str) -> DialError {
        DialError::Malformed {
            addr: self.remote,
            detail: detail.into(),
        }
    }

    /// Says Hello and reads the answer.
    async fn ask(&mut self, hello: &Hello) -> Result<(handshake::SessionId, Bytes), DialError> {
        let (remote, limit) = (self.remote, Instant::now() + self.timeout);
        let message = timeout_at(limit, self.exchange(&hello.encode()))
            .await
            .map_err(|_| DialError::Silent {
                addr: remote,
                after: self.timeout,
            })??;
        self.read(&message)
    }

    /// Says these bytes and reads the message that answers them.
    async fn exchange(&mut self, words: &[u8]) -> Result<Bytes, DialError> {
        let addr = self.remote;
        let malformed = |error: ExchangeError| DialError::Malformed {
            addr,
            detail: error.to_string(),
        };
        match &mut self.link {
            Link::Quic(QuicLink { connection, .. }) => {
                let (mut send, mut recv) = connection
                    .open_bi()
                    .await
                    .map_err(|error| ended(addr, error))?;
                let answer = async {
                    handshake::send(&mut send, words).await?;
                    // The stream has no more to say.
                    send.finish();
                    handshake::receive(&mut recv).await
                };
                let failed = |error| match connection.close_reason() {
                    Some(reason) => ended(addr, reason),
                    None => malformed(error),
                };
                answer.await.map_err(failed)
            }
            Link::Tcp(link) => {
                let answer = async {
                    handshake::send(&mut link.stream, words).await?;
                    handshake::receive(&mut link.stream).await
                };
                answer.await.map_err(|error| match error {
                    ExchangeError::Io(_) => DialError::Ended {
                        addr,
                        end: CarrierEnd::Reset,
                    },
                    too_long => malformed(too_long),
                })
            }
        }
    }

    fn read(&self, message: &Bytes) -> Result<(handshake::SessionId, Bytes), DialError> {
        match Reply::decode(message) {
            Ok((_, Reply::Accept { session, params })) => Ok((session, params)),
            Ok((
                theirs,
                Reply::Refuse {
                    code: RefuseCode::Version,
                    ..
                },
            ))
            | Err(DecodeError::Version { theirs }) => Err(DialError::Version {
                addr: self.remote,
                ours: VERSION,
                theirs,
            }),
            Ok((_, Reply::Refuse { code, reason })) => Err(DialError::Refused {
                addr: self.remote,
                code,
                reason,
            }),
            Err(error) => Err(self.malformed(&error.to_string())),
        }
    }
}

impl fmt::Debug for Dialled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialled")
            .field("link", &self.link)
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}
