//! The HTTP side of metrics: `GET /metrics` and nothing else.

use super::Names;
use super::text::{OPENMETRICS, PLAIN, plain as older, render};
use crate::control::Manage;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HOST, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Version};
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
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Most connections whose request is not complete, and most that are being answered: one more ends
/// the oldest, so that clients that are silent, or do not read, keep no other out.
const MAX_CONNECTIONS: usize = 16;
/// How long a request may take to be complete.
const REQUEST: Duration = Duration::from_secs(5);
/// How long its answer may take to be read: what Prometheus waits for one by default.
const ANSWER: Duration = Duration::from_secs(10);

/// What all connections share.
#[derive(Debug)]
struct Shared<M> {
    managed: Arc<M>,
    names: Names,
    /// How long a request may take to be complete.
    request: Duration,
    asking: Lru,
    answered: Lru,
}

impl<M> Shared<M> {
    fn new(managed: Arc<M>, names: Names, request: Duration) -> Arc<Self> {
        Arc::new(Shared {
            managed,
            names,
            request,
            asking: Lru::new(MAX_CONNECTIONS),
            answered: Lru::new(MAX_CONNECTIONS),
        })
    }
}

/// Serves metrics at `listener`, by the addresses and `names` of this host, until the future is
/// dropped.
pub async fn serve<M: Manage>(listener: TcpListener, managed: Arc<M>, names: Names) {
    accept_each(listener, Shared::new(managed, names, REQUEST)).await;
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

/// One request and its answer. A connection that stayed open in between would be worth nothing:
/// a client that asks again connects again.
async fn connection<M: Manage>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    shared: Arc<Shared<M>>,
    asking: Held,
    end: CancellationToken,
) {
    let place = Mutex::new(asking);
    let service = service_fn(|request| {
        *lock(&place) = shared.answered.enter(end.clone());
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(answer(&request, &shared).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.request)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        () = end.cancelled() => {
            tracing::debug!("a metrics connection gave way to a new one");
        }
        served = timeout(shared.request + ANSWER, served) => match served {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a metrics connection failed"),
            Err(_) => tracing::debug!("a metrics connection did not read its answer"),
        }
    }
}

async fn answer<M: Manage>(
    request: &Request<Incoming>,
    shared: &Shared<M>,
) -> Response<Full<Bytes>> {
    let plain = |status, text: &'static str| {
        let mut response = Response::new(Full::from(text));
        *response.status_mut() = status;
        response
    };
    match asked_by_name(request, &shared.names) {
        Some(true) => {}
        Some(false) => {
            return plain(
                StatusCode::MISDIRECTED_REQUEST,
                "this is not one of the names here: ask by address, or start marline with --metrics-name NAME\n",
            );
        }
        None => return plain(StatusCode::BAD_REQUEST, "one Host field is needed\n"),
    }
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
    match render(&shared.managed.status().await) {
        Ok(text) => {
            let mut accepted = request.headers().get_all(ACCEPT).iter();
            let modern = accepted.any(|field| {
                let field = field.to_str().unwrap_or_default();
                field.contains("application/openmetrics-text")
            });
            let (kind, text) = match modern {
                true => (OPENMETRICS, text),
                false => (PLAIN, older(&text)),
            };
            let mut response = Response::new(Full::from(text));
            let kind = HeaderValue::from_static(kind);
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        Err(_) => plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "cannot render the metrics\n",
        ),
    }
}

