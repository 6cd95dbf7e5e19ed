use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use marline_proto::wire::PathId;
use quinn::{
    ClientConfig, Connection, ConnectionError, Endpoint, TokioRuntime, TransportErrorCode,
};
use tokio::time::{Instant, timeout_at};

use super::handshake::{
    self, DecodeError, Hello, MAX_PARAMS, RefuseCode, Reply, SessionKey, VERSION,
};
use super::quic::{QuicCarrier, Side, exported};
use super::{CarrierEnd, ConfigError, QuicConfig, SocketError, SocketSpec, tls};
use crate::identity::{Identity, PublicKey};

/// How to reach a server over one path.
#[derive(Clone, Debug)]
pub struct Dial {
    /// The socket to do it from.
    pub socket: SocketSpec,
    /// The server's address.
    pub remote: SocketAddr,
    /// The server's key; nobody with another key is talked to.
    pub server: PublicKey,
    /// How the carrier behaves.
    pub quic: QuicConfig,
    /// Give up after so long, for each of [`connect`](Self::connect), [`Dialled::open`] and
    /// [`Dialled::join`]; default 10 s.
    pub timeout: Duration,
}

/// Why a server could not be reached, or did not let this client in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The socket cannot be opened.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Our own key or TLS set-up does not work.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
    /// Nobody answers.
    #[error(
        "no answer from {addr} within {:.1} s: is the server running, is UDP port {} open in its \
         firewall, and is the address right?",
        after.as_secs_f64(), addr.port()
    )]
    Unreachable {
        /// The server's address.
        addr: SocketAddr,
        /// How long was waited.
        after: Duration,
    },
    /// The server proved its key, and then did not answer.
    #[error(
        "the server at {addr} is there, but did not answer within {:.1} s; it may be overloaded",
        after.as_secs_f64()
    )]
    Silent {
        /// The server's address.
        addr: SocketAddr,
        /// How long was waited.
        after: Duration,
    },
    /// The server has another key than the one pinned.
    #[error(
        "the server at {addr} has the key {found}, but {expected} is expected: use the connection \
         string of this server, or find out who answers there"
    )]
    WrongKey {
        /// The server's address.
        addr: SocketAddr,
        /// The key pinned.
        expected: PublicKey,
        /// The key shown, which need not be proved to be held by who showed it.
        found: PublicKey,
    },
    /// Whoever answers speaks QUIC, but not Marline.
    #[error("what answers at {addr} is not a Marline server: {detail}")]
    NotMarline {
        /// The server's address.
        addr: SocketAddr,
        /// What went wrong.
        detail: String,
    },
    /// The server takes no connections for the moment.
    #[error("the server at {addr} is overloaded and takes no new connections; try again later")]
    Busy {
        /// The server's address.
        addr: SocketAddr,
    },
    /// The versions differ.
    #[error(
        "the server at {addr} speaks Marline protocol {theirs}, this client {ours}; update the {}",
        if theirs < ours { "server" } else { "client" }
    )]
    Version {
        /// The server's address.
        addr: SocketAddr,
        /// Our version.
        ours: u16,
        /// The server's.
        theirs: u16,
    },
    /// The server refuses.
    #[error("refused by the server at {addr}: {reason}")]
    Refused {
        /// The server's address.
        addr: SocketAddr,
        /// Why, for programs.
        code: RefuseCode,
        /// Why, in the server's words.
        reason: String,
    },
    /// The connection ended before the server had answered.
    #[error("the connection to {addr} ended before the server had answered: {end}")]
    Ended {
        /// The server's address.
        addr: SocketAddr,
        /// Why.
        end: CarrierEnd,
    },
    /// The server's answer cannot be read.
    #[error("the server at {addr} answered what cannot be read: {detail}")]
    Malformed {
        /// The server's address.
        addr: SocketAddr,
        /// What is wrong with it.
        detail: String,
    },
    /// The transport parameters are longer than a message carries.
    #[error("{len} bytes of transport parameters are more than the {MAX_PARAMS} that fit")]
    Params {
        /// Their length.
        len: usize,
    },
}

/// A connection whose two ends have proved their keys, and which belongs to no session yet. The
/// server waits for what follows only as long as its own handshake time-out.
pub struct Dialled {
    pub(super) connection: Connection,
    endpoint: Endpoint,
    source: IpAddr,
    client: PublicKey,
    remote: SocketAddr,
    pub(super) timeout: Duration,
}

/// A new session, with its first path.
#[derive(Debug)]
pub struct Opened {
    /// The path's carrier.
    pub carrier: QuicCarrier,
    /// The session's name and what further paths join it by.
    pub key: SessionKey,
    /// The server's transport parameters.
    pub params: Bytes,
}

impl Dial {
    /// A dial with defaults for all but the server's address and key.
    pub fn new(remote: SocketAddr, server: PublicKey) -> Self {
        Self {
            socket: SocketSpec::default(),
            remote,
            server,
            quic: QuicConfig::default(),
            timeout: Duration::from_secs(10),
        }
    }

