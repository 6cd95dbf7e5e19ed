//! A peer that has vanished, as a laptop that was closed, says nothing of it: the kernel has to
//! ask. A connection that nobody uses for a day and whose peer is there lives on.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// Silence after which the kernel asks a peer. Many address translators forget a connection after a
/// few minutes, though RFC 5382 (REQ-5) asks them for two hours.
const SILENCE: Duration = Duration::from_secs(90);
/// From one question without an answer to the next: Linux's own (tcp_keepalive_intvl is 75 s) would
/// keep what has vanished for ten minutes.
#[cfg(unix)]
const EVERY: Duration = Duration::from_secs(15);
/// Questions without an answer that end a connection: over a network that loses half of its packets
/// one in four peers answers a question, and three in four answer one of five.
#[cfg(unix)]
const TIMES: u32 = 5;

/// Has the kernel end `connection` 165 s after its peer has vanished.
///
/// # Errors
/// When the socket does not take the options, which does not happen on a living one.
pub(super) fn enable(connection: &TcpStream) -> io::Result<()> {
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
        enable(&connection).unwrap();
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
