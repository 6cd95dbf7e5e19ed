use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use bytes::BytesMut;
use marline_proto::wire::PathId;
use quinn_proto::VarInt;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::time::timeout;

use super::handshake::{
    self, Exported, MAX_PARAMS, Proof, RefuseCode, Reply, SessionId, SessionKey, WrongProof,
};
use super::link::{PathCarrier, QuicLink};
use super::quic::{SendStream, exported, remote_addr};
use super::strangers::Place;
use super::tcp::{LINGER, TcpCarrier, TcpLink, farewell};
use super::{MAX_CLOSE_REASON, cut};
use crate::identity::PublicKey;

/// A client with a listed key that asks for something. Dropping it without an answer closes the
/// connection.
#[derive(Debug)]
pub enum Attempt {
    /// It asks for a new session.
    New(NewAttempt),
    /// It asks to add a path to a session.
    Join(JoinAttempt),
}

/// A client that asks for a new session.
#[derive(Debug)]
pub struct NewAttempt {
    pub(super) pending: Pending,
    pub(super) path: PathId,
    pub(super) params: Bytes,
}

/// A client that asks to add a path to a session.
pub struct JoinAttempt {
    pub(super) pending: Pending,
    pub(super) path: PathId,
    pub(super) session: SessionId,
    pub(super) proof: Proof,
    pub(super) export: Exported,
}

/// Why an attempt could not be accepted. The client was informed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcceptError {
    /// The proof is not of this session, connection, path number and client.
    #[error("path {path} may not join session {session}: {source}")]
    Proof {
        /// The path that was to join.
        path: PathId,
        /// The session.
        session: SessionId,
        /// Why not.
        source: WrongProof,
    },
    /// The client's QUIC takes no datagrams.
    #[error("the client takes no datagrams")]
    NoDatagrams,
    /// The operating system or TLS gave no secret to make a session of.
    #[error("no secret could be made for the session")]
    NoSecret,
    /// The transport parameters are longer than a message carries.
    #[error("{len} bytes of transport parameters are more than the {MAX_PARAMS} that fit")]
    Params {
        /// Their length.
        len: usize,
    },
}

impl Attempt {
    /// The client's key, which it has proved.
    pub const fn peer(&self) -> PublicKey {
        match self {
            Self::New(attempt) => attempt.pending.peer,
            Self::Join(attempt) => attempt.pending.peer,
        }
    }

    /// The client's address.
    pub fn remote_addr(&self) -> SocketAddr {
        match self {
            Self::New(attempt) => attempt.pending.remote_addr(),
            Self::Join(attempt) => attempt.pending.remote_addr(),
        }
    }

    /// Refuses. The client gets the code, and the reason as words to show.
    pub fn refuse(self, code: RefuseCode, reason: impl Into<String>) {
        match self {
            Self::New(attempt) => attempt.refuse(code, reason),
            Self::Join(attempt) => attempt.refuse(code, reason),
        }
    }
}

impl NewAttempt {
    /// The client's key, which it has proved.
    pub const fn peer(&self) -> PublicKey {
        self.pending.peer
    }

    /// The client's number for the session's first path.
    pub const fn path(&self) -> PathId {
        self.path
    }

    /// The client's transport parameters, at most [`MAX_PARAMS`] bytes and not looked at.
    pub const fn params(&self) -> &Bytes {
        &self.params
    }

    /// Which of [`ListenConfig::workers`](super::ListenConfig::workers) reads the packets of its
    /// connection: a session is cheapest on the same thread. 0 over TCP.
    pub const fn worker(&self) -> usize {
        self.pending.worker
    }

    /// Makes the session: gives it a name and a key, and sends the client our transport
    /// parameters. Does not wait for the client.
    ///
    /// # Errors
    /// The session cannot be made; the client is informed.
    pub fn accept(self, params: Bytes) -> Result<(PathCarrier, SessionKey), AcceptError> {
        if params.len() > MAX_PARAMS {
            let len = params.len();
            self.refuse(RefuseCode::Params, "the server's parameters are too long");
            return Err(AcceptError::Params { len });
        }
        let mut id = [0; 16];
        let session = SystemRandom::new().fill(&mut id).map(|()| SessionId(id));
        let key = session.ok().and_then(|session| {
            let export = self.pending.exported(session)?;
            Some(SessionKey::new(session, self.pending.peer, &export))
        });
        let Some(key) = key else {
            self.refuse(RefuseCode::Other(0), "the server could not make a secret");
            return Err(AcceptError::NoSecret);
        };
        let carrier = self.pending.accept(key.session(), params)?;
        Ok((carrier, key))
    }

    /// Refuses. The client gets the code, and the reason as words to show.
    pub fn refuse(self, code: RefuseCode, reason: impl Into<String>) {
        self.pending.refuse(code, reason.into());
    }
}

impl JoinAttempt {
    /// The client's key, which it has proved.
    pub const fn peer(&self) -> PublicKey {
        self.pending.peer
    }

    /// The client's number for the path.
    pub const fn path(&self) -> PathId {
        self.path
    }

