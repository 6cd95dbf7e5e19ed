//! HTTP CONNECT (RFC 9110 section 9.3.6), on the same port as SOCKS5: many programs speak only
//! this.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::login::SocksLogin;
use super::reach::Unreached;
use super::relay::{ResetOnDrop, relay};
use super::reply::Refusal;
use super::{AsObjects, OpenError, Protocol, Target, Tunnel};

/// Longest head of a request (bytes): RFC 9110 section 4.1 asks for 8000 of the target alone, and
/// nginx and Apache take no longer line.
const LONGEST: usize = 8 << 10;
/// Most header fields of one; browsers and curl send fewer than ten with CONNECT.
const FIELDS: usize = 64;

/// Why a request was not served.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("answered with status {0}")]
    Answered(u16),
    #[error(transparent)]
    Unreached(#[from] Unreached),
}

/// A request that is well formed and allowed, and what came after it already.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    target: Target,
    early: Vec<u8>,
}

/// Reads a request, and answers one that is not served. With a `login` it must have that.
///
/// # Errors
/// The client's connection ends, or it was answered.
pub(super) async fn read<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    login: Option<&SocksLogin>,
) -> Result<Request, HttpError> {
    let mut head = Vec::new();
    let judged = loop {
        if head.len() >= LONGEST {
            break Err(Status::TooLong);
        }
        let mut part = [0; 1024];
        let length = stream.read(&mut part).await?;
        if length == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        head.extend_from_slice(&part[..length]);
        if let Some(judged) = judge(&head, login) {
            break judged;
        }
    };
    match judged {
        Ok(request) => Ok(request),
        Err(status) => {
            answer(stream, status).await?;
            Err(HttpError::Answered(status.code()))
        }
    }
}

/// Reaches the target of `request` and carries both ways.
///
/// # Errors
/// It is not reached, which the client was answered, or one of both ends early.
pub(super) async fn serve<T: Tunnel>(
    mut stream: TcpStream,
    request: Request,
    objects: AsObjects,
    tunnel: &T,
) -> Result<(), HttpError> {
    let Request { target, early } = request;
    match super::reach::reach(target, objects, tunnel).await {
        Ok((mut flow, _)) => {
            stream
                .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                .await?;
            if !early.is_empty() {
                flow.write_all(&early).await?;
                flow.flush().await?;
            }
            relay(ResetOnDrop::new(stream)?, &mut flow).await?;
            Ok(())
        }
        Err(error) => {
            answer(&mut stream, Status::of(&error)).await?;
            Err(error.into())
        }
    }
}

/// What a client is answered when it gets no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    BadRequest,
    NotAllowed,
    OnlyConnect,
    Login,
    TooLong,
    Unreachable,
    NoSession,
    TimedOut,
}

impl Status {
    fn of(error: &Unreached) -> Self {
        match error {
            Unreached::Open(OpenError::NoSession(_)) | Unreached::Lost(_) => Status::NoSession,
            Unreached::Open(_) => Status::Unreachable,
            Unreached::Refused { refusal, .. } => match refusal {
                Refusal::NotAllowed => Status::NotAllowed,
                Refusal::TimedOut => Status::TimedOut,
                _ => Status::Unreachable,
            },
        }
    }

    fn code(self) -> u16 {
        match self {
            Status::BadRequest => 400,
            Status::NotAllowed => 403,
            Status::OnlyConnect => 405,
            Status::Login => 407,
            Status::TooLong => 431,
            Status::Unreachable => 502,
            Status::NoSession => 503,
            Status::TimedOut => 504,
        }
    }

    /// Its reason phrase, further header fields, and what a person reads.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Status::BadRequest => ("Bad Request", "", "This is no CONNECT request."),
            Status::NotAllowed => ("Forbidden", "", "The server does not allow this target."),
            Status::OnlyConnect => (
                "Method Not Allowed",
                "Allow: CONNECT\r\n",
                "This proxy takes CONNECT and SOCKS5: set it as the proxy for HTTPS, or as a SOCKS5 proxy.",
            ),
            Status::Login => (
                "Proxy Authentication Required",
                "Proxy-Authenticate: Basic realm=\"marline\"\r\n",
                "This proxy wants a user name and a password.",
            ),
            Status::TooLong => (
                "Request Header Fields Too Large",
                "",
                "The request is too long.",
            ),
            Status::Unreachable => ("Bad Gateway", "", "The target cannot be reached."),
            Status::NoSession => (
                "Service Unavailable",
                "",
                "There is no session with the server.",
            ),
            Status::TimedOut => ("Gateway Timeout", "", "The target does not answer."),
        }
    }
}

