//! Who may see the page: on this host who knows its token, from others who has logged in over TLS.

use super::host::{asks_locally, is_same_origin};
use super::login::Login;
use super::tls::Tls;
use super::token::Token;
use hyper::header::{COOKIE, HeaderValue};
use hyper::{Method, Request, StatusCode};
use std::time::Instant;

/// The name of the cookie. Browsers take one with this prefix from this host over TLS alone.
pub(super) const LOGGED_IN: &str = "__Host-marline";

/// Who may see the page.
#[derive(Debug)]
pub enum Door {
    /// Who has its address, which has a token, and asks by a name of this host.
    Token(Token),
    /// Who has that address and has logged in, over TLS.
    Login(Token, Login, Tls),
}

/// What a request comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It is let in, and asks for this, below the token.
    Inside(String),
    /// It asks for what everybody may see who could log in.
    Form,
    /// It carries a password.
    Password,
    /// It is sent to the form.
    ToForm,
    /// Who asks logs out.
    Leave,
    /// A file of the form's.
    File(&'static str),
    Refused(StatusCode, &'static str),
}

impl Door {
    /// What protects what is said here, if anything does.
    pub(super) fn tls(&self) -> Option<&Tls> {
        match self {
            Door::Token(_) => None,
            Door::Login(.., tls) => Some(tls),
        }
    }

    /// What a request comes to.
    pub(super) fn admit<B>(&self, request: &Request<B>, now: Instant) -> Admission {
        let path = request.uri().path().trim_start_matches('/');
        let (given, rest) = path.split_once('/').unwrap_or((path, ""));
        let foreign = Admission::Refused(StatusCode::FORBIDDEN, "a page of another origin asks\n");
        match self {
            Door::Token(_) if !asks_locally(request) => Admission::Refused(
                StatusCode::MISDIRECTED_REQUEST,
                "this is not one of the names here: ask by localhost or a loopback address\n",
            ),
            Door::Token(token) if !token.is(given) => Admission::Refused(
                StatusCode::FORBIDDEN,
                "the address of this page has a token: marline logs it, or in which file it is, \
                 as it starts (`page at http://...`)\n",
            ),
            // By another name a browser finds no certificate for it, and has no cookie.
            _ if !is_same_origin(request, self.tls().is_some()) => foreign,
            Door::Token(_) => Admission::Inside(rest.to_owned()),
            Door::Login(token, login, _) => {
                let is_in = cookies(request).any(|cookie| login.knows(cookie, now));
                match (request.method(), path) {
                    (&Method::GET, "login") => Admission::Form,
                    (&Method::POST, "login") => Admission::Password,
                    (&Method::GET, "page.css") => Admission::File("page.css"),
                    (&Method::GET, "icon.svg") => Admission::File("icon.svg"),
                    (&Method::POST, "logout") if is_in => Admission::Leave,
                    _ if is_in && token.is(given) => Admission::Inside(rest.to_owned()),
                    (&Method::GET, _) if !path.contains("api/") => Admission::ToForm,
                    _ => Admission::Refused(StatusCode::FORBIDDEN, "log in first\n"),
                }
            }
        }
    }
}

/// The values of our cookies that a request has.
pub(super) fn cookies<B>(request: &Request<B>) -> impl Iterator<Item = &str> {
    let fields = request.headers().get_all(COOKIE).iter();
    let texts = fields.filter_map(|field: &HeaderValue| field.to_str().ok());
    let each = texts.flat_map(|text| text.split(';'));
    each.filter_map(|one| one.trim().strip_prefix(LOGGED_IN)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::super::login::{Password, Try};
    use super::super::tls::Certificate;
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    #[test]
    fn nobody_is_inside_without_both_token_and_login() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let password = Password::kept(&file).unwrap();
        let login = Login::new(password);
        let now = Instant::now();
        let text = std::fs::read_to_string(&file).unwrap();
        let from = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let Ok(Try::Right(cookie)) = login.attempt(text.trim_end(), from, now) else {
            panic!("it is the password");
        };
        let token = Token::new().unwrap();
        let inside = format!("/{}/api/v1/now", token.as_str());
        let tls = Certificate::own(None, from).unwrap().tls().unwrap();
        let door = Door::Login(token, login, tls);
        let ask = |method: &str, path: &str, cookie: &str, origin: Option<&str>| {
            let request = Request::builder().method(method).uri(path);
            let request = request
                .header("host", "van.example:9080")
                .header("cookie", cookie);
            let request = match origin {
                Some(origin) => request.header("origin", origin),
                None => request,
            };
            door.admit(&request.body(()).unwrap(), now)
        };
        let good = format!("a=b; {LOGGED_IN}={}", cookie.as_str());
        assert_eq!(
            ask("GET", &inside, &good, None),
            Admission::Inside("api/v1/now".to_owned())
        );
        let own = Some("https://van.example:9080");
        assert_eq!(
            ask("POST", &inside, &good, own),
            Admission::Inside("api/v1/now".to_owned())
        );
        assert_eq!(ask("POST", "/logout", &good, own), Admission::Leave);
        assert_eq!(ask("GET", "/", "", None), Admission::ToForm);
        assert_eq!(ask("GET", "/", &good, None), Admission::ToForm);
        assert_eq!(ask("GET", "/login", "", None), Admission::Form);
        // Who has no cookie may try a password; nothing else is done for who lacks anything.
        assert_eq!(ask("POST", "/login", "", own), Admission::Password);
        for (path, cookie, origin) in [
            (inside.as_str(), "", None),
            (inside.as_str(), "__Host-marline=00", None),
            (inside.as_str(), "__Host-marline=", None),
            ("/0/api/v1/now", good.as_str(), None),
            (inside.as_str(), good.as_str(), Some("https://evil.example")),
            (
                inside.as_str(),
                good.as_str(),
                Some("http://van.example:9080"),
            ),
            ("/login", "", Some("https://evil.example")),
            ("/logout", "", None),
            ("/logout", good.as_str(), Some("https://evil.example")),
        ] {
            let found = ask("POST", path, cookie, origin);
            let refused = matches!(found, Admission::Refused(StatusCode::FORBIDDEN, _));
            assert!(refused, "{path} {cookie}: {found:?}");
        }
    }
}
