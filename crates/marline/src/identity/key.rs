use std::fmt;
use std::str::FromStr;

use data_encoding::BASE32_NOPAD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{Ed25519KeyPair, KeyPair};
use ring::{digest, hmac};
use zeroize::Zeroizing;

const PUBLIC_PREFIX: &str = "marline-pub:";
const SECRET_PREFIX: &str = "marline-secret:";

/// 32 bytes of key and 3 of checksum are 280 bits: 56 characters of base32, no padding.
const CHECKSUM_BYTES: usize = 3;
const TEXT_CHARS: usize = 56;

/// DER of `SubjectPublicKeyInfo` for Ed25519 up to the key itself (RFC 8410 section 4).
const SPKI_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// DER of a version 1 `PrivateKeyInfo` for Ed25519 up to the seed (RFC 8410 section 7).
const PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// Why a text is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyTextError {
    /// The prefix that says what kind of key follows is missing.
    #[error("a {what} starts with `{prefix}`")]
    Prefix {
        /// "public key" or "secret key".
        what: &'static str,
        /// The prefix that is missing.
        prefix: &'static str,
    },
    /// A secret key stands where a public key belongs.
    #[error(
        "this is a secret key, where a public key belongs; keep it to yourself, and write what \
         `marline identity show` prints"
    )]
    SecretForPublic,
    /// A public key stands where a secret key belongs.
    #[error("this is a public key, where a secret key belongs")]
    PublicForSecret,
    /// Characters are missing or too many.
    #[error(
        "a key has {TEXT_CHARS} characters after its prefix, this one has {found}; copy it again"
    )]
    Length {
        /// Characters found.
        found: usize,
    },
    /// A character that no key contains.
    #[error(
        "`{character}` (character {position} of the key) occurs in no key: only a-z and 2-7 do"
    )]
    Character {
        /// The character.
        character: char,
        /// Its place in the key, counted from 1, the prefix not counted.
        position: usize,
    },
    /// The checksum does not fit.
    #[error("the key's checksum does not fit: a character is mistyped or left out; copy it again")]
    Checksum,
}

/// The operating system gave no random bytes, so no key was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gave no random bytes")]
pub struct NoRandomness;

/// An Ed25519 public key: the name of a host.
///
/// Text form: `marline-pub:` and 56 characters of lower-case base32 (RFC 4648), which are the key
/// and the first three bytes of SHA-256 over the prefix and the key. Upper case is read as well.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The key with these 32 bytes (RFC 8032 section 5.1.5). Any bytes are taken: whether
    /// somebody holds the secret half shows in the TLS handshake.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes of RFC 8032 section 5.1.5.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The text form without its prefix, as a connection string has it.
    pub fn bare(&self) -> String {
        encode(PUBLIC_PREFIX, &self.0).to_string()
    }

    /// Reads a text form without its prefix. The errors are those of [`PublicKey::from_str`].
    pub fn from_bare(text: &str) -> Result<Self, KeyTextError> {
        Ok(Self(*decode(PUBLIC_PREFIX, text)?))
    }

    /// DER of the `SubjectPublicKeyInfo` that stands for this key in TLS (RFC 7250, RFC 8410).
    pub(crate) fn to_spki(self) -> Vec<u8> {
        [&SPKI_PREFIX[..], &self.0].concat()
    }

    /// The key in a `SubjectPublicKeyInfo`; `None` when that is not an Ed25519 key.
    pub(crate) fn from_spki(der: &[u8]) -> Option<Self> {
        let key = der.strip_prefix(&SPKI_PREFIX)?;
        Some(Self(key.try_into().ok()?))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PUBLIC_PREFIX}{}", self.bare())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Self, KeyTextError> {
        match text.strip_prefix(PUBLIC_PREFIX) {
            Some(bare) => Self::from_bare(bare),
            None if text.starts_with(SECRET_PREFIX) => Err(KeyTextError::SecretForPublic),
            None => Err(KeyTextError::Prefix {
                what: "public key",
                prefix: PUBLIC_PREFIX,
            }),
        }
    }
}

/// A host's key pair (Ed25519, RFC 8032). The secret half is wiped from memory when dropped, and
/// `Debug` shows the public half only.
#[derive(Clone)]
pub struct Identity {
    seed: Zeroizing<[u8; 32]>,
    public: PublicKey,
}