/// What the bytes so far ask for; `None` while they are not whole.
fn judge(head: &[u8], login: Option<&SocksLogin>) -> Option<Result<Request, Status>> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(head) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return None,
        Err(httparse::Error::TooManyHeaders) => return Some(Err(Status::TooLong)),
        Err(_) => return Some(Err(Status::BadRequest)),
    };
    if login.is_some_and(|login| !has(request.headers, login)) {
        return Some(Err(Status::Login));
    }
    if request.method != Some("CONNECT") {
        return Some(Err(Status::OnlyConnect));
    }
    let target = Target::parse(Protocol::Tcp, request.path.unwrap_or_default());
    Some(match target {
        Ok(target) => Ok(Request {
            target,
            early: head[length..].to_vec(),
        }),
        Err(_) => Err(Status::BadRequest),
    })
}

/// Do these fields have the login (RFC 7617)?
fn has(fields: &[httparse::Header<'_>], login: &SocksLogin) -> bool {
    const BASIC: &[u8] = b"basic ";
    let mut given = fields
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case("Proxy-Authorization"));
    let value = given.next().map_or(&[][..], |field| field.value);
    match value.split_at_checked(BASIC.len()) {
        Some((scheme, value)) if scheme.eq_ignore_ascii_case(BASIC) => {
            let given = STANDARD.decode(value.trim_ascii());
            given.is_ok_and(|given| login.is(&given))
        }
        _ => false,
    }
}

async fn answer<S: AsyncWrite + Unpin>(stream: &mut S, status: Status) -> io::Result<()> {
    let (reason, fields, text) = status.words();
    let (code, length) = (status.code(), text.len() + 1);
    let answer = format!(
        "HTTP/1.1 {code} {reason}\r\n{fields}Content-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}\n"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn login() -> SocksLogin {
        SocksLogin {
            user: "aladdin".into(),
            password: "open: sesame".into(),
        }
    }

    fn asked(head: &str, login: Option<&SocksLogin>) -> Option<Result<Request, Status>> {
        judge(head.as_bytes(), login)
    }

    #[test]
    fn requests_are_judged_when_they_are_whole() {
        let head = "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n";
        for length in 0..head.len() {
            assert_eq!(asked(&head[..length], None), None, "{length}");
        }
        let request = asked(&format!("{head}early"), None).unwrap().unwrap();
        assert_eq!(request.target.to_string(), "tcp:example.com:443");
        assert_eq!(request.early, b"early");
        for (head, status) in [
            ("GET http://a/ HTTP/1.1\r\n\r\n", Status::OnlyConnect),
            ("CONNECT nowhere HTTP/1.1\r\n\r\n", Status::BadRequest),
            ("CONNECT [::1 HTTP/1.1\r\n\r\n", Status::BadRequest),
            ("CONNECT a:1 HTTP/1.1\r\na\r\n\r\n", Status::BadRequest),
        ] {
            assert_eq!(asked(head, None), Some(Err(status)), "{head}");
        }
        let many = format!("CONNECT a:1 HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65));
        assert_eq!(asked(&many, None), Some(Err(Status::TooLong)));
    }

    #[test]
    fn who_has_no_login_is_asked_for_it() {
        let login = login();
        let with = |field: &str| {
            let head = format!("CONNECT a:1 HTTP/1.1\r\n{field}\r\n\r\n");
            asked(&head, Some(&login)).unwrap().map(|_| ())
        };
        let given = STANDARD.encode("aladdin:open: sesame");
        assert_eq!(with(&format!("Proxy-Authorization: Basic {given}")), Ok(()));
        assert_eq!(with(&format!("proxy-authorization: basic {given}")), Ok(()));
        for field in [
            "A: b".to_owned(),
            format!("Authorization: Basic {given}"),
            format!("Proxy-Authorization: Bearer {given}"),
            format!("Proxy-Authorization: Basic {given}{given}"),
            "Proxy-Authorization: Basic !".to_owned(),
            "Proxy-Authorization: é".to_owned(),
        ] {
            assert_eq!(with(&field), Err(Status::Login), "{field}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(bytes: Vec<u8>) {
            let _ = judge(&bytes, Some(&login()));
            let _ = judge(&[b"CONNECT ", &bytes[..]].concat(), None);
        }
    }

    #[tokio::test]
    async fn what_is_not_served_is_answered_and_too_much_is_not_read() {
        let (mut client, mut proxy) = tokio::io::duplex(64 << 10);
        client.write_all(&[b'A'; 9_000]).await.unwrap();
        let error = read(&mut proxy, None).await.unwrap_err();
        assert!(matches!(error, HttpError::Answered(431)), "{error}");
        drop(proxy);
        let mut said = String::new();
        client.read_to_string(&mut said).await.unwrap();
        assert!(said.starts_with("HTTP/1.1 431 "), "{said}");
        assert!(said.ends_with("The request is too long.\n"), "{said}");
    }
}
