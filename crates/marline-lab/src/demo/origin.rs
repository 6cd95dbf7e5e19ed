//! The web server that downloads come from: one body under every path.

use super::body::Body;
use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper::header::HeaderValue;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Names the SHA-256 of the body (RFC 9530).
pub(super) const DIGEST: &str = "repr-digest";

/// Serves `body` to everybody until dropped.
pub async fn serve(listener: TcpListener, body: Body) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((connection, _)) = accepted else { continue };
                let body = body.clone();
                connections.spawn(async move {
                    let service = service_fn(|_| std::future::ready(answer(&body)));
                    let served = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(connection), service)
                        .await;
                    // A download that is cut off in the middle ends so.
                    if let Err(error) = served {
                        tracing::debug!(%error, "a connection to the web server ended early");
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

fn answer(body: &Body) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(body.bytes()));
    if let Ok(digest) = HeaderValue::from_str(&body.digest_field()) {
        response.headers_mut().insert(DIGEST, digest);
    }
    Ok(response)
}