impl Identity {
    /// A new key pair from the operating system's randomness.
    pub fn generate() -> Result<Self, NoRandomness> {
        let mut seed = Zeroizing::new([0; 32]);
        SystemRandom::new()
            .fill(seed.as_mut())
            .map_err(|_| NoRandomness)?;
        Ok(Self::from_seed(seed))
    }

    /// The key pair of an Ed25519 seed.
    fn from_seed(seed: Zeroizing<[u8; 32]>) -> Self {
        let mut public = [0; 32];
        // A seed of 32 bytes is never refused: the only check is on its length.
        if let Ok(pair) = Ed25519KeyPair::from_seed_unchecked(seed.as_ref()) {
            public.copy_from_slice(pair.public_key().as_ref());
        }
        Self {
            seed,
            public: PublicKey(public),
        }
    }

    /// The public half.
    pub const fn public_key(&self) -> PublicKey {
        self.public
    }

    /// The secret half as text: `marline-secret:` and 56 characters of base32, as the key file
    /// has it.
    pub fn secret_text(&self) -> Zeroizing<String> {
        let bare = encode(SECRET_PREFIX, &self.seed);
        let mut text = Zeroizing::new(String::with_capacity(SECRET_PREFIX.len() + TEXT_CHARS));
        text.push_str(SECRET_PREFIX);
        text.push_str(&bare);
        text
    }

    /// Reads what [`Identity::secret_text`] wrote.
    pub fn from_secret_text(text: &str) -> Result<Self, KeyTextError> {
        match text.strip_prefix(SECRET_PREFIX) {
            Some(bare) => Ok(Self::from_seed(decode(SECRET_PREFIX, bare)?)),
            None if text.starts_with(PUBLIC_PREFIX) => Err(KeyTextError::PublicForSecret),
            None => Err(KeyTextError::Prefix {
                what: "secret key",
                prefix: SECRET_PREFIX,
            }),
        }
    }

    /// A secret for one more use, distinguished by its label: HMAC-SHA256 of the label under the
    /// seed.
    pub(crate) fn derive(&self, label: &[u8]) -> Zeroizing<[u8; 32]> {
        let tag = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, self.seed.as_ref()),
            label,
        );
        let mut secret = Zeroizing::new([0; 32]);
        secret.copy_from_slice(tag.as_ref());
        secret
    }

    /// DER of the private key (PKCS #8 version 1, RFC 8410 section 7).
    pub(crate) fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        let mut der = Zeroizing::new(Vec::with_capacity(PKCS8_PREFIX.len() + self.seed.len()));
        der.extend_from_slice(&PKCS8_PREFIX);
        der.extend_from_slice(self.seed.as_ref());
        der
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

/// The prefix is part of what is summed, so a secret that lost its prefix is no public key.
fn checksum(prefix: &str, key: &[u8; 32]) -> [u8; CHECKSUM_BYTES] {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(prefix.as_bytes());
    context.update(key);
    let mut sum = [0; CHECKSUM_BYTES];
    sum.copy_from_slice(&context.finish().as_ref()[..CHECKSUM_BYTES]);
    sum
}

fn encode(prefix: &str, key: &[u8; 32]) -> Zeroizing<String> {
    let mut bytes = Zeroizing::new([0; 32 + CHECKSUM_BYTES]);
    bytes[..32].copy_from_slice(key);
    bytes[32..].copy_from_slice(&checksum(prefix, key));
    let mut text = Zeroizing::new(BASE32_NOPAD.encode(bytes.as_ref()));
    text.make_ascii_lowercase();
    text
}

