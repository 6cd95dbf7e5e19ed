//! The download: one body after the other through the SOCKS5 proxy, until the time is over.

use super::body::{Body, read_digest_field};
use super::origin::DIGEST;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::http::uri::InvalidUri;
use hyper::{StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::SocksV5;
use hyper_util::rt::TokioExecutor;
use sha2::{Digest, Sha256};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::time::{Instant, timeout_at};

/// What was downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Downloaded {
    /// Bytes of bodies that came before the end.
    pub(super) bytes: u64,
    /// Bodies that came whole.
    pub(super) bodies: u64,
    /// Every whole body had the SHA-256 that the server announced, and the last, cut off by the
    /// end, that of as long a prefix.
    pub(super) intact: bool,
}

/// Why a download ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum DownloadError {
    #[error("the download failed: {}", with_causes(.0))]
    Request(#[from] hyper_util::client::legacy::Error),
    #[error("the download broke off: {}", with_causes(.0))]
    Body(#[from] hyper::Error),
    #[error("the download failed: {0}")]
    Address(#[from] InvalidUri),
    #[error("the download was answered by status {0}")]
    Status(StatusCode),
    #[error("the download's answer names no SHA-256")]
    NoDigest,
}

/// The libraries' errors leave the reason to the errors behind them.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Downloads from `origin` through the proxy at `socks` until `end`; `count` follows the bytes as
/// they come.
pub(super) async fn run(
    origin: SocketAddr,
    socks: SocketAddr,
    body: &Body,
    end: Instant,
    count: &AtomicU64,
) -> Result<Downloaded, DownloadError> {
    let proxy: Uri = format!("http://{socks}").parse()?;
    let target: Uri = format!("http://{origin}/body").parse()?;
    let connector = SocksV5::new(proxy, HttpConnector::new());
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let mut done = Downloaded {
        bytes: 0,
        bodies: 0,
        intact: true,
    };
    loop {
        let Ok(answer) = timeout_at(end, client.get(target.clone())).await else {
            return Ok(done);
        };
        let mut answer = answer?;
        if !answer.status().is_success() {
            return Err(DownloadError::Status(answer.status()));
        }
        let announced = answer.headers().get(DIGEST);
        let announced = announced
            .and_then(|field| read_digest_field(field.to_str().ok()?))
            .ok_or(DownloadError::NoDigest)?;
        let (mut hasher, mut length) = (Sha256::new(), 0);
        loop {
            let Ok(frame) = timeout_at(end, answer.body_mut().frame()).await else {
                done.intact &= body.prefix_hash(length) == Some(hasher.finalize().into());
                return Ok(done);
            };
            let Some(frame) = frame.transpose()? else {
                break;
            };
            // Anything but data is a trailer, which the origin does not send.
            let chunk = frame.into_data().unwrap_or_default();
            hasher.update(&chunk);
            length += chunk.len() as u64;
            done.bytes += chunk.len() as u64;
            count.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        }
        done.intact &= announced == <[u8; 32]>::from(hasher.finalize());
        done.bodies += 1;
    }
}
