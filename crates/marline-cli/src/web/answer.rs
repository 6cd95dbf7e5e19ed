//! What is answered at which address. All but the login lies below `/TOKEN/`.

use super::door::{Admission, Door, LOGGED_IN, cookies};
use super::history::Span;
use super::login::{LASTS, Try};
use super::watch::Watched;
use crate::control::Manage;
use crate::control::protocol::{MAX_REQUEST, Outcome, Reply, Request as Action, parse_request};
use crate::control::server::{Wishes, answer as carry_out};
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, RETRY_AFTER, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use marline::support::lock;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// A body that is here, or one that is made while it is read.
pub(super) type Body = Either<Full<Bytes>, Channel<Bytes>>;

/// Nothing but this host's own files runs in the page, and nothing leaves it.
const CSP: &str = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/// Most bytes of a login: a password of a thousand characters, each escaped. A choice.
const MAX_LOGIN: usize = 4096;
/// The form that asks for the password; its second half after a remark.
const FORM: [&str; 2] = [
    include_str!("login/before.html"),
    include_str!("login/after.html"),
];
const JSON: &str = "application/json";
/// How long a reader may take nothing.
pub(super) const STALLED: Duration = Duration::from_secs(10);

/// The page: where, what, and its bytes.
const FILES: [(&str, &str, &[u8]); 4] = [
    (
        "",
        "text/html; charset=utf-8",
        include_bytes!("built/index.html"),
    ),
    (
        "page.js",
        "text/javascript; charset=utf-8",
        include_bytes!("built/page.js"),
    ),
    (
        "page.css",
        "text/css; charset=utf-8",
        include_bytes!("built/page.css"),
    ),
    (
        "icon.svg",
        "image/svg+xml",
        include_bytes!("built/icon.svg"),
    ),
];

/// What all requests share.
#[derive(Debug)]
pub(super) struct Site<M> {
    pub(super) managed: Arc<M>,
    pub(super) watched: Arc<Watched>,
    pub(super) door: Door,
}

/// An answer, and what makes its body if that takes longer than the answer.
pub(super) struct Answer<F> {
    pub(super) response: Response<Body>,
    pub(super) making: Option<F>,
}

fn whole(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Either::Left(Full::new(body.into())));
    *response.status_mut() = status;
    typed(&mut response, kind);
    response
}

