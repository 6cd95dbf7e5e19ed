//! One end of a TLS connection over TCP whose two ends have proved their keys.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use crate::carrier::QuicConfig;
use crate::carrier::handshake::{EXPORTER_LABEL, Exported, SessionId};
use crate::carrier::strangers::Place;
use crate::identity::PublicKey;

/// What the kernel may hold that it has not sent (`TCP_NOTSENT_LOWAT`): the session's queue, not
/// this one, is where data should wait.
const UNSENT: u32 = 64 << 10;

/// The connection, and what a carrier on it needs to know.
#[derive(Debug)]
pub(in super::super) struct TcpLink {
    pub(in super::super) stream: TlsStream<TcpStream>,
    pub(in super::super) remote: SocketAddr,
    pub(in super::super) local: SocketAddr,
    pub(super) idle: Duration,
    pub(super) max_datagram: usize,
    /// At a server.
    pub(in super::super) place: Option<Arc<Place>>,
}

/// Makes a socket fit to carry datagrams. What the system does not know it does without.
pub(in super::super) fn prepare(stream: &TcpStream, idle: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(target_os = "linux")]
    {
        let socket = SockRef::from(stream);
        socket.set_tcp_notsent_lowat(UNSENT)?;
        // What is not acknowledged for this time ends the connection, as silence does.
        socket.set_tcp_user_timeout(Some(idle))?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (idle, UNSENT, SockRef::from(stream));
    Ok(())
}

impl TcpLink {
    /// `stream` has finished its handshake.
    pub(in super::super) fn new(
        stream: TlsStream<TcpStream>,
        config: &QuicConfig,
    ) -> io::Result<Self> {
        let socket = stream.get_ref().0;
        let canonical = |addr: SocketAddr| SocketAddr::new(addr.ip().to_canonical(), addr.port());
        Ok(Self {
            remote: canonical(socket.peer_addr()?),
            local: canonical(socket.local_addr()?),
            idle: config.idle_timeout,
            max_datagram: config.max_datagram(matches!(stream, TlsStream::Client(_))),
            place: None,
            stream,
        })
    }

    /// The public key that the peer has proved to hold.
    pub(in super::super) fn peer(&self) -> Option<PublicKey> {
        let keys: &[CertificateDer<'static>] = self.stream.get_ref().1.peer_certificates()?;
        PublicKey::from_spki(keys.first()?)
    }

    /// What this connection's TLS exports for a session (RFC 8446 section 7.5).
    pub(in super::super) fn exported(&self, session: SessionId) -> Option<Exported> {
        let mut bytes = Exported::default();
        let context = Some(&session.0[..]);
        match &self.stream {
            TlsStream::Client(stream) => {
                let tls = stream.get_ref().1;
                tls.export_keying_material(bytes.as_mut(), EXPORTER_LABEL, context)
                    .ok()?;
            }
            TlsStream::Server(stream) => {
                let tls = stream.get_ref().1;
                tls.export_keying_material(bytes.as_mut(), EXPORTER_LABEL, context)
                    .ok()?;
            }
        }
        Some(bytes)
    }
}
