//! The keys of the SOCKS5 proxy: `socks` and those that begin with it.

use super::error::Placed as _;
use super::listening::SOCKS;
use super::source::Source;
use super::tun::switch;
use super::{ConfigError, RawClient};
use marline::support::access;
use marline_apps::proxy::SocksLogin;
use marline_apps::proxy::front::stranger;
use marline_base::text::Problem;
use marline_base::text::listen_address;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// Longest SOCKS user name or password (RFC 1929 section 2).
const MAX_CREDENTIAL: usize = 255;
/// Most that is read of a password file (bytes): a password has one line of 255 bytes, and more may
/// follow it.
const MAX_PASSWORD_FILE: u64 = 64 << 10;

/// Where the proxy listens, if it is wanted, and what it demands of its users.
pub(super) fn socks(
    source: &Source<RawClient>,
) -> Result<(Option<SocketAddr>, Option<SocksLogin>), ConfigError> {
    let login = login(source)?;
    let open = match &source.raw.socks_open {
        Some(value) => source.read("socks-open", value, switch)?,
        None => false,
    };
    let address = match &source.raw.socks {
        Some(value) if value.text == "off" => None,
        Some(value) => Some(source.read("socks", value, |text| {
            let address = listen_address(text)?;
            if stranger(address) && login.is_none() && !open {
                return Err(for_everybody(address));
            }
            Ok(address)
        })?),
        None => Some(SOCKS),
    };
    Ok((address, login))
}

/// The address that the proxy's users are told to send their datagrams to, if it is chosen.
pub(super) fn udp_address(source: &Source<RawClient>) -> Result<Option<IpAddr>, ConfigError> {
    let Some(value) = &source.raw.socks_udp_address else {
        return Ok(None);
    };
    let address = source.read("socks-udp-address", value, |text| {
        let address: Result<IpAddr, _> = text.parse();
        match address {
            Ok(address) if !address.is_unspecified() => Ok(address),
            Ok(_) => Err(Problem::new(format!("nobody can send to `{text}`"))
                .hint("write the address at which programs reach the proxy's host")),
            Err(_) => Err(Problem::new(format!("`{text}` is no address"))
                .hint("write an address without a port, for example `192.0.2.7`")),
        }
    })?;
    match &source.raw.socks {
        Some(socks) if socks.text == "off" => {
            Err(Problem::new("there is no proxy that it could hold for")
                .hint("leave it out, or leave `--socks off` out")
                .at(source.place("socks-udp-address", value)))
        }
        _ => Ok(Some(address)),
    }
}

fn for_everybody(address: SocketAddr) -> Problem {
    let port = address.port();
    Problem::new("everybody who reaches that address could use the server's network, without a password").hint(format!(
        "demand one with --socks-user NAME --socks-password-file FILE, or listen at 127.0.0.1:{port}; if everybody \
         may, say so with --socks-open"
    ))
}

fn login(source: &Source<RawClient>) -> Result<Option<SocksLogin>, ConfigError> {
    let (user, file) = match (&source.raw.socks_user, &source.raw.socks_password_file) {
        (None, None) => return Ok(None),
        (Some(user), Some(file)) => (user, file),
        (Some(_), None) => {
            return Err(
                Problem::new("`socks-user` needs it").at(source.missing("socks-password-file"))
            );
        }
        (None, Some(_)) => {
            return Err(
                Problem::new("`socks-password-file` needs it").at(source.missing("socks-user"))
            );
        }
    };
    let length = |what: &str, text: &str| match text.len() {
        1..=MAX_CREDENTIAL => Ok(text.to_owned()),
        length => Err(Problem::new(format!(
            "the {what} has {length} bytes, SOCKS allows 1 to {MAX_CREDENTIAL}"
        ))),
    };
    let user = source.read("socks-user", user, |text| length("user name", text))?;
    let path = source.resolve(file);
    let password = source.read("socks-password-file", file, |_| {
        let text = secret(&path)?;
        length("password", text.lines().next().unwrap_or_default())
    })?;
    Ok(Some(SocksLogin { user, password }))
}

/// What a file of a secret holds, which others than its owner must not be able to read.
fn secret(path: &Path) -> Result<String, Problem> {
    let unreadable = |error: io::Error| Problem::new(format!("cannot read the file: {error}"));
    let file = File::open(path).map_err(unreadable)?;
    // Of the open file, not of its name: nobody can exchange it in between.
    let metadata = file.metadata().map_err(unreadable)?;
    access::secret(&metadata).map_err(|access::TooOpen { mode }| {
        Problem::new(format!(
            "its permissions are {mode:03o}, so others than its owner may use the password"
        ))
        .hint(format!(
            "run `chmod 600 {}`, and choose another password if somebody may have read this one",
            path.display()
        ))
    })?;
    let mut text = String::new();
    file.take(MAX_PASSWORD_FILE)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    Ok(text)
}