fn typed(response: &mut Response<Body>, kind: &'static str) {
    let headers = response.headers_mut();
    let fields: [(HeaderName, &'static str); 6] = [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, CSP),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // The address is a secret; with no referrer at all, browsers hide the origin of POSTs.
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in fields {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    whole(status, "text/plain; charset=utf-8", text)
}

/// Answers one request from `from`, which comes to `admission`; `end` ends its connection.
pub(super) async fn answer<M: Manage>(
    request: Request<Incoming>,
    admission: Admission,
    from: IpAddr,
    site: Arc<Site<M>>,
    end: CancellationToken,
) -> Answer<impl Future<Output = ()> + Send> {
    let (mut response, stream) = match admission {
        Admission::Inside(path) => route(&path, request, &site).await,
        other => (outside(other, request, from, &site.door).await, None),
    };
    let making = stream.map(|stream| {
        let (sender, body) = Channel::new(1);
        *response.body_mut() = Either::Right(body);
        let watched = Arc::clone(&site.watched);
        async move {
            let made = match stream {
                Stream::Live => live(sender, &watched).await,
                Stream::History(span) => history(sender, &watched, span).await,
            };
            if made.is_none() {
                end.cancel();
            }
        }
    });
    Answer { response, making }
}

/// Answers who is not inside.
async fn outside(
    admission: Admission,
    request: Request<Incoming>,
    from: IpAddr,
    door: &Door,
) -> Response<Body> {
    match (admission, door) {
        (Admission::Refused(status, text), _) => plain(status, text),
        (Admission::Form, _) => form(StatusCode::OK, ""),
        (Admission::File(name), _) => file(name).unwrap_or_else(nothing),
        (Admission::Password, Door::Login(token, login, _)) => {
            let Some(password) = password(request).await else {
                return plain(StatusCode::BAD_REQUEST, "send the form's `password`\n");
            };
            match login.attempt(&password, from, Instant::now()) {
                Ok(Try::Right(cookie)) => {
                    tracing::info!("{from} has logged in at the page");
                    let mut response = to(&format!("/{}/", token.as_str()));
                    set_cookie(&mut response, cookie.as_str(), LASTS);
                    response
                }
                Ok(Try::Wrong) => form(StatusCode::FORBIDDEN, "That is not the password."),
                Ok(Try::TooSoon) => {
                    let mut response = form(
                        StatusCode::TOO_MANY_REQUESTS,
                        "The last password was wrong: wait a second and try again.",
                    );
                    let second = HeaderValue::from_static("1");
                    response.headers_mut().insert(RETRY_AFTER, second);
                    response
                }
                Err(error) => {
                    tracing::warn!(%error, "nobody can log in at the page");
                    plain(StatusCode::INTERNAL_SERVER_ERROR, "not now; see the log\n")
                }
            }
        }
        (Admission::Leave, Door::Login(_, login, _)) => {
            cookies(&request).for_each(|cookie| login.leave(cookie));
            let mut response = to("/login");
            set_cookie(&mut response, "", Duration::ZERO);
            response
        }
        (Admission::ToForm, _) => to("/login"),
        (Admission::Inside(_) | Admission::Password | Admission::Leave, _) => nothing(),
    }
}

/// The form that asks for the password, with a remark.
fn form(status: StatusCode, remark: &str) -> Response<Body> {
    let [before, after] = FORM;
    whole(
        status,
        "text/html; charset=utf-8",
        [before, remark, after].concat(),
    )
}

/// Sends a browser elsewhere.
fn to(place: &str) -> Response<Body> {
    let mut response = plain(StatusCode::SEE_OTHER, "");
    if let Ok(place) = HeaderValue::from_str(place) {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

fn set_cookie(response: &mut Response<Body>, value: &str, lasts: Duration) {
    let lasts = lasts.as_secs();
    let text =
        format!("{LOGGED_IN}={value}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={lasts}");
    if let Ok(text) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(SET_COOKIE, text);
    }
}

/// What stands in the form's field.
async fn password(request: Request<Incoming>) -> Option<String> {
    let body = Limited::new(request.into_body(), MAX_LOGIN).collect();
    let body = timeout(STALLED, body).await.ok()?.ok()?.to_bytes();
    let mut fields = form_urlencoded::parse(&body);
    let (_, value) = fields.find(|(name, _)| name == "password")?;
    Some(value.into_owned())
}

/// A body that is made while it is read.
enum Stream {
    Live,
    History(Span),
}

async fn route<M: Manage>(
    path: &str,
    request: Request<Incoming>,
    site: &Site<M>,
) -> (Response<Body>, Option<Stream>) {
    if path == "api/v1/do" {
        let answer = match *request.method() {
            Method::POST => act(request, site).await,
            _ => not_allowed("POST"),
        };
        return (answer, None);
    }
    if request.method() != Method::GET {
        return (not_allowed("GET"), None);
    }
    if let Some(response) = file(path) {
        return (response, None);
    }
    let streamed = |kind, stream| (whole(StatusCode::OK, kind, ""), Some(stream));
    match (path, request.uri().query()) {
        ("api/v1/now", _) => (now(site).await, None),
        ("api/v1/events", _) => {
            let store = lock(&site.watched.store);
            let events: Vec<_> = store.events_after(0).collect();
            let text = serde_json::json!({ "version": super::store::VERSION, "events": events });
            (whole(StatusCode::OK, JSON, text.to_string()), None)
        }
        ("api/v1/history", None | Some("span=10m")) => streamed(JSON, Stream::History(Span::Fine)),
        ("api/v1/history", Some("span=24h")) => streamed(JSON, Stream::History(Span::Coarse)),
        ("api/v1/history", _) => {
            let answer = plain(StatusCode::BAD_REQUEST, "give span=10m or span=24h\n");
            (answer, None)
        }
        ("api/v1/live", _) => streamed("text/event-stream", Stream::Live),
        _ => (nothing(), None),
    }
}

/// A file of the page.
fn file(path: &str) -> Option<Response<Body>> {
    let (_, kind, bytes) = FILES.iter().find(|(name, ..)| *name == path)?;
    Some(whole(StatusCode::OK, kind, *bytes))
}

fn nothing() -> Response<Body> {
    plain(StatusCode::NOT_FOUND, "nothing is here; see docs/WEB.md\n")
}

fn not_allowed(method: &'static str) -> Response<Body> {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "not by this method\n");
    let allow = HeaderValue::from_static(method);
    response.headers_mut().insert(ALLOW, allow);
    response
}

/// The newest look, or one that is taken now while there is none yet.
async fn now<M: Manage>(site: &Site<M>) -> Response<Body> {
    let mut newest = site.watched.follow();
    let made = timeout(STALLED, newest.wait_for(|text| !text.is_empty())).await;
    match made {
        Ok(Ok(text)) => whole(StatusCode::OK, JSON, text.clone()),
        _ => plain(StatusCode::SERVICE_UNAVAILABLE, "nothing was seen yet\n"),
    }
}

/// Carries out what a button says, in the language of the control socket.
async fn act<M: Manage>(request: Request<Incoming>, site: &Site<M>) -> Response<Body> {
    // A form of another site cannot send this type without asking first.
    let kind = request.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if kind.split(';').next().map(str::trim) != Some(JSON) {
        return plain(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "send application/json\n",
        );
    }
    let body = Limited::new(request.into_body(), MAX_REQUEST).collect();
    let Ok(Ok(body)) = timeout(STALLED, body).await else {
        return plain(
            StatusCode::PAYLOAD_TOO_LARGE,
            "a request has at most 4096 bytes\n",
        );
    };
    let outcome = match parse_request(&body.to_bytes()) {
        Ok(
            action @ (Action::PathsAdd { .. }
            | Action::PathsRemove { .. }
            | Action::PathsStandby { .. }
            | Action::LiveTarget { .. }),
        ) => carry_out(action, site.managed.as_ref(), &Wishes::default()).await,
        Ok(Action::Status | Action::Record { .. } | Action::Reload | Action::Stop) => {
            Outcome::Error {
                message: "the page does not do that".to_owned(),
                hint: Some("it changes paths and live targets; use the control socket".to_owned()),
            }
        }
        Err(message) => Outcome::Error {
            message,
            hint: None,
        },
    };
    let status = match outcome {
        Outcome::Error { .. } => StatusCode::BAD_REQUEST,
        Outcome::Done { .. } | Outcome::Status { .. } | Outcome::Recorded { .. } => StatusCode::OK,
    };
    let text = serde_json::to_vec(&Reply::from(outcome)).unwrap_or_default();
    whole(status, JSON, text)
}

/// Hands over a part; `None` when the reader is gone or takes nothing.
async fn hand(sender: &mut Sender<Bytes>, part: impl Into<Bytes>) -> Option<()> {
    let sent = timeout(STALLED, sender.send_data(part.into())).await;
    sent.ok()?.ok()
}

/// Every look and every event from now on. Who reads too slowly misses looks, never events.
async fn live(mut sender: Sender<Bytes>, watched: &Watched) -> Option<()> {
    let mut newest = watched.follow();
    newest.mark_changed();
    let mut seen = lock(&watched.store).newest();
    loop {
        newest.changed().await.ok()?;
        let mut text = Vec::new();
        {
            let store = lock(&watched.store);
            for event in store.events_after(seen) {
                text.extend(b"event: event\ndata: ");
                text.extend(serde_json::to_vec(event).ok()?);
                text.extend(b"\n\n");
            }
            seen = store.newest();
        }
        let look = newest.borrow_and_update().clone();
        if !look.is_empty() {
            text.extend(b"event: now\ndata: ");
            text.extend(&look);
            text.extend(b"\n\n");
        }
        hand(&mut sender, text).await?;
    }
}

async fn history(mut sender: Sender<Bytes>, watched: &Watched, span: Span) -> Option<()> {
    let parts = lock(&watched.store).parts();
    for part in 0..parts {
        // Another look may come in between: each series says when its last row was.
        let text = lock(&watched.store).history(span, part, part + 1 == parts);
        if !text.is_empty() {
            hand(&mut sender, text).await?;
        }
    }
    Some(())
}
