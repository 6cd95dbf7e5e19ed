//! Why a path could not be dialled.

use std::net::SocketAddr;
use std::time::Duration;

use quinn_proto::{ConnectionError, TransportErrorCode};

use crate::carrier::handshake::{MAX_PARAMS, RefuseCode};
use crate::carrier::{CarrierEnd, ConfigError, SocketError};
use crate::identity::PublicKey;

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
    /// No answer.
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
        "the server at {addr} is there, but did not answer within {:.1} s; it may be stopping or \
         overloaded",
        after.as_secs_f64()
    )]
    Silent {
        /// The server's address.
        addr: SocketAddr,
        /// How long was waited.
        after: Duration,
    },
    /// No answer over TCP.
    #[error("no answer from TCP {addr} within {:.1} s", after.as_secs_f64())]
    TcpUnreachable {
        /// The server's address.
        addr: SocketAddr,
        /// How long was waited.
        after: Duration,
    },
    /// The host or something before it refuses TCP connections there.
    #[error("no connection to TCP {addr}: {source}")]
    TcpRefused {
        /// The server's address.
        addr: SocketAddr,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// Neither QUIC nor TLS over TCP got through.
    #[error("{quic} (TLS over TCP did not get through either: {tcp})")]
    Neither {
        /// Why QUIC did not.
        quic: Box<Self>,
        /// Why TCP did not.
        tcp: Box<Self>,
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
    /// The host that answers speaks QUIC, but not Marline.
    #[error("what answers at {addr} is not a Marline server: {detail}")]
    NotMarline {
        /// The server's address.
        addr: SocketAddr,
        /// What went wrong.
        detail: String,
    },
    /// The server takes no connections for the moment.
    #[error(
        "the server at {addr} takes no new connections now: it is stopping, or has as many as it \
         takes"
    )]
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

impl DialError {
    /// Might another carrier get through where this one did not?
    pub(super) const fn is_of_the_network(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Ended { .. } | Self::NotMarline { .. }
        )
    }
}

/// What the end of a connection means to the end that dials.
pub(super) fn ended(addr: SocketAddr, error: ConnectionError) -> DialError {
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
