//! TCP forwards: a local port whose connections end at one target behind the server.

use super::relay::{ResetOnDrop, relay};
use super::reply::ReplyFirst;
use super::{OpenOptions, Tasks, Tunnel};
use std::io;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Carries every connection to `listener` over a stream opened with `options`, until the tasks drain.
pub async fn forward<T: Tunnel>(
    listener: TcpListener,
    tunnel: T,
    options: OpenOptions,
    tasks: Tasks,
) {
    accept_each(listener, &tasks, |connection| {
        let (tunnel, options) = (tunnel.clone(), options.clone());
        async move {
            if let Err(error) = carry(connection, &tunnel, options).await {
                tracing::debug!(%error, "a forwarded connection ended early");
            }
        }
    })
    .await;
}

async fn carry<T: Tunnel>(
    connection: TcpStream,
    tunnel: &T,
    options: OpenOptions,
) -> io::Result<()> {
    let connection = ResetOnDrop::new(connection)?;
    let flow = tunnel
        .open_stream(options)
        .await
        .map_err(io::Error::other)?;
    relay(connection, &mut ReplyFirst::new(flow)).await?;
    Ok(())
}

/// Runs `serve` as a task for every connection to `listener`, until the tasks drain.
pub(super) async fn accept_each<F, Fut>(listener: TcpListener, tasks: &Tasks, serve: F)
where
    F: Fn(TcpStream) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    loop {
        let accepted = tokio::select! {
            () = tasks.draining() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((connection, _)) => tasks.spawn(serve(connection)),
            Err(error) => {
                // Out of file descriptors, most likely: wait for some to come back instead of spinning.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
