//! The page's certificate: one that is given, and read again when its file changes, or one that the
//! program makes for itself.

use super::kept::{kept, text};
use marline::support::lock;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use ring::digest::{SHA256, digest};
use rustls::crypto::ring::{default_provider, sign::any_supported_type};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use tokio_rustls::TlsAcceptor;

/// A certificate with its key.
#[derive(Debug)]
pub struct Certificate {
    shown: Mutex<Shown>,
    /// Read again when it changes: an authority's certificates last some weeks, the program
    /// months.
    file: Option<PathBuf>,
}

/// What speaks TLS with a certificate.
#[derive(Clone)]
pub struct Tls(pub(super) TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls(..)")
    }
}

#[derive(Debug)]
struct Shown {
    key: Arc<CertifiedKey>,
    changed: Option<SystemTime>,
}

impl Certificate {
    /// What is in `file`: a certificate, those that lead from it to an authority, and its private
    /// key, as PEM.
    ///
    /// # Errors
    /// The file cannot be read, holds something else, or is open to others.
    pub fn given(file: &Path) -> io::Result<Self> {
        let key = read(&text(file)?)?;
        Ok(Certificate {
            shown: Mutex::new(Shown {
                key,
                changed: changed(file),
            }),
            file: Some(file.to_owned()),
        })
    }

    /// One of the program's own for `address`, which is kept in `file` if there is a place for it.
    /// Browsers warn of it once; its fingerprint says that it is the one.
    ///
    /// # Errors
    /// The file cannot be read or made, holds something else, or is open to others.
    pub fn own(file: Option<&Path>, address: IpAddr) -> io::Result<Self> {
        let make = || make(address);
        let key = match file {
            Some(file) => kept(file, make, read)?,
            None => read(&make()?)?,
        };
        Ok(Certificate {
            shown: Mutex::new(Shown { key, changed: None }),
            file: None,
        })
    }

    /// SHA-256 of the certificate, as browsers show it.
    pub fn fingerprint(&self) -> String {
        let shown = lock(&self.shown);
        let end = shown.key.cert.first().map(|first| digest(&SHA256, first));
        let bytes = end.iter().flat_map(|digest| digest.as_ref());
        let pairs = bytes.map(|byte| format!("{byte:02X}"));
        pairs.collect::<Vec<_>>().join(":")
    }

    /// What its file holds now; what it held before if that is of no use.
    fn newest(&self) -> Arc<CertifiedKey> {
        let mut shown = lock(&self.shown);
        if let Some(file) = &self.file {
            let changed = changed(file);
            if changed.is_some() && changed != shown.changed {
                shown.changed = changed;
                match text(file).and_then(|text| read(&text)) {
                    Ok(key) => {
                        tracing::info!("the page's certificate was read again");
                        shown.key = key;
                    }
                    Err(error) => tracing::warn!(
                        "{}: {error}: the page keeps its former certificate",
                        file.display()
                    ),
                }
            }
        }
        Arc::clone(&shown.key)
    }

    /// What speaks TLS with it.
    ///
    /// # Errors
    /// rustls refuses its own algorithms.
    pub fn tls(self) -> Result<Tls, rustls::Error> {
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.newest())
    }
}

fn changed(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file)
        .and_then(|found| found.modified())
        .ok()
}

fn read(text: &str) -> io::Result<Arc<CertifiedKey>> {
    let invalid = |what: String| io::Error::new(ErrorKind::InvalidData, what);
    let chain = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| invalid(format!("it is not PEM: {error}")))?;
    if chain.is_empty() {
        let what = "it has no certificate (`-----BEGIN CERTIFICATE-----`)";
        return Err(invalid(what.to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| {
        invalid(
            "it has no private key: write certificate and key into one file, \
             `cat fullchain.pem privkey.pem`"
                .to_owned(),
        )
    })?;
    let key = any_supported_type(&key).map_err(|error| invalid(format!("its key: {error}")))?;
    let key = CertifiedKey::new(chain, key);
    key.keys_match()
        .map_err(|error| invalid(format!("its key is not the certificate's: {error}")))?;
    Ok(Arc::new(key))
}

fn make(address: IpAddr) -> io::Result<String> {
    let failed = |error: rcgen::Error| io::Error::other(error.to_string());
    let mut names = vec!["localhost".to_owned()];
    let host = crate::platform::host_name();
    if !host.is_empty() {
        names.extend([format!("{host}.local"), host]);
    }
    if !address.is_unspecified() {
        names.push(address.to_string());
    }
    let mut parameters = CertificateParams::new(names).map_err(failed)?;
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, "Marline");
    parameters.distinguished_name = name;
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = parameters.self_signed(&key).map_err(failed)?;
    Ok(certificate.pem() + &key.serialize_pem())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn write(file: &Path, text: &str) {
        fs::write(file, text).unwrap();
        fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
    }

    #[test]
    fn its_own_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("web-certificate.pem");
        let first = Certificate::own(Some(&file), HERE).unwrap().fingerprint();
        assert_eq!(first.len(), 32 * 3 - 1, "{first}");
        assert_eq!(
            Certificate::own(Some(&file), HERE).unwrap().fingerprint(),
            first
        );
        assert_ne!(Certificate::own(None, HERE).unwrap().fingerprint(), first);
    }

    #[test]
    fn what_lacks_a_part_is_refused_with_the_mend() {
        let (one, other) = (make(HERE).unwrap(), make(HERE).unwrap());
        let part = |text: &str, first: bool| {
            let at = text.find("-----BEGIN PRIVATE").unwrap();
            if first {
                text[..at].to_owned()
            } else {
                text[at..].to_owned()
            }
        };
        for (text, what) in [
            (part(&one, true), "no private key"),
            (part(&one, false), "no certificate"),
            (
                part(&one, true) + &part(&other, false),
                "not the certificate's",
            ),
            ("nonsense".to_owned(), "no certificate"),
        ] {
            let error = read(&text).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
        assert!(read(&one).is_ok());
    }

    #[test]
    fn a_renewed_one_is_read_without_a_restart_and_a_broken_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.pem");
        write(&file, &make(HERE).unwrap());
        let certificate = Certificate::given(&file).unwrap();
        let first = certificate.fingerprint();
        let look = || {
            certificate.newest();
            certificate.fingerprint()
        };
        assert_eq!(look(), first);
        let later = SystemTime::now() + Duration::from_secs(5);
        write(&file, "nonsense");
        fs::File::open(&file).unwrap().set_modified(later).unwrap();
        assert_eq!(look(), first);
        write(&file, &make(HERE).unwrap());
        let later = later + Duration::from_secs(5);
        fs::File::open(&file).unwrap().set_modified(later).unwrap();
        assert_ne!(look(), first);
    }
}
