use std::sync::{Arc, OnceLock};

use quinn_proto::{ClientConfig, ConnectionError};
use tokio::time::{Instant, timeout_at};

use super::error::ended;
use super::{Dial, DialError};
use crate::carrier::batches::Singly;
use crate::carrier::link::QuicLink;
use crate::carrier::quic::{Connection, Side, Socket};
use crate::carrier::{SocketError, tls};
use crate::identity::Identity;

impl Dial {
    /// Connects over QUIC.
    pub(super) async fn connect_quic(&self, identity: &Identity) -> Result<QuicLink, DialError> {
        let seen = Arc::new(OnceLock::new());
        let crypto = tls::client(identity, self.server, Arc::clone(&seen))
            .and_then(tls::for_quic)
            .map_err(|error| DialError::Tls(error.to_string()))?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        let singly = Singly::default();
        config.transport_config(self.quic.transport(self.remote, &singly)?);
        let path = self.socket.open(self.remote)?;
        let io = |source| SocketError::Io {
            bind: self.socket.bind.clone(),
            source,
        };
        let socket = Socket::new(path.socket, singly, None).map_err(io)?;
        #[cfg(test)]
        let socket = socket.losing_batches(self.quic.loses_batches);
        let own = self.quic.endpoint();
        let connection = Connection::dial(socket, own, config, self.remote, tls::SERVER_NAME)
            .map_err(|error| DialError::NotMarline {
                addr: self.remote,
                detail: error.to_string(),
            })?;
        let unreachable = DialError::Unreachable {
            addr: self.remote,
            after: self.timeout,
        };
        match timeout_at(Instant::now() + self.timeout, connection.established()).await {
            Ok(Ok(())) => Ok(QuicLink {
                connection,
                side: Side::Dialled(path.source),
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
