use std::io;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::{TlsConnector, TlsStream};

use super::{Dial, DialError};
use crate::carrier::tcp::{TcpLink, prepare};
use crate::carrier::{MAX_CLOSE_REASON, printable, tls};
use crate::identity::Identity;

impl Dial {
    /// Connects over TCP and does the TLS handshake.
    pub(super) async fn connect_tcp(&self, identity: &Identity) -> Result<Box<TcpLink>, DialError> {
        self.quic.check()?;
        let seen = Arc::new(OnceLock::new());
        let config = tls::client(identity, self.server, Arc::clone(&seen))
            .map_err(|error| DialError::Tls(error.to_string()))?;
        let socket = self
            .socket
            .open_tcp(self.remote, self.tcp_congestion.as_deref())?;
        let deadline = Instant::now() + self.timeout;
        let unreachable = |_| DialError::TcpUnreachable {
            addr: self.remote,
            after: self.timeout,
        };
        let stream = timeout_at(deadline, socket.connect(self.remote))
            .await
            .map_err(unreachable)?
            .map_err(|source| DialError::TcpRefused {
                addr: self.remote,
                source,
            })?;
        let broken = |error: &io::Error| DialError::NotMarline {
            addr: self.remote,
            detail: printable(error.to_string().as_bytes(), MAX_CLOSE_REASON),
        };
        prepare(&stream, self.quic.idle_timeout).map_err(|error| broken(&error))?;
        let name = ServerName::try_from(tls::SERVER_NAME)
            .map_err(|error| DialError::Tls(error.to_string()))?;
        let connector = TlsConnector::from(Arc::new(tls::for_tcp(config)));
        let stream = timeout_at(deadline, connector.connect(name, stream))
            .await
            .map_err(unreachable)?
            .map_err(|error| match seen.get() {
                Some(&found) if found != self.server => DialError::WrongKey {
                    addr: self.remote,
                    expected: self.server,
                    found,
                },
                _ => broken(&error),
            })?;
        TcpLink::new(TlsStream::Client(stream), &self.quic)
            .map(Box::new)
            .map_err(|error| broken(&error))
    }
}
