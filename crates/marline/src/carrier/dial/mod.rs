//! The client's side of a new carrier.
//!
//! | file | what |
//! | --- | --- |
//! | `quic.rs`, `tcp.rs` | connect over the one or the other |
//! | `race.rs` | QUIC first, TCP where it does not get through |
//! | `outcomes.rs` | [`Outcomes`]: where it did not, for a while |
//! | `dialled.rs` | [`Dialled`]: a connection asks for a session or a path |
//! | `error.rs` | [`DialError`]: why not |

mod dialled;
mod error;
mod outcomes;
mod quic;
mod race;
mod tcp;

use std::net::SocketAddr;
use std::time::Duration;

pub use dialled::{Dialled, Opened};
pub use error::DialError;
pub use outcomes::Outcomes;

use tokio::time::Instant;

use super::link::Link;
use super::{CarrierChoice, QuicConfig, SocketSpec};
use crate::identity::{Identity, PublicKey};

/// How to reach a server over one path.
#[derive(Clone, Debug)]
pub struct Dial {
    /// The socket to do it from.
    pub socket: SocketSpec,
    /// The server's address.
    pub remote: SocketAddr,
    /// The server's key; a host with another key is not talked to.
    pub server: PublicKey,
    /// Which carrier, default [`CarrierChoice::Auto`].
    pub carrier: CarrierChoice,
    /// Congestion control of the kernel where the carrier is TCP, as `bbr` or `cubic`; default is
    /// the system's.
    pub tcp_congestion: Option<String>,
    /// Which networks let no QUIC through, as earlier dials found.
    pub outcomes: Outcomes,
    /// How the carrier behaves.
    pub quic: QuicConfig,
    /// Give up after this time, for each of [`connect`](Self::connect), [`Dialled::open`] and
    /// [`Dialled::join`]; default 10 s.
    pub timeout: Duration,
}

impl Dial {
    /// A dial with defaults for all but the server's address and key.
    pub fn new(remote: SocketAddr, server: PublicKey) -> Self {
        Self {
            socket: SocketSpec::default(),
            remote,
            server,
            carrier: CarrierChoice::Auto,
            tcp_congestion: None,
            outcomes: Outcomes::default(),
            quic: QuicConfig::default(),
            timeout: Duration::from_secs(10),
        }
    }

    /// Opens a socket and connects, each end proving its key to the other. Needs a tokio runtime.
    ///
    /// # Errors
    /// Of the socket and configuration at once; of the network and server as they show.
    pub async fn connect(&self, identity: &Identity) -> Result<Dialled, DialError> {
        let link = match self.carrier {
            CarrierChoice::Quic => {
                let link = self.connect_quic(identity).await?;
                // Where that gets through, TCP is no longer dialled first.
                if let Ok(source) = self.socket.source(self.remote) {
                    let network = (self.socket.bind.clone(), source, self.remote);
                    self.outcomes.note(Instant::now(), network, false);
                }
                Link::Quic(link)
            }
            CarrierChoice::Tcp => Link::Tcp(self.connect_tcp(identity).await?),
            CarrierChoice::Auto => self.race(identity).await?,
        };
        Ok(Dialled {
            link,
            client: identity.public_key(),
            remote: self.remote,
            timeout: self.timeout,
        })
    }
}
