//! Where the page about the program is served, to whom, and where its secrets are kept.

use super::Source;
use super::error::{ConfigError, Placed as _};
use super::folders::default_state;
use super::keys::Raw;
use super::written::Written;
use marline_base::text::{Problem, listen_address};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebPage {
    /// Any address with a login, else one of loopback.
    pub address: SocketAddr,
    /// Keeps the token of its address; without a place for it each start has another one.
    pub token: Option<PathBuf>,
    /// Whether it is served over TLS, to those who log in.
    pub login: Option<WebLogin>,
}

/// What protects a page that other hosts may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebLogin {
    /// Holds the password.
    pub password: PathBuf,
    /// Holds certificate and key.
    pub certificate: WebCertificate,
}

/// Where the page's certificate is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebCertificate {
    /// An authority's, or whoever made this file.
    Given(PathBuf),
    /// The program's own; without a place for it each start has another one.
    Own(Option<PathBuf>),
}

/// What is written about the page.
pub(super) struct Web<'a> {
    pub(super) address: Option<&'a Written>,
    pub(super) login: Option<&'a Written>,
    pub(super) certificate: Option<&'a Written>,
}

pub(super) fn web<R: Raw>(
    source: &Source<R>,
    written: Web<'_>,
) -> Result<Option<WebPage>, ConfigError> {
    let alone = |key: &str, value: &Written, other: &str, hint: &str| {
        let problem = Problem::new(format!("`{other}` is not given, to which it belongs"));
        Err(problem.hint(hint).at(source.place(key, value)))
    };
    match (written.login, written.certificate) {
        (None, Some(value)) => {
            let hint = "give `web-login`, too: the file with the page's password";
            return alone("web-certificate", value, "web-login", hint);
        }
        (Some(value), _) if written.address.is_none() => {
            let hint = "give `web`, too: 0.0.0.0:9080, or another address of this host";
            return alone("web-login", value, "web", hint);
        }
        _ => {}
    }
    let Some(value) = written.address else {
        return Ok(None);
    };
    let address = source.read("web", value, |text| {
        let address = listen_address(text)?;
        match address.ip().is_loopback() || written.login.is_some() {
            true => Ok(address),
            false => {
                let port = address.port();
                Err(Problem::new(format!(
                    "other hosts reach {}, and the page would be open to them",
                    address.ip()
                ))
                .hint(format!(
                    "give `web-login`, a file for its password, and it is served over TLS to who \
                     knows that; or use 127.0.0.1:{port} and, from another host, \
                     `ssh -L {port}:127.0.0.1:{port} HOST`"
                )))
            }
        }
    })?;
    let login = written.login.map(|file| WebLogin {
        password: source.resolve(file),
        certificate: match written.certificate {
            Some(file) => WebCertificate::Given(source.resolve(file)),
            None => WebCertificate::Own(default_state("web-certificate.pem")),
        },
    });
    Ok(Some(WebPage {
        address,
        token: default_state("web-token"),
        login,
    }))
}
