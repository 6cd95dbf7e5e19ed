use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsStream;

/// How long a peer has to take the last words.
pub(in super::super) const LINGER: Duration = Duration::from_secs(2);

/// Says the last words, on a task of its own, and waits until the peer has left too: a socket that
/// is closed while something waits to be read from it resets the connection, last words and all.
/// That takes `linger` at most; with none, what can be said at once is said.
///
/// `None` where no runtime is left; the connection is then dropped.
pub(in super::super) fn farewell(
    mut stream: TlsStream<TcpStream>,
    words: BytesMut,
    linger: Duration,
) -> Option<JoinHandle<()>> {
    let runtime = tokio::runtime::Handle::try_current().ok()?;
    Some(runtime.spawn(async move {
        // Errors are those of a connection that has ended otherwise.
        let _ = timeout(linger, async {
            stream.write_all(&words).await?;
            stream.shutdown().await?;
            let mut rest = vec![0; 16 << 10];
            while stream.read(&mut rest).await? > 0 {}
            std::io::Result::Ok(())
        })
        .await;
    }))
}
