//! Where the page about the program is served, and where its token is kept.

use super::Source;
use super::error::ConfigError;
use super::folders::default_state;
use super::keys::Raw;
use super::written::Written;
use marline_base::text::{Problem, listen_address};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebPage {
    /// A loopback address: what is said there is neither encrypted nor asks for a login.
    pub address: SocketAddr,
    /// Keeps the token of its address; without a place for it each start has another one.
    pub token: Option<PathBuf>,
}

pub(super) fn web<R: Raw>(
    source: &Source<R>,
    value: Option<&Written>,
) -> Result<Option<WebPage>, ConfigError> {
    let Some(value) = value else { return Ok(None) };
    let address = source.read("web", value, |text| {
        let address = listen_address(text)?;
        match address.ip().is_loopback() {
            true => Ok(address),
            false => {
                let port = address.port();
                Err(Problem::new(format!(
                    "the page is served at loopback addresses only, and {} is none",
                    address.ip()
                ))
                .hint(format!(
                    "use 127.0.0.1:{port}; from another host `ssh -L {port}:127.0.0.1:{port} HOST` \
                     brings it there, encrypted and with a login"
                )))
            }
        }
    })?;
    Ok(Some(WebPage {
        address,
        token: default_state("web-token"),
    }))
}