fn decode(prefix: &str, text: &str) -> Result<Zeroizing<[u8; 32]>, KeyTextError> {
    let found = text.chars().count();
    if let Some((index, character)) = text
        .chars()
        .enumerate()
        .find(|(_, c)| !matches!(c, 'a'..='z' | 'A'..='Z' | '2'..='7'))
    {
        return Err(KeyTextError::Character {
            character,
            position: index + 1,
        });
    }
    if found != TEXT_CHARS {
        return Err(KeyTextError::Length { found });
    }
    let upper = Zeroizing::new(text.to_ascii_uppercase());
    // Cannot fail after the two checks above, save for what only the length could explain.
    let bytes = BASE32_NOPAD
        .decode(upper.as_bytes())
        .map(Zeroizing::new)
        .map_err(|_| KeyTextError::Length { found })?;
    let (key, sum) = bytes
        .split_first_chunk::<32>()
        .ok_or(KeyTextError::Length { found })?;
    if sum != checksum(prefix, key) {
        return Err(KeyTextError::Checksum);
    }
    Ok(Zeroizing::new(*key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first test vector of RFC 8032 section 7.1.
    const SEED: [u8; 32] = [
        0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c,
        0xc4, 0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae,
        0x7f, 0x60,
    ];
    const PUBLIC: [u8; 4] = [0xd7, 0x5a, 0x98, 0x01];

    fn identity() -> Identity {
        Identity::from_seed(Zeroizing::new(SEED))
    }

    #[test]
    fn a_seed_gives_the_public_key_of_the_rfc() {
        assert_eq!(identity().public_key().as_bytes()[..4], PUBLIC);
    }

    #[test]
    fn text_forms_are_fixed_for_ever() {
        // Files and connection strings outlive versions, so the exact text is pinned.
        assert_eq!(
            identity().public_key().to_string(),
            "marline-pub:25njqamcweflpvkl73j4szahhihoc4xt3ktcgjnpaingr5yhkendnsk3"
        );
        assert_eq!(
            Identity::from_secret_text(&identity().secret_text())
                .unwrap()
                .public_key(),
            identity().public_key()
        );
    }

    #[test]
    fn a_mistyped_key_is_named_for_what_is_wrong() {
        let text = identity().public_key().to_string();
        assert_eq!(
            text.to_uppercase().parse::<PublicKey>().unwrap_err(),
            KeyTextError::Prefix {
                what: "public key",
                prefix: PUBLIC_PREFIX
            }
        );
        assert_eq!(
            text[..text.len() - 1].parse::<PublicKey>(),
            Err(KeyTextError::Length { found: 55 })
        );
        assert_eq!(
            text.replacen("5n", "1n", 1).parse::<PublicKey>(),
            Err(KeyTextError::Character {
                character: '1',
                position: 2
            })
        );
        assert_eq!(
            text.replacen("5n", "n5", 1).parse::<PublicKey>(),
            Err(KeyTextError::Checksum)
        );
        assert_eq!(
            identity().secret_text().parse::<PublicKey>(),
            Err(KeyTextError::SecretForPublic)
        );
        assert_eq!(
            Identity::from_secret_text(&text).unwrap_err(),
            KeyTextError::PublicForSecret
        );
        let stripped = identity().secret_text().replace(SECRET_PREFIX, "");
        assert_eq!(PublicKey::from_bare(&stripped), Err(KeyTextError::Checksum));
    }

    #[test]
    fn debug_output_does_not_hold_the_secret() {
        let shown = format!("{:?}", identity());
        assert!(shown.contains("marline-pub:"));
        assert!(
            !shown.contains(
                identity()
                    .secret_text()
                    .strip_prefix(SECRET_PREFIX)
                    .unwrap()
            )
        );
    }

    proptest! {
        #[test]
        fn every_key_survives_its_text(bytes: [u8; 32]) {
            let key = PublicKey::from_bytes(bytes);
            prop_assert_eq!(key.to_string().parse::<PublicKey>(), Ok(key));
            prop_assert_eq!(PublicKey::from_bare(&key.bare().to_uppercase()), Ok(key));
            prop_assert_eq!(PublicKey::from_spki(&key.to_spki()), Some(key));
        }

        #[test]
        fn any_text_is_a_key_or_an_error(text: String) {
            let _ = text.parse::<PublicKey>();
            let _ = Identity::from_secret_text(&text);
            let _ = PublicKey::from_bare(&text);
        }

        #[test]
        fn one_wrong_character_is_always_found(bytes: [u8; 32], at in 0_usize..56, other in "[a-z2-7]") {
            let bare = PublicKey::from_bytes(bytes).bare();
            let mut wrong = bare.clone();
            wrong.replace_range(at..=at, &other);
            // 24 bits of checksum: a single wrong character passes with probability 2^-24.
            prop_assert_eq!(PublicKey::from_bare(&wrong).is_ok(), wrong == bare);
        }
    }
}