    /// The session that the path is to join. Refuse with [`RefuseCode::UnknownSession`] when
    /// there is none of this name.
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// Checks that the client opened the session with this key, and adds the path to it. Does not
    /// wait for the client.
    ///
    /// # Errors
    /// The proof or the client's key is not the session's; the client is informed.
    pub fn accept(self, key: &SessionKey) -> Result<PathCarrier, AcceptError> {
        let checked = match self.session == key.session() {
            true => key.check(&self.export, self.path, self.pending.peer, &self.proof),
            false => Err(WrongProof),
        };
        if let Err(source) = checked {
            let (path, session) = (self.path, self.session);
            self.refuse(
                RefuseCode::Proof,
                "the proof that this path belongs to the session is wrong",
            );
            return Err(AcceptError::Proof {
                path,
                session,
                source,
            });
        }
        self.pending.accept(key.session(), Bytes::new())
    }

    /// Refuses. The client gets the code, and the reason as words to show.
    pub fn refuse(self, code: RefuseCode, reason: impl Into<String>) {
        self.pending.refuse(code, reason.into());
    }
}

/// A connection that waits for an answer.
pub(super) struct Pending {
    pub(super) asked: Asked,
    pub(super) peer: PublicKey,
    pub(super) limit: Duration,
    /// Counts it as half open until it is let in, or gone.
    pub(super) place: Arc<Place>,
    /// The number of the worker that reads its packets.
    pub(super) worker: usize,
}

/// Where it was asked, and where the answer goes.
pub(super) enum Asked {
    Quic(QuicLink, SendStream),
    Tcp(Box<TcpLink>),
}

impl Pending {
    pub(super) fn exported(&self, session: SessionId) -> Option<Exported> {
        match &self.asked {
            Asked::Quic(link, _) => exported(&link.connection, session),
            Asked::Tcp(link) => link.exported(session),
        }
    }

    fn remote_addr(&self) -> SocketAddr {
        match &self.asked {
            Asked::Quic(link, _) => remote_addr(&link.connection),
            Asked::Tcp(link) => link.remote,
        }
    }

    fn accept(self, session: SessionId, params: Bytes) -> Result<PathCarrier, AcceptError> {
        let reply = Reply::Accept { session, params };
        let (link, mut send) = match self.asked {
            // Its first bytes, which the session's datagrams follow.
            Asked::Tcp(mut link) => {
                self.place.let_in();
                link.place = Some(self.place);
                let carrier = TcpCarrier::new(*link, &reply.encode());
                return Ok(PathCarrier::Tcp(carrier));
            }
            Asked::Quic(link, send) => (link, send),
        };
        let connection = link.connection.clone();
        let Some(carrier) = link.clone().into_carrier() else {
            let reason = "the client takes no datagrams".to_owned();
            refuse_quic(link, send, &self.place, RefuseCode::Other(0), reason);
            return Err(AcceptError::NoDatagrams);
        };
        self.place.let_in();
        // A task, since a client may give the stream no credit and let us wait.
        tokio::spawn(async move {
            if !answer(&mut send, self.limit, &reply).await {
                let reason = b"the answer to the handshake was not taken";
                connection.close(VarInt::from_u32(0), reason);
            }
        });
        Ok(PathCarrier::Quic(carrier))
    }

    /// Refuses, leaving a task that lingers until the client has taken that, if it may.
    pub(super) fn refuse(self, code: RefuseCode, reason: String) {
        match self.asked {
            Asked::Quic(link, send) => refuse_quic(link, send, &self.place, code, reason),
            Asked::Tcp(link) => {
                let lingers = self.place.lingers();
                let linger = lingers.as_ref().map_or(Duration::ZERO, |_| LINGER);
                let reply = Reply::Refuse { code, reason }.encode();
                let left = farewell(link.stream, BytesMut::from(&reply[..]), linger);
                if let Some(left) = left {
                    let place = self.place;
                    tokio::spawn(async move {
                        // It ends in time, or with the runtime.
                        let _ = left.await;
                        drop((lingers, place));
                    });
                }
            }
        }
    }
}

fn refuse_quic(
    link: QuicLink,
    mut send: SendStream,
    place: &Arc<Place>,
    code: RefuseCode,
    reason: String,
) {
    let connection = link.connection;
    let close = cut(&reason, MAX_CLOSE_REASON).to_owned();
    let number = VarInt::from_u32(code.number().into());
    let Some(lingers) = place.lingers() else {
        connection.close(number, close.as_bytes());
        return;
    };
    let place = Arc::clone(place);
    tokio::spawn(async move {
        let refusal = Reply::Refuse { code, reason };
        let taken = timeout(LINGER, async {
            answer(&mut send, LINGER, &refusal).await;
            connection.closed().await;
        });
        tokio::select! {
            _ = taken => {}
            () = place.gives_way() => {}
        }
        connection.close(number, close.as_bytes());
        drop(lingers);
    });
}

/// Sends the answer; false when it could not be handed to the connection in time.
async fn answer(send: &mut SendStream, limit: Duration, reply: &Reply) -> bool {
    let sent = timeout(limit, handshake::send(send, &reply.encode())).await;
    // The stream has no more to say.
    send.finish();
    matches!(sent, Ok(Ok(())))
}

impl fmt::Debug for JoinAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinAttempt")
            .field("pending", &self.pending)
            .field("path", &self.path)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("remote", &self.remote_addr())
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}
