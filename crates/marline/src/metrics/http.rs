//! The HTTP side of metrics: `GET /metrics` and nothing else.

use super::text::{CONTENT_TYPE, render};
use crate::control::Manage;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE as CONTENT_TYPE_HEADER, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Most connections at a time; more wait in the listener's queue.
const MAX_CONNECTIONS: usize = 16;
/// How long a request's head may take, also on a connection that is kept open.
const HEAD: Duration = Duration::from_secs(60);

/// Serves metrics at `listener` until the future is dropped.
pub async fn serve<M: Manage>(listener: TcpListener, managed: Arc<M>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a metrics connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let managed = Arc::clone(&managed);
        connections.spawn(async move {
            let _slot = slot;
            let service = service_fn(move |request| {
                let managed = Arc::clone(&managed);
                async move { Ok::<_, Infallible>(answer(&request, managed.as_ref()).await) }
            });
            let served = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .serve_connection(TokioIo::new(stream), service)
                .await;
            if let Err(error) = served {
                tracing::debug!(%error, "a metrics connection failed");
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer<M: Manage>(request: &Request<Incoming>, managed: &M) -> Response<Full<Bytes>> {
    let plain = |status, text: &'static str| {
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        response
    };
    if request.uri().path() != "/metrics" {
        return plain(StatusCode::NOT_FOUND, "metrics are at /metrics\n");
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "use GET\n");
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match render(&managed.status().await) {
        Ok(text) => {
            let mut response = Response::new(Full::from(text));
            response
                .headers_mut()
                .insert(CONTENT_TYPE_HEADER, HeaderValue::from_static(CONTENT_TYPE));
            response
        }
        Err(_) => plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "cannot render the metrics\n",
        ),
    }
}
