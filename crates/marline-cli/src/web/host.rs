//! The names under which the page may be requested. A page of a stranger's site whose name resolves
//! to this host (DNS rebinding) sends that name.

use hyper::Request;
use hyper::header::HOST;
use hyper::http::uri::Authority;
use std::net::IpAddr;

/// Whether a request asks for this host by `localhost` or a loopback address, and by nothing else.
pub(super) fn asks_locally<B>(request: &Request<B>) -> bool {
    let mut fields = request.headers().get_all(HOST).iter();
    let (Some(field), None) = (fields.next(), fields.next()) else {
        return false;
    };
    let target = request.uri().authority();
    field.to_str().is_ok_and(is_local) && target.is_none_or(|target| is_local(target.as_str()))
}

/// Whether a browser's page that sends a request, if one does, is ours, which is served over TLS or
/// not.
pub(super) fn is_same_origin<B>(request: &Request<B>, is_encrypted: bool) -> bool {
    let text = |name: &str| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    let scheme = if is_encrypted { "https://" } else { "http://" };
    match (text("origin"), text("host")) {
        (None, _) => !request.headers().contains_key("origin"),
        (Some(origin), Some(host)) => origin.strip_prefix(scheme) == Some(host),
        (Some(_), None) => false,
    }
}

fn is_local(authority: &str) -> bool {
    // Port and address of another host are no part of a user's name.
    let Ok(authority) = authority.parse::<Authority>() else {
        return false;
    };
    let host = authority.host();
    if authority.as_str().contains('@') {
        return false;
    }
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_local() {
        for own in [
            "127.0.0.1:9080",
            "127.0.0.1",
            "localhost:1",
            "LOCALHOST",
            "[::1]:9080",
        ] {
            assert!(is_local(own), "{own}");
        }
        for foreign in [
            "evil.example",
            "evil.example:9080",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "192.0.2.7:9080",
            "0.0.0.0",
            "[2001:db8::1]",
            "x@localhost",
            "",
            ":9080",
            "[::1",
        ] {
            assert!(!is_local(foreign), "{foreign}");
        }
    }

    #[test]
    fn pages_of_others_are_told_by_their_origin() {
        let from = |origin: Option<&str>| {
            let request = Request::builder().header("host", "127.0.0.1:9080");
            let request = match origin {
                Some(origin) => request.header("origin", origin),
                None => request,
            };
            is_same_origin(&request.body(()).unwrap(), false)
        };
        assert!(from(None) && from(Some("http://127.0.0.1:9080")));
        for other in ["http://127.0.0.1:8080", "https://evil.example", "null", ""] {
            assert!(!from(Some(other)), "{other}");
        }
    }
}
