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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::status::tests::example;
    use crate::control::{Problem, Status};
    use marline::Path;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    /// Writes down what it is given.
    #[derive(Default)]
    struct Recorder(Mutex<Vec<String>>);

    impl Manage for Recorder {
        async fn status(&self) -> Status {
            example()
        }
        async fn add_path(&self, path: Path) -> Result<(), Problem> {
            lock(&self.0).push(format!("add {path}"));
            Ok(())
        }
        async fn remove_path(&self, name: &str) -> Result<(), Problem> {
            Err(Problem::new(format!("no path `{name}`")))
        }
        async fn set_standby(&self, name: &str, standby: bool) -> Result<(), Problem> {
            lock(&self.0).push(format!("standby {name} {standby}"));
            Ok(())
        }
    }

    struct Page {
        address: SocketAddr,
        token: Token,
        recorder: Arc<Recorder>,
        _serving: JoinSet<()>,
    }

    impl Page {
        async fn new() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let (recorder, token) = (Arc::new(Recorder::default()), Token::new().unwrap());
            let mut serving = JoinSet::new();
            serving.spawn(serve(listener, Arc::clone(&recorder), token.clone()));
            Page {
                address,
                token,
                recorder,
                _serving: serving,
            }
        }

        async fn send(&self, first: &str, fields: &str, body: &str) -> TcpStream {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            let length = body.len();
            let first = first.replace("TOKEN", self.token.as_str());
            let request =
                format!("{first} HTTP/1.1\r\n{fields}Content-Length: {length}\r\n\r\n{body}");
            stream.write_all(request.as_bytes()).await.unwrap();
            stream
        }

        /// The answer to a request: its status code, and all of its text.
        async fn ask(&self, first: &str, fields: &str, body: &str) -> (u16, String) {
            let mut text = String::new();
            let mut stream = self.send(first, fields, body).await;
            // What it refuses it does not read to its end, which may reset the connection.
            let _ = stream.read_to_string(&mut text).await;
            let code = text.split(' ').nth(1).and_then(|code| code.parse().ok());
            (code.unwrap_or_default(), text)
        }
    }

    const HERE: &str = "Host: localhost\r\n";
    const JSON: &str = "Host: localhost\r\nContent-Type: application/json\r\n";
    const DO: &str = "POST /TOKEN/api/v1/do";
    const STANDBY: &str =
        r#"{"version":1,"request":"paths-standby","path":"wlan0","standby":true}"#;

    #[tokio::test]
    async fn who_has_no_token_or_asks_by_another_name_sees_and_does_nothing() {
        let page = Page::new().await;
        let foreign = "Host: evil.example\r\nContent-Type: application/json\r\n";
        let other = format!("{JSON}Origin: http://evil.example\r\n");
        let long = "x".repeat(5000);
        let stop = r#"{"version":1,"request":"stop"}"#;
        for (code, first, fields, body) in [
            (403, "GET /", HERE, ""),
            (403, "GET /page.js", HERE, ""),
            (403, "GET /00000000000000000000000000000000/", HERE, ""),
            (403, "POST /api/v1/do", JSON, STANDBY),
            (421, "GET /TOKEN/", "Host: evil.example\r\n", ""),
            (421, "GET /", "Host: evil.example\r\n", ""),
            (421, "GET /TOKEN/", "", ""),
            (
                421,
                "GET /TOKEN/",
                "Host: localhost\r\nHost: evil.example\r\n",
                "",
            ),
            (421, DO, foreign, STANDBY),
            (403, DO, &other, STANDBY),
            (415, DO, HERE, STANDBY),
            (413, DO, JSON, &long),
            (400, DO, JSON, stop),
            (400, DO, JSON, "nonsense"),
            (405, "GET /TOKEN/api/v1/do", HERE, ""),
            (405, "POST /TOKEN/", HERE, ""),
            (404, "GET /TOKEN/nothing", HERE, ""),
            (400, "GET /TOKEN/api/v1/history?span=1y", HERE, ""),
        ] {
            let (found, text) = page.ask(first, fields, body).await;
            assert_eq!(found, code, "{first} {fields}: {text}");
            assert!(!text.contains("wlan0"), "{text}");
        }
        assert!(lock(&page.recorder.0).is_empty());
    }

    #[tokio::test]
    async fn buttons_act_and_say_what_came_of_it() {
        let page = Page::new().await;
        let (code, text) = page.ask(DO, JSON, STANDBY).await;
        assert_eq!(code, 200);
        assert!(text.contains(r#""outcome":"done""#), "{text}");
        let remove = r#"{"version":1,"request":"paths-remove","path":"x"}"#;
        let (code, text) = page.ask(DO, JSON, remove).await;
        assert_eq!(code, 400);
        assert!(text.contains("no path `x`"), "{text}");
        assert_eq!(*lock(&page.recorder.0), ["standby wlan0 true"]);
    }

    #[tokio::test]
    async fn the_page_and_its_figures_are_served_with_a_strict_policy() {
        let page = Page::new().await;
        for (path, kind) in [
            ("", "text/html"),
            ("page.js", "text/javascript"),
            ("page.css", "text/css"),
            ("icon.svg", "image/svg+xml"),
            ("api/v1/now", "application/json"),
            ("api/v1/events", "application/json"),
            ("api/v1/history", "application/json"),
            ("api/v1/history?span=24h", "application/json"),
        ] {
            let (code, text) = page.ask(&format!("GET /TOKEN/{path}"), HERE, "").await;
            assert_eq!(code, 200, "{path}");
            let (head, _) = text.split_once("\r\n\r\n").unwrap();
            let head = head.to_ascii_lowercase();
            assert!(head.contains(&format!("content-type: {kind}")), "{head}");
            assert!(
                head.contains("content-security-policy: default-src 'self';"),
                "{head}"
            );
        }
        let (_, now) = page.ask("GET /TOKEN/api/v1/now", HERE, "").await;
        assert!(
            now.contains(r#""name":"wlan0""#) && now.contains(r#""why":{"#),
            "{now}"
        );
    }

    #[tokio::test]
    async fn looks_stream_to_as_many_as_have_a_place() {
        let page = Page::new().await;
        let mut readers = Vec::new();
        for _ in 0..=MAX_ANSWERED {
            let mut stream = page.send("GET /TOKEN/api/v1/live", HERE, "").await;
            let mut text = Vec::new();
            while !String::from_utf8_lossy(&text).contains("event: now\ndata: {\"version\":1") {
                assert!(stream.read_buf(&mut text).await.unwrap() > 0);
            }
            readers.push(stream);
        }
        // The first gave way to the last, with what was on its way to it.
        let mut rest = Vec::new();
        let _ = readers[0].read_to_end(&mut rest).await;
        let last = readers.last_mut().unwrap();
        assert!(last.read_buf(&mut rest).await.unwrap() > 0);
    }
}
