//! A connection at a server on its way to being an attempt.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio::io::AsyncRead;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::{LazyConfigAcceptor, StartHandshake, TlsStream};

use super::attempt::{Asked, Attempt, JoinAttempt, NewAttempt, Pending};
use super::handshake::{self, DecodeError, Hello, RefuseCode, VERSION};
use super::link::QuicLink;
use super::quic::{Incoming, Side};
use super::strangers::{Place, Slot, Strangers};
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

/// What a handshake in this place comes to, which began `since` and may take `limit`.
async fn within(
    since: Instant,
    limit: Duration,
    place: &Place,
    handshake: impl Future<Output = Result<Attempt, String>>,
) -> Result<Attempt, String> {
    tokio::select! {
        result = timeout_at(since + limit, handshake) => result.unwrap_or_else(|_| {
            let limit = limit.as_secs_f64();
            Err(format!("its handshake took longer than {limit:.1} s"))
        }),
        () = place.gives_way() => Err("its handshake gave way to another".into()),
    }
}

/// One QUIC connection.
pub(super) struct QuicHandshake {
    /// The connection's own, which holds its place.
    pub(super) config: quinn_proto::ServerConfig,
    pub(super) allowed: AllowList,
    pub(super) limit: Duration,
    pub(super) place: Arc<Place>,
    /// The number of that whose socket it came by.
    pub(super) worker: usize,
}

impl QuicHandshake {
    pub(super) async fn run(self, incoming: Incoming) -> Result<Attempt, Rejected> {
        let (remote, limit) = (incoming.remote_address(), self.limit);
        let place = Arc::clone(&self.place);
        let result = within(Instant::now(), limit, &place, self.proceed(incoming)).await;
        result.map_err(|why| Rejected { remote, why })
    }

    async fn proceed(self, incoming: Incoming) -> Result<Attempt, String> {
        let failed = |error: quinn_proto::ConnectionError| CarrierEnd::from(error).to_string();
        let connection = incoming.accept(self.config).map_err(failed)?;
        connection.established().await.map_err(failed)?;
        self.place.proved();
        let peer = tls::peer(&connection).ok_or("it showed no key")?;
        let (send, mut recv) = connection.accept_bi().await.map_err(failed)?;
        let link = QuicLink {
            connection,
            side: Side::Accepted,
        };
        let pending = Pending {
            asked: Asked::Quic(link, send),
            peer,
            limit: self.limit,
            place: self.place,
            worker: self.worker,
        };
        let pending = listed(pending, &self.allowed)?;
        let hello = hello(&mut recv).await;
        attempt(pending, hello)
    }
}

/// One TLS connection over TCP.
pub(super) struct TcpHandshake {
    pub(super) tls: Arc<ServerConfig>,
    pub(super) quic: QuicConfig,
    pub(super) allowed: AllowList,
    /// Until its TLS handshake begins.
    pub(super) silent: Slot,
    pub(super) silent_limit: Duration,
    pub(super) limit: Duration,
    pub(super) strangers: Arc<Strangers>,
}

impl TcpHandshake {
    pub(super) async fn run(
        self,
        stream: TcpStream,
        remote: SocketAddr,
    ) -> Result<Attempt, Rejected> {
        let (since, limit) = (Instant::now(), self.limit);
        let result = async {
            let begun = self.begun(stream).await?;
            let place = self.strangers.tcp(remote.ip())?;
            self.silent.release();
            within(
                since,
                limit,
                &place,
                self.proceed(begun, Arc::clone(&place)),
            )
            .await
        };
        result.await.map_err(|why| Rejected { remote, why })
    }

    /// Waits until all of its ClientHello is there.
    async fn begun(&self, stream: TcpStream) -> Result<StartHandshake<TcpStream>, String> {
        prepare(&stream, self.quic.idle_timeout).map_err(failed)?;
        let begun = LazyConfigAcceptor::new(Acceptor::default(), stream);
        tokio::select! {
            begun = timeout(self.silent_limit, begun) => match begun {
                Ok(begun) => begun.map_err(failed),
                Err(_) => {
                    let limit = self.silent_limit.as_secs_f64();
                    Err(format!("it did not begin its handshake within {limit:.1} s"))
                }
            },
            () = self.silent.gives_way() => Err("it was silent and gave way to another".into()),
        }
    }

    async fn proceed(
        &self,
        begun: StartHandshake<TcpStream>,
        place: Arc<Place>,
    ) -> Result<Attempt, String> {
        let stream = begun.into_stream(Arc::clone(&self.tls));
        let stream = TlsStream::Server(stream.await.map_err(failed)?);
        let link = TcpLink::new(stream, &self.quic).map_err(failed)?;
        let peer = link.peer().ok_or("it showed no key")?;
        let pending = Pending {
            asked: Asked::Tcp(Box::new(link)),
            peer,
            limit: self.limit,
            place,
            worker: 0,
        };
        let mut pending = listed(pending, &self.allowed)?;
        let hello = match &mut pending.asked {
            Asked::Tcp(link) => hello(&mut link.stream).await,
            Asked::Quic(..) => return Err("it is not over TCP".into()),
        };
        attempt(pending, hello)
    }
}

fn failed(error: std::io::Error) -> String {
    error.to_string()
}

/// Refuses a client whose key is not listed or comes too often, before a byte of what it says is
/// read.
fn listed(pending: Pending, allowed: &AllowList) -> Result<Pending, String> {
    let peer = pending.peer;
    if !allowed.contains(&peer) {
        pending.refuse(
            RefuseCode::UnknownClient,
            format!(
                "the server does not know this client's key {peer}; add it to the server's allow list"
            ),
        );
        return Err(format!(
            "its key {peer} is not in the list of allowed clients"
        ));
    }
    if !pending.place.listed(peer) {
        let reason = "this client begins connections too often; try later";
        pending.refuse(RefuseCode::Full, reason.into());
        return Err(format!("client {peer} begins connections too often"));
    }
    Ok(pending)
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
