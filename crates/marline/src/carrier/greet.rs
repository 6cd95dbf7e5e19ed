//! A connection at a server on its way to being an attempt.

use std::net::SocketAddr;
use std::time::Duration;

use quinn::{Endpoint, Incoming};
use tokio::io::AsyncRead;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::{TlsAcceptor, TlsStream};

use super::attempt::{Asked, Attempt, JoinAttempt, NewAttempt, Pending};
use super::handshake::{self, DecodeError, Hello, RefuseCode, VERSION};
use super::link::QuicLink;
use super::quic::Side;
use super::slots::Slot;
use super::tcp::{TcpLink, prepare};
use super::{CarrierEnd, QuicConfig, tls};
use crate::identity::AllowList;

/// A connection that did not get as far as asking, for the log.
#[derive(Debug, thiserror::Error)]
#[error("{remote} was turned away: {why}")]
pub(super) struct Rejected {
    pub(super) remote: SocketAddr,
    pub(super) why: String,
}

impl Rejected {
    fn late(remote: SocketAddr, limit: Duration) -> Self {
        let limit = limit.as_secs_f64();
        let why = format!("its handshake took longer than {limit:.1} s");
        Self { remote, why }
    }
}

/// One QUIC connection.
pub(super) struct QuicHandshake {
    pub(super) endpoint: Endpoint,
    pub(super) allowed: AllowList,
    pub(super) limit: Duration,
    pub(super) slot: Slot,
}

impl QuicHandshake {
    pub(super) async fn run(self, incoming: Incoming) -> Result<Attempt, Rejected> {
        let remote = incoming.remote_address();
        let limit = self.limit;
        match timeout_at(Instant::now() + limit, self.proceed(incoming)).await {
            Ok(result) => result.map_err(|why| Rejected { remote, why }),
            Err(_) => Err(Rejected::late(remote, limit)),
        }
    }

    async fn proceed(self, incoming: Incoming) -> Result<Attempt, String> {
        let failed = |error: quinn::ConnectionError| CarrierEnd::from(error).to_string();
        let connecting = incoming.accept().map_err(failed)?;
        let connection = connecting.await.map_err(failed)?;
        let peer = tls::peer(&connection).ok_or("it showed no key")?;
        let (send, mut recv) = connection.accept_bi().await.map_err(failed)?;
        let link = QuicLink {
            connection,
            endpoint: self.endpoint,
            side: Side::Accepted,
        };
        let pending = Pending {
            asked: Asked::Quic(link, send),
            peer,
            limit: self.limit,
            _slot: self.slot,
        };
        if !self.allowed.contains(&peer) {
            return Err(unlisted(pending));
        }
        let hello = hello(&mut recv).await;
        attempt(pending, hello)
    }
}

/// One TLS connection over TCP.
pub(super) struct TcpHandshake {
    pub(super) tls: TlsAcceptor,
    pub(super) quic: QuicConfig,
    pub(super) allowed: AllowList,
    pub(super) limit: Duration,
    pub(super) slot: Slot,
}

impl TcpHandshake {
    pub(super) async fn run(
        self,
        stream: TcpStream,
        remote: SocketAddr,
    ) -> Result<Attempt, Rejected> {
        let limit = self.limit;
        match timeout_at(Instant::now() + limit, self.proceed(stream)).await {
            Ok(result) => result.map_err(|why| Rejected { remote, why }),
            Err(_) => Err(Rejected::late(remote, limit)),
        }
    }

    async fn proceed(self, stream: TcpStream) -> Result<Attempt, String> {
        let failed = |error: std::io::Error| error.to_string();
        prepare(&stream, self.quic.idle_timeout).map_err(failed)?;
        let stream = self.tls.accept(stream).await.map_err(failed)?;
        let stream = TlsStream::Server(stream);
        let mut link = TcpLink::new(stream, &self.quic).map_err(failed)?;
        let peer = link.peer().ok_or("it showed no key")?;
        let pending = |link| Pending {
            asked: Asked::Tcp(Box::new(link)),
            peer,
            limit: self.limit,
            _slot: self.slot,
        };
        if !self.allowed.contains(&peer) {
            return Err(unlisted(pending(link)));
        }
        let hello = hello(&mut link.stream).await;
        attempt(pending(link), hello)
    }
}

/// Refuses whoever's key is not listed, before a byte of what they say is read.
fn unlisted(pending: Pending) -> String {
    let peer = pending.peer;
    pending.refuse(
        RefuseCode::UnknownClient,
        format!(
            "the server does not know this client's key {peer}; add it to the server's allow list"
        ),
    );
    format!("its key {peer} is not in the list of allowed clients")
}

/// What it asks for, if that can be read.
fn attempt(
    pending: Pending,
    hello: Result<Hello, (RefuseCode, String)>,
) -> Result<Attempt, String> {
    match hello {
        Ok(Hello::New { path, params }) => Ok(Attempt::New(NewAttempt {
            pending,
            path,
            params,
        })),
        Ok(Hello::Join {
            path,
            session,
            proof,
        }) => {
            let export = pending.exported(session);
            let export = export.ok_or("no key can be exported")?;
            Ok(Attempt::Join(JoinAttempt {
                pending,
                path,
                session,
                proof,
                export,
            }))
        }
        Err((code, why)) => {
            let peer = pending.peer;
            pending.refuse(code, format!("the server cannot serve this client: {why}"));
            Err(format!("client {peer}: {why}"))
        }
    }
}

async fn hello(recv: &mut (impl AsyncRead + Unpin)) -> Result<Hello, (RefuseCode, String)> {
    let message = handshake::receive(recv)
        .await
        .map_err(|error| (RefuseCode::Malformed, error.to_string()))?;
    Hello::decode(&message).map_err(|error| match error {
        DecodeError::Version { theirs } => (
            RefuseCode::Version,
            format!(
                "it speaks Marline protocol {theirs}, the server {VERSION}; update the older one"
            ),
        ),
        other => (RefuseCode::Malformed, other.to_string()),
    })
}
