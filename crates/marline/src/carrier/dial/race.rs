//! Two carriers race for a path, as two address families do (RFC 8305).

use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::{Dial, DialError};
use crate::carrier::link::{Link, QuicLink};
use crate::carrier::tcp::TcpLink;
use crate::identity::Identity;

/// QUIC's head start: more than its handshake takes on most paths.
const HEAD_START: Duration = Duration::from_millis(300);
/// QUIC wins for this time after TCP is up: it sends a first packet that was lost again after about
/// one second.
const PREFERENCE: Duration = Duration::from_secs(2);
/// A network that let only TCP through gets this time to do it again before QUIC is tried as well.
const AGAIN: Duration = Duration::from_secs(3);

type Tcp = Result<Box<TcpLink>, DialError>;

impl Dial {
    /// Connects by QUIC if that gets through, else by TCP; a network that lets only TCP through is
    /// remembered.
    ///
    /// # Errors
    /// QUIC's alone where TCP could not do better: a server that refuses, a wrong configuration.
    pub(super) async fn race(&self, identity: &Identity) -> Result<Link, DialError> {
        let source = self.socket.source(self.remote)?;
        let network = (self.socket.bind.clone(), source, self.remote);
        if self.outcomes.needs_tcp(Instant::now(), &network)
            && let Ok(Ok(link)) = timeout(AGAIN, self.connect_tcp(identity)).await
        {
            return Ok(Link::Tcp(link));
        }
        let link = self.race_unprejudiced(identity).await?;
        let needs_tcp = matches!(link, Link::Tcp(_));
        if needs_tcp {
            tracing::info!(
                "{}: QUIC does not get through to {}; using TLS over TCP",
                self.socket.bind,
                self.remote
            );
        }
        self.outcomes.note(Instant::now(), network, needs_tcp);
        Ok(link)
    }

    async fn race_unprejudiced(&self, identity: &Identity) -> Result<Link, DialError> {
        let mut quic = pin!(self.connect_quic(identity));
        let early = tokio::select! {
            done = &mut quic => Some(done),
            () = sleep(HEAD_START) => None,
        };
        if let Some(done) = early {
            return self.settle(done, self.connect_tcp(identity)).await;
        }
        let mut tcp = pin!(self.connect_tcp(identity));
        let up = tokio::select! {
            done = &mut quic => return self.settle(done, tcp).await,
            up = &mut tcp => up,
        };
        match up {
            Ok(up) => {
                // The network answers now. If it did not before, QUIC's next packet is seconds
                // away: it begins once more, so that the same is asked of both.
                let mut fresh = pin!(self.connect_quic(identity));
                let link = async {
                    tokio::select! {
                        Ok(link) = &mut quic => Some(link),
                        Ok(link) = &mut fresh => Some(link),
                        else => None,
                    }
                };
                let link = timeout(PREFERENCE, link).await.ok().flatten();
                Ok(link.map_or(Link::Tcp(up), Link::Quic))
            }
            Err(error) => self.settle(quic.await, async { Err(error) }).await,
        }
    }

    /// QUIC is done: what it has, or what TCP has if that may do better.
    async fn settle(
        &self,
        quic: Result<QuicLink, DialError>,
        tcp: impl Future<Output = Tcp>,
    ) -> Result<Link, DialError> {
        match quic {
            Ok(link) => Ok(Link::Quic(link)),
            Err(error) if !error.is_of_the_network() => Err(error),
            Err(quic) => match tcp.await {
                Ok(link) => Ok(Link::Tcp(link)),
                Err(tcp @ (DialError::WrongKey { .. } | DialError::Socket(_))) => Err(tcp),
                Err(tcp) => Err(DialError::Neither {
                    quic: Box::new(quic),
                    tcp: Box::new(tcp),
                }),
            },
        }
    }
}