    /// Opens a socket and connects, each end proving its key to the other. Needs a tokio runtime.
    ///
    /// # Errors
    /// Of the socket and configuration at once; of the network and server as they show.
    pub async fn connect(&self, identity: &Identity) -> Result<Dialled, DialError> {
        let seen = Arc::new(OnceLock::new());
        let crypto = tls::client(identity, self.server, Arc::clone(&seen))
            .map_err(|error| DialError::Tls(error.to_string()))?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(self.quic.transport()?);
        let path = self.socket.open(self.remote)?;
        let io = |source| SocketError::Io {
            bind: self.socket.bind.clone(),
            source,
        };
        let runtime = Arc::new(TokioRuntime);
        let endpoint =
            Endpoint::new(self.quic.endpoint(), None, path.socket, runtime).map_err(io)?;
        let connecting = endpoint
            .connect_with(config, self.remote, tls::SERVER_NAME)
            .map_err(|error| DialError::NotMarline {
                addr: self.remote,
                detail: error.to_string(),
            })?;
        let unreachable = DialError::Unreachable {
            addr: self.remote,
            after: self.timeout,
        };
        match timeout_at(Instant::now() + self.timeout, connecting).await {
            Ok(Ok(connection)) => Ok(Dialled {
                connection,
                endpoint,
                source: path.source,
                client: identity.public_key(),
                remote: self.remote,
                timeout: self.timeout,
            }),
            Err(_) | Ok(Err(ConnectionError::TimedOut)) => Err(unreachable),
            Ok(Err(error)) => Err(match seen.get() {
                Some(&found) if found != self.server => DialError::WrongKey {
                    addr: self.remote,
                    expected: self.server,
                    found,
                },
                _ => ended(self.remote, error),
            }),
        }
    }
}

impl Dialled {
    /// Opens a new session with this connection as its first path. The server's session may send
    /// datagrams at once.
    ///
    /// # Errors
    /// The server refuses, ends the connection, is silent, or answers nonsense.
    pub async fn open(self, path: PathId, params: Bytes) -> Result<Opened, DialError> {
        if params.len() > MAX_PARAMS {
            return Err(DialError::Params { len: params.len() });
        }
        let (session, params) = self.ask(&Hello::New { path, params }).await?;
        let export = exported(&self.connection, session);
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
    pub async fn join(self, key: &SessionKey, path: PathId) -> Result<QuicCarrier, DialError> {
        let session = key.session();
        let Some(export) = exported(&self.connection, session) else {
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

    fn carrier(self) -> Result<QuicCarrier, DialError> {
        let side = Side::Dialled(self.source);
        QuicCarrier::new(self.connection, self.endpoint, side).ok_or(DialError::NotMarline {
            addr: self.remote,
            detail: "it takes no datagrams".into(),
        })
    }

    fn malformed(&self, detail: &str) -> DialError {
        DialError::Malformed {
            addr: self.remote,
            detail: detail.into(),
        }
    }

    /// Says Hello and reads the answer.
    async fn ask(&self, hello: &Hello) -> Result<(handshake::SessionId, Bytes), DialError> {
        let exchange = async {
            let (mut send, mut recv) = self
                .connection
                .open_bi()
                .await
                .map_err(|error| ended(self.remote, error))?;
            let answer = async {
                handshake::send(&mut send, &hello.encode()).await?;
                // The stream has no more to say; an error here is one of the connection.
                let _ = send.finish();
                handshake::receive(&mut recv).await
            };
            answer
                .await
                .map_err(|error| match self.connection.close_reason() {
                    Some(reason) => ended(self.remote, reason),
                    None => self.malformed(&error.to_string()),
                })
        };
        let message = timeout_at(Instant::now() + self.timeout, exchange)
            .await
            .map_err(|_| DialError::Silent {
                addr: self.remote,
                after: self.timeout,
            })??;
        self.read(&message)
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
            .field("source", &self.source)
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}

/// What the end of a connection means to whoever dials.
fn ended(addr: SocketAddr, error: ConnectionError) -> DialError {
    /// Codes of TLS alerts within QUIC (RFC 9001 section 4.8).
    fn is_tls(code: TransportErrorCode) -> bool {
        (0x100..0x200).contains(&u64::from(code))
    }
    match &error {
        ConnectionError::ConnectionClosed(close)
            if close.error_code == TransportErrorCode::CONNECTION_REFUSED =>
        {
            DialError::Busy { addr }
        }
        ConnectionError::ApplicationClosed(close) => {
            let number = u16::try_from(close.error_code.into_inner()).unwrap_or(0);
            match (RefuseCode::from_number(number), error.into()) {
                // A refusal whose message was overtaken by the close that follows it.
                (code, CarrierEnd::Peer { reason, .. })
                    if !matches!(code, RefuseCode::Other(_)) =>
                {
                    DialError::Refused { addr, code, reason }
                }
                (_, end) => DialError::Ended { addr, end },
            }
        }
        ConnectionError::VersionMismatch => DialError::NotMarline {
            addr,
            detail: error.to_string(),
        },
        ConnectionError::ConnectionClosed(close) if is_tls(close.error_code) => {
            DialError::NotMarline {
                addr,
                detail: CarrierEnd::from(error).to_string(),
            }
        }
        ConnectionError::TransportError(local) if is_tls(local.code) => DialError::NotMarline {
            addr,
            detail: CarrierEnd::from(error).to_string(),
        },
        _ => DialError::Ended {
            addr,
            end: error.into(),
        },
    }
}
