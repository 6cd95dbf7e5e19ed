//! The token in the page's address: who does not know it is shown nothing. Loopback addresses are
//! open to every user and every browser page of a host.

use super::kept::kept;
use ring::rand::{SecureRandom, SystemRandom};
use std::io::{self, ErrorKind};
use std::path::Path;
use subtle::ConstantTimeEq;

/// Random bytes: as many as a key of AES-128 has, which nobody guesses.
const BYTES: usize = 16;

/// What the page's address contains.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new() -> io::Result<Self> {
        let bytes = random::<BYTES>()?;
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        Ok(Token(digits.collect()))
    }

    /// That of `file`, which is made if there is none or it is empty.
    ///
    /// # Errors
    /// The file cannot be read or made, holds something else, or is open to others.
    pub fn kept(file: &Path) -> io::Result<Self> {
        kept(file, || Ok(Token::new()?.0), read)
    }

    /// Whether `text` is it, in a time that does not depend on how much of it is right.
    pub fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }

    /// As it stands in the address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Bytes that nobody can guess.
///
/// # Errors
/// The system has no random numbers.
pub(super) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the system has no random numbers"))?;
    Ok(bytes)
}

fn read(text: &str) -> io::Result<Token> {
    let text = text.trim();
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.len() == 2 * BYTES && is_hex {
        true => Ok(Token(text.to_owned())),
        false => Err(io::Error::new(
            ErrorKind::InvalidData,
            "it holds no token: remove it for a new one",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_kept_and_is_its_owner_s_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/web-token");
        let token = Token::kept(&file).unwrap();
        assert_eq!(token.as_str().len(), 32);
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(Token::kept(&file).unwrap(), token);
        assert_ne!(Token::new().unwrap(), token);

        assert!(token.is(token.as_str()));
        for wrong in [
            "",
            &token.as_str()[1..],
            &token.as_str().to_uppercase().replace('0', "1"),
        ] {
            assert!(!token.is(wrong), "{wrong}");
        }

        fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        let error = Token::kept(&file).unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
        fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        fs::write(&file, "short\n").unwrap();
        assert_eq!(
            Token::kept(&file).unwrap_err().kind(),
            ErrorKind::InvalidData
        );

        fs::write(&file, "").unwrap();
        let new = Token::kept(&file).unwrap();
        assert_ne!(new, token);
        assert_eq!(Token::kept(&file).unwrap(), new);
    }
}
