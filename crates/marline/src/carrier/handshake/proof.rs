use std::fmt;

use marline_proto::wire::PathId;
use ring::hmac;
use zeroize::Zeroizing;

use super::session_id::SessionId;
use crate::identity::PublicKey;

/// Label of the TLS exporter (RFC 8446 section 7.5); its context is the session id.
pub const EXPORTER_LABEL: &[u8] = b"EXPORTER-marline-join";

/// What the exporter of a connection gives for a session: 32 bytes that only the two ends of
/// that connection can know.
pub(in super::super) type Exported = Zeroizing<[u8; 32]>;

/// HMAC-SHA256 that shows that the client which joins a session with a further connection also
/// opened it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Proof([u8; 32]);

impl Proof {
    /// The proof with these bytes, as read from a message.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Proof(..)")
    }
}

/// The path that wants to join is none of the session's: another secret, another connection,
/// another path number, another session or another client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the proof does not belong to this session, connection, path number and client key")]
pub struct WrongProof;

/// What both ends keep of a session's first connection, so that further ones can join it; it
/// outlives that connection.
#[derive(Clone)]
pub struct SessionKey {
    session: SessionId,
    client: PublicKey,
    key: hmac::Key,
}

impl SessionKey {
    /// `exported` is that of the session's first connection, whose client had the key `client`.
    pub(in super::super) fn new(
        session: SessionId,
        client: PublicKey,
        exported: &Exported,
    ) -> Self {
        Self {
            session,
            client,
            key: hmac::Key::new(hmac::HMAC_SHA256, exported.as_ref()),
        }
    }

    /// The session.
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// The key of the client that opened it.
    pub const fn client(&self) -> PublicKey {
        self.client
    }

    /// The proof for the connection with this export, as path `path`. Since it covers what only
    /// that connection exports, it is worth nothing on another.
    pub(in super::super) fn prove(&self, exported: &Exported, path: PathId) -> Proof {
        let tag = hmac::sign(&self.key, covered(exported, path).as_ref());
        let mut bytes = [0; 32];
        bytes.copy_from_slice(tag.as_ref());
        Proof(bytes)
    }

    /// Checks a proof, in constant time, and that `client`, which the joining connection has
    /// authenticated, opened the session.
    pub(in super::super) fn check(
        &self,
        exported: &Exported,
        path: PathId,
        client: PublicKey,
        proof: &Proof,
    ) -> Result<(), WrongProof> {
        // Public keys are no secret, so their comparison may show where they differ.
        if client != self.client {
            return Err(WrongProof);
        }
        hmac::verify(&self.key, covered(exported, path).as_ref(), &proof.0).map_err(|_| WrongProof)
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionKey")
            .field("session", &self.session)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

fn covered(exported: &Exported, path: PathId) -> Zeroizing<[u8; 40]> {
    let mut bytes = Zeroizing::new([0; 40]);
    bytes[..32].copy_from_slice(exported.as_ref());
    bytes[32..].copy_from_slice(&path.0.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exported(byte: u8) -> Exported {
        Zeroizing::new([byte; 32])
    }

    #[test]
    fn a_proof_fits_one_session_connection_path_and_client_only() {
        let client = PublicKey::from_bytes([1; 32]);
        let other = PublicKey::from_bytes([2; 32]);
        let key = SessionKey::new(SessionId([3; 16]), client, &exported(4));
        let proof = key.prove(&exported(5), PathId(6));
        let check = |key: &SessionKey, export, path, who, proof: &Proof| {
            key.check(&exported(export), PathId(path), who, proof)
        };
        assert_eq!(check(&key, 5, 6, client, &proof), Ok(()));
        assert_eq!(check(&key, 4, 6, client, &proof), Err(WrongProof));
        assert_eq!(check(&key, 5, 7, client, &proof), Err(WrongProof));
        assert_eq!(check(&key, 5, 6, other, &proof), Err(WrongProof));
        let stranger = SessionKey::new(SessionId([3; 16]), client, &exported(9));
        assert_eq!(check(&stranger, 5, 6, client, &proof), Err(WrongProof));
        let mut bytes = *proof.as_bytes();
        bytes[31] ^= 1;
        let flipped = Proof::from_bytes(bytes);
        assert_eq!(check(&key, 5, 6, client, &flipped), Err(WrongProof));
    }

    #[test]
    fn the_proof_is_hmac_sha256_over_export_and_path() {
        // Fixed, so that another implementation can be written from the document:
        // HMAC-SHA256(key = 32 bytes 0x04, 32 bytes 0x05 | 00 00 00 00 00 00 00 06).
        let client = PublicKey::from_bytes([1; 32]);
        let key = SessionKey::new(SessionId([3; 16]), client, &exported(4));
        let proof = key.prove(&exported(5), PathId(6));
        assert_eq!(
            data_encoding::HEXLOWER.encode(proof.as_bytes()),
            "21950ba171a4bc17eabc79b5a23bb17af9914ba2109ea53c7cf9ff99a0e95389"
        );
    }
}
