//! The page of the client that plays in the demo.

use crate::commands::CliError;
use crate::control::status::Role;
use crate::control::{Manage, Managed, Problem, Status};
use crate::web::{self, Door, Token};
use marline::Path;
use marline::endpoint::Client;
use marline::support::lock;
use marline_apps::live::Board;
use marline_apps::publish;
use marline_base::Rate;
use marline_base::text::listen_address;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::net::TcpListener;

/// A loopback address, as the page of a client asks for.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let address = listen_address(text).map_err(|problem| problem.to_string())?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err("the page is served at loopback addresses only".to_owned()),
    }
}

/// The page before it is served.
pub(super) struct Page {
    listener: TcpListener,
    token: Token,
}

/// Binds the page's address and says where it is.
pub(super) async fn listen(address: SocketAddr) -> Result<Page, CliError> {
    let listener = TcpListener::bind(address).await.map_err(|error| {
        CliError::runtime(format!("cannot listen at {address} for --web: {error}"))
            .hint("choose another port: --web=127.0.0.1:0 takes any")
    })?;
    let token = Token::new().map_err(CliError::runtime)?;
    let address = listener.local_addr().map_err(CliError::runtime)?;
    // Without standard error there is nobody to tell.
    let _ = writeln!(
        std::io::stderr().lock(),
        "page at http://{address}/{}/",
        token.as_str()
    );
    Ok(Page { listener, token })
}

impl Page {
    /// Shows who is on the stage, until the future is dropped.
    pub(super) async fn serve(self, stage: Arc<Stage>) {
        web::serve(self.listener, stage, Door::Token(self.token)).await;
    }
}

/// The client of the run that goes on; between runs there is none.
#[derive(Debug)]
pub(super) struct Stage {
    began: Instant,
    client: Mutex<Option<Arc<Managed<Client>>>>,
}

impl Default for Stage {
    fn default() -> Self {
        Stage {
            began: Instant::now(),
            client: Mutex::default(),
        }
    }
}

impl Stage {
    pub(super) fn enter(&self, client: &Client, live: &Board) {
        *lock(&self.client) = Some(Arc::new(Managed {
            session: Arc::new(client.clone()),
            board: live.clone(),
            published: publish::Board::default(),
            tunnel: None,
            seen: None,
            recorder: None,
        }));
    }

    pub(super) fn leave(&self) {
        *lock(&self.client) = None;
    }

    fn now(&self) -> Result<Arc<Managed<Client>>, Problem> {
        let client = lock(&self.client).clone();
        client.ok_or_else(|| Problem::new("no run goes on now"))
    }
}

impl Manage for Stage {
    async fn status(&self) -> Status {
        let status = match self.now() {
            Ok(client) => client.status().await,
            Err(_) => Status {
                role: Role::Client,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                uptime_s: 0.0,
                sessions: Vec::new(),
                clients: Vec::new(),
                published: Vec::new(),
                live: Vec::new(),
                tunnel: None,
            },
        };
        Status {
            uptime_s: self.began.elapsed().as_secs_f64(),
            ..status
        }
    }

    async fn add_path(&self, path: Path) -> Result<(), Problem> {
        self.now()?.add_path(path).await
    }

    async fn remove_path(&self, name: &str) -> Result<(), Problem> {
        self.now()?.remove_path(name).await
    }

    async fn set_standby(&self, name: &str, standby: bool) -> Result<(), Problem> {
        self.now()?.set_standby(name, standby).await
    }

    async fn set_live_target(
        &self,
        live: Option<&str>,
        target: Option<Rate>,
    ) -> Result<(), Problem> {
        self.now()?.set_live_target(live, target).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_for_this_host_only() {
        assert!(address("127.0.0.1:0").is_ok() && address("[::1]:9080").is_ok());
        let refused = address("192.0.2.1:9080").unwrap_err();
        assert!(refused.contains("loopback"), "{refused}");
    }

    #[tokio::test]
    async fn between_runs_there_is_a_client_without_a_session() {
        let stage = Stage::default();
        let status = stage.status().await;
        assert!(status.sessions.is_empty() && status.live.is_empty());
        let refused = stage.remove_path("A").await.unwrap_err();
        assert!(refused.to_string().contains("no run goes on"), "{refused}");
    }
}
