//! A TCP connection and a flow, joined.

use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Bytes in each direction between a connection and its flow. 8 KiB, the usual default, costs a third of the speed;
/// more than this was not faster.
const BUFFER: usize = 64 * 1024;

/// A connection that is reset when it is dropped, unless it was finished: whatever ends a relay early, the other side
/// must not take what it got for the whole.
#[derive(Debug)]
pub(super) struct ResetOnDrop(pub(super) TcpStream);

impl ResetOnDrop {
    /// # Errors
    /// When the socket does not take the option, which does not happen on a living one.
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        // close() then sends RST. shutdown() is not affected: a half-close is still a FIN.
        stream.set_zero_linger()?;
        Ok(ResetOnDrop(stream))
    }

    /// Both directions ended in order: let close() deliver what the kernel still holds.
    fn finished(self) -> io::Result<()> {
        socket2::SockRef::from(&self.0).set_linger(None::<Duration>)
    }
}

/// Copies both ways until both directions have ended, keeping half-closes. An error on one side is a reset on the other:
/// the caller drops the flow, we drop the connection.
pub(super) async fn relay<S>(mut connection: ResetOnDrop, flow: &mut S) -> io::Result<(u64, u64)>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let copied =
        tokio::io::copy_bidirectional_with_sizes(&mut connection.0, flow, BUFFER, BUFFER).await?;
    connection.finished()?;
    Ok(copied)
}
