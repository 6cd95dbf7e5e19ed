//! The page of a client or a server: its listener and the secrets that open it.

use super::CliError;
use crate::config::{WebCertificate, WebPage};
use crate::control::Manage;
use crate::web::{self, Certificate, Door, Login, Password, Tls, Token};
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;

/// A page that is bound and not yet served.
#[derive(Debug)]
pub(super) struct ServedPage {
    listener: TcpListener,
    token: Token,
    token_file: Option<PathBuf>,
    protected: Option<Protected>,
}

/// What protects it from other hosts.
#[derive(Debug)]
struct Protected {
    login: Login,
    password: PathBuf,
    tls: Tls,
    /// Of a certificate that no browser trusts.
    fingerprint: Option<String>,
}

/// A file of the page's that is of no use.
fn unusable(what: &str, file: &Path, error: &io::Error) -> CliError {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "the user that marline runs as must be able to read it, or to make it: a service can in \
             /var/lib/marline"
        }
        _ => "mend or remove that file, or start without --web",
    };
    CliError::runtime(format!("the page's {what}, {}: {error}", file.display())).hint(hint)
}

/// The token of the page's address.
fn token(page: &WebPage) -> Result<Token, CliError> {
    let Some(file) = &page.token else {
        tracing::warn!(
            "there is no folder to keep the page's token in: the next start has another"
        );
        return Token::new().map_err(CliError::runtime);
    };
    Token::kept(file).map_err(|error| unusable("token", file, &error))
}

fn certificate(wanted: &WebCertificate, at: SocketAddr) -> Result<Certificate, CliError> {
    let (made, file) = match wanted {
        WebCertificate::Given(file) => (Certificate::given(file), Some(file)),
        WebCertificate::Own(file) => (Certificate::own(file.as_deref(), at.ip()), file.as_ref()),
    };
    made.map_err(|error| match file {
        Some(file) => unusable("certificate", file, &error),
        None => CliError::runtime(error),
    })
}

impl ServedPage {
    /// The page that was asked for, at `listener`.
    ///
    /// # Errors
    /// One of its files is of no use.
    pub(super) fn new(listener: TcpListener, page: &WebPage) -> Result<Self, CliError> {
        let protected = page.login.as_ref().map(|login| {
            let file = &login.password;
            let password =
                Password::kept(file).map_err(|error| unusable("password", file, &error))?;
            let certificate = certificate(&login.certificate, page.address)?;
            let own = matches!(login.certificate, WebCertificate::Own(_));
            Ok::<_, CliError>(Protected {
                login: Login::new(password),
                password: file.clone(),
                fingerprint: own.then(|| certificate.fingerprint()),
                tls: certificate.tls().map_err(CliError::runtime)?,
            })
        });
        Ok(ServedPage {
            listener,
            token: token(page)?,
            token_file: page.token.clone(),
            protected: protected.transpose()?,
        })
    }

    /// Says where it is.
    pub(super) fn log(&self) {
        let Ok(address) = self.listener.local_addr() else {
            return;
        };
        match (&self.protected, &self.token_file) {
            (Some(protected), _) => {
                let file = protected.password.display();
                tracing::info!("page at https://{address}/, with the password in {file}");
                if let Some(print) = &protected.fingerprint {
                    tracing::info!(
                        "browsers warn of its certificate once; it is the right one if its SHA-256 \
                         fingerprint is {print}"
                    );
                }
            }
            // Journals are read by more people than the file, and kept.
            (None, Some(file)) if !std::io::stderr().is_terminal() => tracing::info!(
                "page at http://{address}/TOKEN/, with what is in {} as TOKEN",
                file.display()
            ),
            (None, _) => tracing::info!("page at http://{address}/{}/", self.token.as_str()),
        }
    }

    /// Serves it until the future is dropped.
    pub(super) async fn serve<M: Manage>(self, managed: Arc<M>) {
        let door = match self.protected {
            Some(protected) => Door::Login(self.token, protected.login, protected.tls),
            None => Door::Token(self.token),
        };
        web::serve(self.listener, managed, door).await;
    }
}