/// Whether every name by which `request` asks is in `names`; `None` where RFC 9112 section 3.2
/// wants a `Host` field, and only one. HTTP/1.0, which no browser speaks, does without.
fn asked_by_name<B>(request: &Request<B>, names: &Names) -> Option<bool> {
    let mut fields = request.headers().get_all(HOST).iter();
    let field = match (fields.next(), fields.next()) {
        (Some(field), None) => Some(field),
        (None, _) if request.version() < Version::HTTP_11 => None,
        _ => return None,
    };
    let field = field.is_none_or(|field| field.to_str().is_ok_and(|field| names.contain(field)));
    let target = request.uri().authority();
    Some(field && target.is_none_or(|target| names.contain(target.as_str())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{Problem, Status};
    use marline::Path;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::net::TcpStream;
    use tokio::task::JoinHandle;
    use tokio::time::{Instant, sleep};

    struct Managed;

    impl Manage for Managed {
        async fn status(&self) -> Status {
            crate::control::status::tests::example()
        }
        async fn add_path(&self, _: Path) -> Result<(), Problem> {
            Ok(())
        }
        async fn remove_path(&self, _: &str) -> Result<(), Problem> {
            Ok(())
        }
        async fn set_standby(&self, _: &str, _: bool) -> Result<(), Problem> {
            Ok(())
        }
    }

    fn names() -> Names {
        Names::of_this_host(["router.example".to_owned()])
    }

    const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

    fn shared(request: Duration) -> Arc<Shared<Managed>> {
        Shared::new(Arc::new(Managed), names(), request)
    }

    fn begun(stream: DuplexStream, shared: Arc<Shared<Managed>>) -> JoinHandle<()> {
        let end = CancellationToken::new();
        let asking = shared.asking.enter(end.clone());
        tokio::spawn(connection(stream, shared, asking, end))
    }

    /// A connection in memory, with room for few bytes on their way.
    fn connected() -> (DuplexStream, JoinHandle<()>) {
        let (ours, theirs) = duplex(256);
        (ours, begun(theirs, shared(REQUEST)))
    }

    /// The answer's status line to a request with these lines after its first.
    async fn status_of(first: &str, fields: &str) -> String {
        let (mut stream, _) = connected();
        let request = format!("{first}\r\n{fields}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text.lines().next().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn only_this_hosts_names_are_answered() {
        let get = "GET /metrics HTTP/1.1";
        for (first, fields, code) in [
            (get, "Host: 127.0.0.1:9900\r\n", "200"),
            (get, "Host: router.example:9900\r\n", "200"),
            (get, "Host: evil.example\r\n", "421"),
            ("GET / HTTP/1.1", "Host: evil.example\r\n", "421"),
            (get, "Host: localhost\r\nHost: evil.example\r\n", "400"),
            (get, "", "400"),
            (get, "Host: \r\n", "421"),
            (
                "GET http://evil.example/metrics HTTP/1.1",
                "Host: localhost\r\n",
                "421",
            ),
            (
                "GET http://localhost/metrics HTTP/1.1",
                "Host: localhost\r\n",
                "200",
            ),
            ("GET /metrics HTTP/1.0", "", "200"),
            ("GET /metrics HTTP/1.0", "Host: evil.example\r\n", "421"),
        ] {
            let found = status_of(first, fields).await;
            assert_eq!(found.split(' ').nth(1), Some(code), "{first} {fields}");
        }
    }

    /// How long a connection lasts, by tokio's clock, on which `sent` is written, then a byte a
    /// second, and nothing is read.
    async fn lasts(sent: &[u8]) -> Duration {
        let began = Instant::now();
        let (mut stream, task) = connected();
        stream.write_all(sent).await.unwrap();
        let writing = tokio::spawn(async move {
            while stream.write_all(b"x").await.is_ok() {
                sleep(Duration::from_secs(1)).await;
            }
        });
        task.await.unwrap();
        let lasted = began.elapsed();
        writing.await.unwrap();
        lasted
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_has_5_s_and_its_answer_no_more_than_10_s() {
        let second = Duration::from_secs(1);
        for unfinished in [&b"G"[..], b"GET /metrics HTTP/1.1\r\nX: "] {
            let lasted = lasts(unfinished).await;
            assert!(lasted >= REQUEST && lasted < REQUEST + second, "{lasted:?}");
        }
        // Its answer has more than those 256 bytes.
        let lasted = lasts(GET).await;
        assert!(lasted > REQUEST, "{lasted:?}");
        assert!(lasted < REQUEST + ANSWER + second, "{lasted:?}");
    }

    #[tokio::test]
    async fn those_who_are_silent_keep_nobody_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // Nobody is closed for being slow.
        let shared = shared(Duration::from_secs(3600));
        let serving = tokio::spawn(accept_each(listener, Arc::clone(&shared)));
        let mut silent = Vec::new();
        for _ in 0..=MAX_CONNECTIONS {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        // The oldest gives way to the newest.
        assert_eq!(silent[0].read(&mut [0]).await.unwrap(), 0);
        assert_eq!(shared.asking.len(), MAX_CONNECTIONS);
        for _ in 0..2 * MAX_CONNECTIONS {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(GET).await.unwrap();
            let mut page = String::new();
            stream.read_to_string(&mut page).await.unwrap();
            assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        }
        serving.abort();
    }

    #[tokio::test]
    async fn of_those_who_do_not_read_their_answers_so_many_are_held() {
        let shared = shared(REQUEST);
        let mut held = Vec::new();
        for _ in 0..=MAX_CONNECTIONS {
            let (mut ours, theirs) = duplex(256);
            ours.write_all(GET).await.unwrap();
            let task = begun(theirs, Arc::clone(&shared));
            // The first byte of the answer: it is past its request.
            ours.read_exact(&mut [0]).await.unwrap();
            held.push((ours, task));
        }
        assert_eq!(
            (shared.asking.len(), shared.answered.len()),
            (0, MAX_CONNECTIONS)
        );
        let (_, oldest) = held.swap_remove(0);
        oldest.await.unwrap();
        assert!(held.iter().all(|(_, task)| !task.is_finished()));
    }
}
