//! Connections of the page's readers.

use super::answer::{STALLED, Site, answer};
use super::token::Token;
use super::watch::Watched;
use crate::control::Manage;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use marline::support::accept::PatientListener;
use marline::support::lock;
use marline_apps::lru::{Held, Lru};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Most connections whose request is not complete: one more ends the oldest, so that who is silent
/// keeps no other out.
const MAX_ASKING: usize = 16;
/// Most that are being answered; each open page is one of them.
const MAX_ANSWERED: usize = 24;
/// How long a request may take to be complete.
const REQUEST: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Shared<M> {
    site: Arc<Site<M>>,
    asking: Lru,
    answered: Lru,
}

/// Serves the page at `listener` to those who know `token`, until the future is dropped. Looks at
/// the program all the while.
pub async fn serve<M: Manage>(listener: TcpListener, managed: Arc<M>, token: Token) {
    let watched = Arc::new(Watched::default());
    let shared = Arc::new(Shared {
        site: Arc::new(Site {
            managed: Arc::clone(&managed),
            watched: Arc::clone(&watched),
            token,
        }),
        asking: Lru::new(MAX_ASKING),
        answered: Lru::new(MAX_ANSWERED),
    });
    tokio::select! {
        () = watched.watch(managed) => {}
        () = accept_each(listener, shared) => {}
    }
}

async fn accept_each<M: Manage>(listener: TcpListener, shared: Arc<Shared<M>>) {
    let mut listener = PatientListener::new(listener);
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await;
        let end = CancellationToken::new();
        let asking = shared.asking.enter(end.clone());
        connections.spawn(connection(stream, Arc::clone(&shared), asking, end));
        while connections.try_join_next().is_some() {}
    }
}

/// One request and its answer.
async fn connection<M: Manage>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    shared: Arc<Shared<M>>,
    asking: Held,
    end: CancellationToken,
) {
    let place = Mutex::new(asking);
    // What makes a body that is read for long; it ends with the connection.
    let making = Mutex::new(JoinSet::new());
    let streams = CancellationToken::new();
    let service = service_fn(|request| {
        *lock(&place) = shared.answered.enter(end.clone());
        let (site, end) = (Arc::clone(&shared.site), end.clone());
        let (making, streams) = (&making, streams.clone());
        async move {
            let answer = answer(request, site, end).await;
            if let Some(more) = answer.making {
                streams.cancel();
                lock(making).spawn(more);
            }
            Ok::<_, Infallible>(answer.response)
        }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REQUEST)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    // A body that is made watches by itself that it is read.
    let too_long = async {
        sleep(REQUEST + 2 * STALLED).await;
        if streams.is_cancelled() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = end.cancelled() => tracing::debug!("a connection of the page gave way, or did not read"),
        () = too_long => tracing::debug!("a connection of the page did not read its answer"),
        served = served => if let Err(error) = served {
            tracing::debug!(%error, "a connection of the page failed");
        }
    }
}
