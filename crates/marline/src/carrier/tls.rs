use std::sync::{Arc, OnceLock};

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};

use super::quic::Connection;
use crate::identity::{Identity, PublicKey};

/// Application protocol (RFC 7301): a server of something else refuses at once.
const ALPN: &[u8] = b"marline";

/// A name must be given to TLS; with raw public keys it is not looked at, and it is not sent.
pub(super) const SERVER_NAME: &str = "marline";

/// Longest TLS record over TCP (bytes). Nothing of one can be read before all of it is there, so
/// the longest possible, 16 KiB, would delay its first datagram by 131 ms at 1 Mb/s.
const RECORD: usize = 4 << 10;

/// TLS 1.3 from ring, the fastest cipher of this CPU first.
///
/// With AES instructions AES-128-GCM costs about a third of ChaCha20-Poly1305, without them it is
/// the other way round (RFC 8446 appendix B.4 has the suites; QUIC itself needs the first).
fn provider() -> Arc<CryptoProvider> {
    use ring::cipher_suite::{
        TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
    };
    let cipher_suites = if has_aes() {
        vec![
            TLS13_AES_128_GCM_SHA256,
            TLS13_AES_256_GCM_SHA384,
            TLS13_CHACHA20_POLY1305_SHA256,
        ]
    } else {
        vec![
            TLS13_CHACHA20_POLY1305_SHA256,
            TLS13_AES_128_GCM_SHA256,
            TLS13_AES_256_GCM_SHA384,
        ]
    };
    Arc::new(CryptoProvider {
        cipher_suites,
        ..ring::default_provider()
    })
}

fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return std::arch::is_x86_feature_detected!("aes")
        && std::arch::is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

fn certified_key(identity: &Identity) -> Result<Arc<CertifiedKey>, Error> {
    let pkcs8 = identity.to_pkcs8();
    let key = ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8.as_slice()))?;
    let public = CertificateDer::from(identity.public_key().to_spki());
    Ok(Arc::new(CertifiedKey::new(vec![public], key)))
}

/// The client's side: our key, and the server's one pinned. The key that the server shows goes
/// to `seen`, so that a wrong one can be named.
pub(super) fn client(
    identity: &Identity,
    server: PublicKey,
    seen: Arc<OnceLock<PublicKey>>,
) -> Result<ClientConfig, Error> {
    let provider = provider();
    let verifier = PinnedServer {
        expected: server,
        seen,
        algorithms: provider.signature_verification_algorithms,
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
            certified_key(identity)?,
        )));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.enable_sni = false;
    // Every handshake proves both keys again, and there is no 0-RTT data to be replayed.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// For QUIC (RFC 9001).
pub(super) fn for_quic(config: ClientConfig) -> Result<QuicClientConfig, Error> {
    QuicClientConfig::try_from(config).map_err(no_initial_suite)
}

/// For a TCP connection.
pub(super) fn for_tcp(mut config: ClientConfig) -> ClientConfig {
    config.max_fragment_size = Some(RECORD);
    config
}

/// The server's side of TCP connections.
pub(super) fn server_for_tcp(identity: &Identity) -> Result<ServerConfig, Error> {
    let mut config = rustls_server(identity)?;
    config.max_fragment_size = Some(RECORD);
    Ok(config)
}

/// The server's side: our key, and any Ed25519 key of the client. Whether that key is let in is
/// decided after the handshake, where the refusal can say why.
pub(super) fn server(identity: &Identity) -> Result<QuicServerConfig, Error> {
    QuicServerConfig::try_from(rustls_server(identity)?).map_err(no_initial_suite)
}

pub(super) fn rustls_server(identity: &Identity) -> Result<ServerConfig, Error> {
    let provider = provider();
    let verifier = AnyClient {
        algorithms: provider.signature_verification_algorithms,
    };
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(
            certified_key(identity)?,
        )));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    // The weaker end chooses: a server without AES instructions does not follow a client with.
    config.ignore_client_order = !has_aes();
    Ok(config)
}

fn no_initial_suite(error: quinn_proto::crypto::rustls::NoInitialCipherSuite) -> Error {
    Error::General(error.to_string())
}

/// The public key that the peer has proved to hold.
pub(super) fn peer(connection: &Connection) -> Option<PublicKey> {
    let identity = connection.peer_identity()?;
    let keys = identity.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    PublicKey::from_spki(keys.first()?)
}

fn not_ours() -> Error {
    Error::InvalidCertificate(CertificateError::BadEncoding)
}

fn verify(
    message: &[u8],
    key: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let spki = SubjectPublicKeyInfoDer::from(key.as_ref());
    verify_tls13_signature_with_raw_key(message, &spki, signature, algorithms)
}

#[derive(Debug)]
struct PinnedServer {
    expected: PublicKey,
    seen: Arc<OnceLock<PublicKey>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for PinnedServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let shown = PublicKey::from_spki(end_entity).ok_or_else(not_ours)?;
        let _ = self.seen.set(shown);
        if shown != self.expected {
            return Err(CertificateError::ApplicationVerificationFailure.into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(not_ours())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify(message, key, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[derive(Debug)]
struct AnyClient {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for AnyClient {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        PublicKey::from_spki(end_entity).ok_or_else(not_ours)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(not_ours())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify(message, key, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
