//! `marline server`: lets clients in and connects their flows to their targets.

use super::CliError;
use super::service::Service;
use crate::config::{RawServer, ServerConfig, Source};
use crate::control::Manage;
use crate::identity::Identity;
use crate::proxy::server::{ServerSettings, serve};
use crate::proxy::{Listen, Tasks};
use std::path::PathBuf;
use std::sync::Arc;

/// Let clients in and connect them to their targets.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  A cloud host for one client, whose key `marline identity show` printed on the client:
    marline server --allow-client marline-pub:...

  Many clients, one key a line; SIGHUP reads the list again:
    marline server --allow-clients-file /etc/marline/clients

  Clients may reach the web and one private network, but no mail server:
    marline server --allow-client marline-pub:... --allow-target '*' \\
      --allow-target 10.1.0.0/16:443 --deny-target '*:25'

  From a file, where the keys are the names of the flags:
    marline server --config server.toml

    listen = [\"0.0.0.0:4433\"]
    allow-clients-file = \"clients\"
    metrics = \"127.0.0.1:9900\"

Without rules, clients reach every public address, and none that is loopback, link-local, private,
shared by carriers, multicast or for documentation.")]
pub struct Args {
    /// Read the configuration from this TOML file; flags win over it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    raw: RawServer,
}

/// A server's configuration and local sockets, bound before clients are let in.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    identity: Identity,
    service: Service,
}

impl Server {
    /// Checks the configuration, reads the key, and binds the local sockets that it asks for.
    ///
    /// # Errors
    /// Wrong configuration, an unusable key file, a busy port, another instance at the control socket.
    pub async fn bind(args: Args) -> Result<Self, CliError> {
        let source = Source::load(args.raw, args.config.as_deref())?;
        let config = ServerConfig::check(&source)?;
        let identity = Identity::load(&config.identity).map_err(CliError::usage)?;
        let service = Service::bind(&config.common).await?;
        Ok(Server {
            config,
            identity,
            service,
        })
    }

    /// The configuration.
    pub fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// The key pair.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Serves the clients that `endpoint` lets in until a signal or a request to stop. SIGHUP calls `reload`.
    ///
    /// # Errors
    /// When the endpoint stops accepting by itself.
    pub async fn serve<E: Listen + Manage>(
        self,
        endpoint: E,
        reload: impl AsyncFnMut(),
    ) -> Result<(), CliError> {
        let Server {
            config, service, ..
        } = self;
        let settings = Arc::new(ServerSettings {
            policy: config.targets,
            max_flows: config.max_flows,
        });
        let (endpoint, tasks) = (Arc::new(endpoint), Tasks::new());
        let accepting = {
            let (endpoint, tasks) = (Arc::clone(&endpoint), tasks.clone());
            async move {
                while let Some(session) = endpoint.accept().await {
                    tasks.spawn(serve(session, Arc::clone(&settings), tasks.clone()));
                }
                CliError::runtime("the server's sockets failed and no client can reach it")
            }
        };
        service.run(endpoint, tasks, reload, accepting).await
    }
}
