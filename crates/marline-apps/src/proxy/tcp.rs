//! TCP forwards: a local port whose connections end at one target behind the server.

use super::relay::{ResetOnDrop, relay};
use super::reply::ReplyFirst;
use super::{Tasks, Tunnel};
use marline::support::accept::PatientListener;
use marline_proto::FlowOptions;
use std::io;
use tokio::net::{TcpListener, TcpStream};

/// Carries every connection to `listener` over a stream opened with `options`, until the tasks
/// drain.
pub async fn forward<T: Tunnel>(
    listener: TcpListener,
    tunnel: T,
    options: FlowOptions,
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

/// Carries one connection over a stream opened with `options`, until both have ended.
///
/// # Errors
/// It ended early, at either side.
pub(crate) async fn carry<T: Tunnel>(
    connection: TcpStream,
    tunnel: &T,
    options: FlowOptions,
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
    let mut listener = PatientListener::sparing(listener);
    loop {
        tokio::select! {
            () = tasks.draining() => return,
            (connection, _) = listener.accept() => tasks.spawn(serve(connection)),
        }
    }
}
