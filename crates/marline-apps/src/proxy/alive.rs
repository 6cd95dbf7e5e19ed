//! A peer that has vanished, as a laptop that was closed, says nothing of it: the kernel has to
//! ask. A connection that nobody uses for a day and whose peer is there lives on.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// A peer is asked after a silence of this length: many address translators forget a connection
/// after a few minutes, though RFC 5382 (REQ-5) asks them for two hours,
const SILENCE: Duration = Duration::from_secs(90);
/// then every
const EVERY: Duration = Duration::from_secs(15);
/// so many times: one answer of five passes a network that loses half of its packets.
const TIMES: u32 = 5;

/// Ends `connection` some minutes after its peer has vanished.
///
/// # Errors
/// When the socket does not take the options, which does not happen on a living one.
pub(super) fn watch(connection: &TcpStream) -> io::Result<()> {
    let socket = SockRef::from(connection);
    let keepalive = TcpKeepalive::new().with_time(SILENCE);
    #[cfg(unix)]
    let keepalive = keepalive.with_interval(EVERY).with_retries(TIMES);
    socket.set_tcp_keepalive(&keepalive)?;
    // Nothing is asked while bytes are unacknowledged; without this limit the kernel sends those
    // again for a quarter of an hour (RFC 5482).
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(SILENCE + TIMES * EVERY))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_kernel_asks_and_gives_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connection = TcpStream::connect(address).await.unwrap();
        watch(&connection).unwrap();
        let socket = SockRef::from(&connection);
        assert!(socket.keepalive().unwrap());
        #[cfg(target_os = "linux")]
        {
            assert_eq!(socket.tcp_keepalive_time().unwrap(), SILENCE);
            let limit = socket.tcp_user_timeout().unwrap();
            assert_eq!(limit, Some(Duration::from_secs(165)));
        }
    }
}
