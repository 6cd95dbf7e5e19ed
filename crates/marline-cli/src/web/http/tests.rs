use super::*;
use crate::control::status::tests::example;
use crate::control::{Problem, Status};
use crate::web::{Certificate, Login, Password, Token};
use marline::Path;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use tokio::io::AsyncReadExt;
use tokio_rustls::TlsConnector;

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
        let door = Door::Token(token.clone());
        serving.spawn(serve(listener, Arc::clone(&recorder), door));
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
        let request = format!("{first} HTTP/1.1\r\n{fields}Content-Length: {length}\r\n\r\n{body}");
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
const STANDBY: &str = r#"{"version":1,"request":"paths-standby","path":"wlan0","standby":true}"#;

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

/// A page for who logs in, and what the client of its TLS trusts.
struct Protected {
    address: SocketAddr,
    token: Token,
    client: TlsConnector,
    password: String,
    recorder: Arc<Recorder>,
    _serving: JoinSet<()>,
}

impl Protected {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [pem, file] = ["page.pem", "password"].map(|name| folder.path().join(name));
        let certificate = Certificate::own(Some(&pem), [127, 0, 0, 1].into()).unwrap();
        let login = Login::new(Password::kept(&file).unwrap());
        let mut roots = RootCertStore::empty();
        let trusted = CertificateDer::from_pem_file(&pem).unwrap();
        roots.add(trusted).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (recorder, token) = (Arc::new(Recorder::default()), Token::new().unwrap());
        let door = Door::Login(token.clone(), login, certificate.tls().unwrap());
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&recorder), door));
        Protected {
            address,
            token,
            client: TlsConnector::from(Arc::new(client)),
            password: std::fs::read_to_string(&file).unwrap().trim().to_owned(),
            recorder,
            _serving: serving,
        }
    }

    /// The whole answer to a request.
    async fn ask(&self, first: &str, fields: &str, body: &str) -> String {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = "localhost".try_into().unwrap();
        let mut stream = self.client.connect(name, stream).await.unwrap();
        let length = body.len();
        let first = first.replace("TOKEN", self.token.as_str());
        let request = format!(
            "{first} HTTP/1.1\r\nHost: van.example:9080\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text).await;
        text
    }
}

#[tokio::test]
async fn others_see_the_page_after_a_login_and_until_they_leave() {
    let page = Protected::new().await;
    let now = "GET /TOKEN/api/v1/now";
    let form = page.ask("GET /login", "", "").await;
    assert!(
        form.contains("200 OK") && form.contains("name=\"password\""),
        "{form}"
    );
    assert!(page.ask("GET /page.css", "", "").await.contains("text/css"));
    assert!(page.ask("GET /", "", "").await.contains("location: /login"));
    assert!(page.ask(now, "", "").await.starts_with("HTTP/1.1 403"));

    let password = format!("password={}", page.password);
    let entered = page.ask("POST /login", "", &password).await;
    assert!(entered.starts_with("HTTP/1.1 303"), "{entered}");
    assert!(entered.contains(&format!("location: /{}/", page.token.as_str())));
    let cookie = entered
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .unwrap();
    for part in ["Path=/", "Secure", "HttpOnly", "SameSite=Strict"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let fields = format!("Cookie: {}\r\n", cookie.split(';').next().unwrap());
    assert!(
        page.ask(now, &fields, "")
            .await
            .contains(r#""name":"wlan0""#)
    );
    let json = format!("{fields}Content-Type: application/json\r\n");
    let other = format!("{json}Origin: https://evil.example\r\n");
    assert!(
        page.ask(DO, &other, STANDBY)
            .await
            .starts_with("HTTP/1.1 403")
    );
    let own = format!("{json}Origin: https://van.example:9080\r\n");
    assert!(
        page.ask(DO, &own, STANDBY)
            .await
            .contains(r#""outcome":"done""#)
    );
    assert_eq!(*lock(&page.recorder.0), ["standby wlan0 true"]);

    let left = page.ask("POST /logout", &fields, "").await;
    assert!(left.contains("Max-Age=0"), "{left}");
    assert!(page.ask(now, &fields, "").await.starts_with("HTTP/1.1 403"));
}

#[tokio::test]
async fn a_wrong_password_is_said_and_delays_the_next_try() {
    let page = Protected::new().await;
    let wrong = page.ask("POST /login", "", "password=guess").await;
    assert!(
        wrong.starts_with("HTTP/1.1 403") && wrong.contains("not the password"),
        "{wrong}"
    );
    let password = format!("password={}", page.password);
    let soon = page.ask("POST /login", "", &password).await;
    assert!(
        soon.starts_with("HTTP/1.1 429") && soon.contains("retry-after: 1"),
        "{soon}"
    );
    let none = page.ask("POST /login", "", "word=x").await;
    assert!(none.starts_with("HTTP/1.1 400"), "{none}");
}

#[tokio::test]
async fn who_speaks_no_tls_is_told_so() {
    let page = Protected::new().await;
    let mut stream = TcpStream::connect(page.address).await.unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text).await;
    assert!(text.contains("begins with https://"), "{text}");
}
