//! Who has logged in: a password, asked once, and a cookie that stands for it from then on.

use super::kept::kept;
use super::token::{Token, random};
use marline::support::lock;
use ring::digest::{SHA256, digest};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// Shortest password (characters). NIST SP 800-63B-4 asks for 15 where nothing stands beside it;
/// here an address has one try a second.
const SHORTEST: usize = 12;
/// How long an address whose password was wrong may not try again: 86 400 tries a day. A choice.
const PAUSE: Duration = Duration::from_secs(1);
/// Addresses that are remembered for it, some 50 bytes each. A choice.
const REMEMBERED: usize = 4096;
/// How long a login lasts: a phone asks once a month. A choice.
pub(super) const LASTS: Duration = Duration::from_secs(30 * 24 * 3600);
/// Logins at a time, one a browser; one more ends the oldest. A choice.
const LOGINS: usize = 32;

/// What opens the page.
#[derive(Clone, PartialEq, Eq)]
pub struct Password([u8; 32]);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(..)")
    }
}

impl Password {
    /// That of `file`, in which a random one is written if there is no such file.
    ///
    /// # Errors
    /// The file cannot be read or made, is open to others, or holds a password that is too short.
    pub fn kept(file: &Path) -> io::Result<Self> {
        kept(file, new, read)
    }

    fn is(&self, text: &str) -> bool {
        hash(text).ct_eq(&self.0).into()
    }
}

fn hash(text: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    bytes
}

/// Four groups of four letters, which a thumb types: 80 random bits.
fn new() -> io::Result<String> {
    /// Without those that look like another.
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let letters = random::<16>()?.map(|byte| char::from(LETTERS[usize::from(byte) % 32]));
    let groups = letters.chunks(4).map(|four| four.iter().collect());
    Ok(groups.collect::<Vec<String>>().join("-"))
}

fn read(text: &str) -> io::Result<Password> {
    let text = text.trim_end_matches(['\r', '\n']);
    match text.chars().count() {
        SHORTEST.. => Ok(Password(hash(text))),
        short => Err(io::Error::new(
            ErrorKind::InvalidData,
            format!(
                "its password has {short} characters: write {SHORTEST} or more, or remove it for \
                 a random one"
            ),
        )),
    }
}

/// What came of a try.
#[derive(Debug)]
pub(super) enum Try {
    /// The value of the cookie.
    Right(Token),
    Wrong,
    /// The last one was a moment ago.
    TooSoon,
}

/// The password, who was wrong about it lately, and who was not.
#[derive(Debug)]
pub struct Login {
    password: Password,
    pauses: Mutex<BTreeMap<IpAddr, Instant>>,
    cookies: Mutex<VecDeque<(Token, Instant)>>,
}

impl Login {
    /// Nobody has logged in.
    pub fn new(password: Password) -> Self {
        Login {
            password,
            pauses: Mutex::default(),
            cookies: Mutex::default(),
        }
    }

    /// A try from `from`. Others are not held up by it, whoever tries how often.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(super) fn attempt(&self, text: &str, from: IpAddr, now: Instant) -> io::Result<Try> {
        let from = network(from);
        let mut pauses = lock(&self.pauses);
        if pauses.get(&from).is_some_and(|until| now < *until) {
            return Ok(Try::TooSoon);
        }
        if !self.password.is(text) {
            pauses.retain(|_, until| now < *until);
            while pauses.len() >= REMEMBERED {
                pauses.pop_first();
            }
            pauses.insert(from, now + PAUSE);
            return Ok(Try::Wrong);
        }
        pauses.remove(&from);
        drop(pauses);
        let cookie = Token::new()?;
        let mut cookies = lock(&self.cookies);
        cookies.retain(|(_, until)| now < *until);
        while cookies.len() >= LOGINS {
            cookies.pop_front();
        }
        cookies.push_back((cookie.clone(), now + LASTS));
        Ok(Try::Right(cookie))
    }

    /// Whether this is the cookie of somebody who has logged in.
    pub(super) fn knows(&self, cookie: &str, now: Instant) -> bool {
        let cookies = lock(&self.cookies);
        let mut valid = cookies.iter().filter(|(_, until)| now < *until);
        valid.any(|(known, _)| known.is(cookie))
    }

    /// Whose cookie this is has logged out.
    pub(super) fn leave(&self, cookie: &str) {
        lock(&self.cookies).retain(|(known, _)| !known.is(cookie));
    }
}

/// What one host has of addresses: in IPv6 at least a /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login() -> Login {
        Login::new(read("correct horse battery\n").unwrap())
    }

    #[test]
    fn a_password_is_made_once_and_a_short_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("web-password");
        let made = Password::kept(&file).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.trim_end().len(), 19, "{text}");
        assert!(made.is(text.trim_end()) && !made.is(&text));
        assert_eq!(Password::kept(&file).unwrap(), made);
        std::fs::write(&file, "short\n").unwrap();
        let error = Password::kept(&file).unwrap_err();
        assert!(error.to_string().contains("has 5 characters"), "{error}");
    }

    #[test]
    fn who_is_wrong_waits_and_keeps_nobody_else_out() {
        let (login, now) = (login(), Instant::now());
        let [guesser, owner]: [IpAddr; 2] =
            ["2001:db8::1", "192.0.2.1"].map(|a| a.parse().unwrap());
        let neighbour: IpAddr = "2001:db8::2".parse().unwrap();
        let right = "correct horse battery";
        assert!(matches!(
            login.attempt("guess", guesser, now),
            Ok(Try::Wrong)
        ));
        for from in [guesser, neighbour] {
            assert!(matches!(login.attempt(right, from, now), Ok(Try::TooSoon)));
        }
        assert!(matches!(
            login.attempt(right, owner, now),
            Ok(Try::Right(_))
        ));
        let later = now + PAUSE;
        assert!(matches!(
            login.attempt(right, guesser, later),
            Ok(Try::Right(_))
        ));
        for n in 0..2 * REMEMBERED as u32 {
            let _ = login.attempt(
                "guess",
                Ipv6Addr::from_bits(u128::from(n) << 64).into(),
                now,
            );
        }
        assert!(lock(&login.pauses).len() <= REMEMBERED);
    }

    #[test]
    fn a_login_ends_with_its_time_by_leaving_or_by_newer_ones() {
        let (login, now) = (login(), Instant::now());
        let from = IpAddr::from([192, 0, 2, 1]);
        let enter = || match login.attempt("correct horse battery", from, now) {
            Ok(Try::Right(cookie)) => cookie,
            other => panic!("{other:?}"),
        };
        let (first, second) = (enter(), enter());
        assert!(login.knows(first.as_str(), now) && !login.knows("", now));
        assert!(!login.knows(first.as_str(), now + LASTS));
        login.leave(second.as_str());
        assert!(!login.knows(second.as_str(), now) && login.knows(first.as_str(), now));
        for _ in 0..LOGINS {
            enter();
        }
        assert!(!login.knows(first.as_str(), now));
        assert_eq!(lock(&login.cookies).len(), LOGINS);
    }
}
