//! UDP forwards: a local port whose datagrams end at one target behind the server. One flow for each local address.

use super::associations::{Associations, ReturnPath};
use super::{OpenOptions, Tasks, Tunnel};
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;

/// Largest UDP payload, bytes.
pub(super) const MAX_DATAGRAM: usize = 65_535;

/// Carries every datagram to `socket` over flows opened with `options`, and the answers back, until the tasks drain.
///
/// At most 1024 local addresses have a flow at a time; one that is quiet for two minutes is closed.
pub async fn forward<T: Tunnel>(socket: UdpSocket, tunnel: T, options: OpenOptions, tasks: Tasks) {
    let socket = Arc::new(socket);
    let mut flows: Associations<SocketAddr, T> = Associations::new(tunnel, tasks.clone());
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        let received = tokio::select! {
            () = tasks.draining() => return,
            received = socket.recv_from(&mut buffer) => received,
        };
        match received {
            Ok((length, peer)) => {
                flows.send(&peer, Bytes::copy_from_slice(&buffer[..length]), || {
                    let back = ReturnPath {
                        socket: Arc::clone(&socket),
                        peer,
                        header: Bytes::new(),
                    };
                    (options.clone(), back)
                });
            }
            Err(error) => {
                tracing::debug!(%error, "cannot receive a datagram");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}
