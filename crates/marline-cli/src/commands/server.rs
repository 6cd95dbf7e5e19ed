//! `marline server`: lets clients in and connects their flows to their targets.

use super::announce::{Announcement, announced};
use super::granted::Granted;
use super::service::Service;
use super::{CliError, live, qlog, reload, runtime, schedulers};
use crate::config::{ConfigError, RawServer, ServerConfig, Source};
use crate::control::{Manage, Managed, Seen};
use crate::qlog::{Qlog, WhenFull};
use marline::carrier::{ListenError, SocketError};
use marline::endpoint::server::BindError;
use marline::endpoint::{self, ServerOptions};
use marline::identity::{AllowList, Identity};
use marline_apps::live::Outlets;
use marline_apps::measure::Measures;
use marline_apps::proxy::policy::{Judge, OwnAddresses, Translators};
use marline_apps::proxy::{Accept as _, FlowsByClient, Listen, Places, Ports, Targets, Tasks};
use marline_apps::publish::Publisher;
use marline_apps::serve::{ServerSettings, serve};
use marline_apps::tun::{Pool, ServerTunnel};
use marline_base::text::Problem;
use marline_proto::sched::registry;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

const NOBODY: &str = "the list of clients is empty: nobody is let in";

const EXAMPLES: &str = "\
Examples:
  A cloud host for one client, whose key `marline identity show` printed on the client:
    marline server --allow-client marline-pub:...

  Many clients, one key a line; SIGHUP reads the list again, and a --config, too. A line may grant its client
  something of its own (`marline clients add --help`):
    marline server --allow-clients-file /etc/marline/clients

    down=20mbit,up=5mbit,deny-target=*:25 marline-pub:... van in Turin

  Clients may reach the web and one private network, but no mail server:
    marline server --allow-client marline-pub:... --allow-target '*' \\
      --allow-target 10.1.0.0/16:443 --deny-target '*:25'

  A studio that takes the stream of one camera at UDP port 6000 of this host, an SRT listener for example:
    marline server --allow-client marline-pub:... --live udp://127.0.0.1:6000

  A client may have TCP port 8443 of this host lead to a service behind it, by its --publish:
    marline server --allow-client marline-pub:... --allow-publish marline-pub:...=tcp:8443

  Clients' IP packets too, under this host's addresses (needs root):
    marline server --allow-client marline-pub:... --tun --tun-setup

  From a file, where the keys are the names of the flags:
    marline server --config server.toml

    listen = [\"0.0.0.0:4433\"]
    allow-clients-file = \"clients\"
    metrics = \"127.0.0.1:9900\"

Prints its connection string, one line, to standard output: what a client gives as --server. Without an
address yet, it serves all the same and prints it once it has one.

Without rules, clients reach every public address, and none that is loopback, link-local, private,
shared by carriers, multicast or for documentation. This host's own addresses, that in the tunnel and
those of --advertise among them, are closed unless a rule names them by address:
  --allow-target '*' --allow-target 10.77.0.1:80";

/// Let clients in and connect them to their targets.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = schedulers::after(EXAMPLES, registry::all()))]
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
    args: Args,
    source: Source<RawServer>,
    config: ServerConfig,
    identity: Identity,
    granted: Arc<Granted>,
    tunnel: Option<ServerTunnel>,
    service: Service,
}

impl Server {
    /// Checks the configuration, reads the key, and binds the local sockets that it asks for.
    ///
    /// # Errors
    /// Wrong configuration, an unusable key file, a busy port, another instance at the control
    /// socket, a tunnel that cannot be had, a signal to stop meanwhile.
    pub async fn bind(args: Args) -> Result<Self, CliError> {
        let source = args.source()?;
        let config = ServerConfig::check(&source)?;
        let identity = Identity::load(&config.identity).map_err(CliError::usage)?;
        let judge = judge(&config)?;
        let pool = config.tun.as_ref().map(|tun| {
            let own = || Pool::of_server(identity.public_key().as_bytes());
            tun.pool.unwrap_or_else(own)
        });
        let granted = Granted::new(
            Targets::new(judge.clone()),
            Publisher::new(config.grants.permits.clone(), &config.publish_addresses),
            pool,
        );
        granted.fits(&config.grants)?;
        granted.apply(&config.grants);
        let mut service = Service::bind(&source, &config.common).await?;
        let tunnel = match &config.tun {
            Some(tun) => {
                let (judge, key) = (judge.clone(), identity.public_key());
                // A command of the setup may hang.
                let stop = CancellationToken::new();
                let opening = ServerTunnel::open(tun, judge, key, stop.clone());
                let tunnel = service.unless_stopped(opening, &stop).await?;
                Some(tunnel.map_err(|error| {
                    let hint = error.hint();
                    CliError::runtime(error).hint(hint)
                })?)
            }
            None => None,
        };
        Ok(Server {
            args,
            source,
            config,
            identity,
            granted: Arc::new(granted),
            tunnel,
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

    /// What clients are told of this server, which listens at `bound`.
    pub fn announcement(&self, bound: &[SocketAddr]) -> Announcement {
        Announcement {
            key: self.identity.public_key(),
            advertise: self.config.advertise.clone(),
            bound: bound.to_vec(),
        }
    }

    /// Serves the clients that `endpoint` lets in until a signal or a request to stop. SIGHUP calls
    /// `reload`. `announced` tells clients where this server is, or ends it.
    ///
    /// # Errors
    /// When the endpoint stops accepting by itself; that of `announced`.
    pub async fn serve<E: Listen + Manage>(
        self,
        endpoint: E,
        reload: impl AsyncFnMut() -> Result<(), Problem>,
        announced: impl Future<Output = Result<(), CliError>>,
    ) -> Result<(), CliError> {
        let Server {
            config,
            granted,
            service,
            tunnel,
            ..
        } = self;
        let live = Outlets::new(&config.live);
        for entry in &config.live {
            tracing::info!("live {} goes to {}", entry.name, entry.target);
        }
        let board = live.board();
        let (endpoint, tasks) = (Arc::new(endpoint), Tasks::new());
        let targets = granted.targets.clone();
        let (following, draining) = (targets.clone(), tasks.clone());
        let discover = config.nat64.is_none();
        tasks.spawn(async move {
            tokio::select! {
                () = draining.draining() => {}
                () = following.follow(discover) => {}
            }
        });
        let settings = Arc::new(ServerSettings {
            targets,
            live,
            tunnel: tunnel.map(|tunnel| {
                let hub = tunnel.serve(&tasks);
                granted.serve(hub.clone(), &config.grants);
                hub
            }),
            publisher: granted.publisher.clone(),
            places: Places::new(all_flows(config.max_flows), config.max_flows),
            ports: Ports::of_this_host(),
            measures: Measures::default(),
            flows: FlowsByClient::default(),
        });
        if !board.is_empty() {
            tasks.spawn(live::show(board.clone(), tasks.clone()));
        }
        let accepting = {
            let (endpoint, tasks) = (Arc::clone(&endpoint), tasks.clone());
            async move {
                while let Some(session) = endpoint.next_session().await {
                    // On the thread that its packets are handled on.
                    let runtime = session.session().map(|session| session.runtime().clone());
                    let runtime = runtime.unwrap_or_else(Handle::current);
                    let serving = serve(session, Arc::clone(&settings), tasks.clone());
                    tasks.spawn_on(&runtime, serving);
                }
                CliError::runtime("the server's sockets failed and no client can reach it")
            }
        };
        let seen = Arc::new(Seen::load(config.seen));
        let (kept, keeping) = (Arc::clone(&seen), Arc::clone(&endpoint));
        tasks.spawn_until_drained(kept.keep(async move || keeping.status().await.clients));
        let managed = Arc::new(Managed {
            session: endpoint,
            board,
            published: granted.publisher.board(),
            tunnel: None,
            seen: Some(seen),
            recorder: None,
        });
        let ended = async {
            tokio::select! {
                reason = accepting => reason,
                Err(reason) = announced => reason,
            }
        };
        service.run(managed, tasks, reload, ended).await
    }
}

/// What clients may reach, judged at this host.
fn judge(config: &ServerConfig) -> Result<Judge, CliError> {
    let advertised = config.advertise.iter().map(|at| at.host().clone());
    let own = OwnAddresses::of_this_host(advertised).map_err(|error| {
        CliError::runtime(format!(
            "cannot ask the system which addresses are this host's own: {error}"
        ))
        .hint("let this process have netlink sockets: with systemd, RestrictAddressFamilies needs AF_NETLINK")
    })?;
    let translators = match &config.nat64 {
        Some(prefixes) => Translators::configured(prefixes.clone()),
        None => Translators::to_be_discovered(),
    };
    let rules = config.targets.clone();
    Ok(Judge::new(rules, Arc::new(own), Arc::new(translators)))
}

pub(super) fn run(args: Args) -> Result<(), CliError> {
    let runtime = runtime()?;
    let result = runtime.block_on(start(args));
    // The look-up of a name may still hang in a thread of its own.
    runtime.shutdown_background();
    result
}

async fn start(args: Args) -> Result<(), CliError> {
    let program = Server::bind(args).await?;
    let config = program.config();
    let (identity, allow) = (program.identity().clone(), config.allow_clients.clone());
    let limits = config.grants.limits.clone();
    let mut options = ServerOptions {
        session: config.session(),
        ..ServerOptions::new(config.listen.clone(), identity, allow.clone())
    };
    options.workers = config.workers;
    options.listen.tcp = config.tcp;
    options.listen.quic.segmentation_offload = config.common.gso;
    options.listen.tcp_congestion.clone_from(&config.tcp_cc);
    let qlog = qlog::open(config.common.qlog.as_ref(), WhenFull::Drop)?;
    options.session.observers = qlog.as_ref().map(Qlog::observers).unwrap_or_default();
    let server = endpoint::Server::bind(options);
    let server = server.map_err(|error| unbound(&program.source, error))?;
    server.limit_clients(limits);
    for address in server.local_addrs() {
        let carriers = if config.tcp { "UDP and TCP" } else { "UDP" };
        tracing::info!("listening at {carriers} {address}");
    }
    if server.workers() > 1 {
        tracing::info!("workers: {}", server.workers());
    }
    match allow.len() {
        0 => tracing::warn!("{NOBODY}"),
        count => tracing::info!("clients that are let in: {count}"),
    }
    let announced = announced(
        program.announcement(server.local_addrs()),
        config.common.wait,
    );
    let (args, running) = (program.args.clone(), program.source.raw.clone());
    let granted = Arc::clone(&program.granted);
    let reload = async || read_again(&args, &running, &server, &granted);
    let result = program.serve(server.clone(), reload, announced).await;
    server.stop("the server stops").await;
    if let Some(qlog) = qlog {
        qlog.finish();
    }
    result
}

impl Args {
    /// No options but this file.
    #[cfg(unix)]
    pub(super) fn of_file(file: &std::path::Path) -> Self {
        Args {
            config: Some(file.to_owned()),
            raw: RawServer::default(),
        }
    }

    /// The configuration that these options and their file make.
    pub(super) fn configuration(&self) -> Result<ServerConfig, ConfigError> {
        ServerConfig::check(&self.source()?)
    }

    fn source(&self) -> Result<Source<RawServer>, ConfigError> {
        Source::load(self.raw.clone(), self.config.as_deref())
    }
}

/// Reads the configuration again, and lets in those that are listed now and no others, each with
/// what it is granted. `running` is what the server was started with. Whatever is wrong with the
/// new configuration, the old list stays in force, but whoever is not in the new one is let in no
/// more.
fn read_again(
    args: &Args,
    running: &RawServer,
    server: &endpoint::Server,
    granted: &Granted,
) -> Result<(), Problem> {
    if args.config.is_none() && running.allow_clients_file.is_none() {
        tracing::warn!(
            "there is nothing to read again: this server was started without --config and --allow-clients-file"
        );
        return Ok(());
    }
    let read = args
        .source()
        .and_then(|source| Ok((ServerConfig::check_running(&source)?, source)));
    let (new, source) = match read {
        Ok(read) => read,
        Err(error) => return Err(reload::refused(error)),
    };
    if let Err(error) = granted.fits(&new.grants) {
        let mut left = server.allowed().clients();
        left.retain(|client| new.allow_clients.contains(&client.key));
        server.allow_only(&AllowList::from_clients(left));
        return Err(reload::refused(error));
    }
    // First who is let in no more: they must not have what others have for a moment.
    let change = server.allow_only(&new.allow_clients);
    granted.apply(&new.grants);
    server.limit_clients(new.grants.limits);
    tracing::info!(
        "the list of clients was read again: {} added, {} removed",
        change.added.len(),
        change.removed.len()
    );
    if new.allow_clients.is_empty() {
        tracing::warn!("{NOBODY}");
    }
    if let Some(file) = &args.config {
        let applied = [
            "allow-client",
            "allow-clients-file",
            "allow-publish",
            "allow-prefix",
        ];
        let waiting = reload::waiting(running, &source.raw, &applied);
        reload::need_restart(file, &waiting);
    }
    Ok(())
}

/// What `source` asks for and the system refuses.
fn unbound(source: &Source<RawServer>, error: BindError) -> CliError {
    let (address, refused) = match error {
        BindError::Listen(ListenError::Socket { addr, source }) => (addr, source),
        BindError::Listen(_) => {
            return CliError::runtime(error).hint("check --listen and --identity");
        }
        BindError::Worker(_) => {
            return CliError::runtime(error).hint("ask for fewer: --workers");
        }
        BindError::Config(_) => return CliError::usage(error),
    };
    let mut place = source.place_of("listen", address);
    let key = place.key();
    let hint = match &refused {
        SocketError::Busy {
            protocol: "TCP", ..
        } => format!(
            "another program, perhaps a web server, has that TCP port: choose another with {key}, or do without TCP: --tcp off"
        ),
        SocketError::Busy { .. } => format!(
            "another program, perhaps another `marline server`, has that port: stop it, or choose another with {key}"
        ),
        SocketError::Congestion { .. } => {
            if let Some(name) = &source.raw.tcp_cc {
                place = source.place("tcp-cc", name);
            }
            format!("correct {}", place.key())
        }
        _ => format!("choose an address of this host with {key}, or 0.0.0.0 for all"),
    };
    CliError::runtime(format!("{place}: {refused}")).hint(hint)
}

/// Flows that all clients may have together: four times what each may have. A flow may need a
/// descriptor, and a quarter of the descriptors is for carriers and the rest.
fn all_flows(each: usize) -> usize {
    let limit = crate::platform::descriptors().now.unwrap_or(u64::MAX);
    let descriptors = usize::try_from(limit / 4 * 3).unwrap_or(usize::MAX);
    (4 * each).min(descriptors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches as _;

    async fn server(words: &[&str]) -> (Server, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity::generate().unwrap();
        let file = folder.path().join("identity");
        identity.save_new(&file).unwrap();
        let (file, key) = (file.to_str().unwrap(), identity.public_key().to_string());
        let command =
            <Args as clap::Args>::augment_args(clap::Command::new("server").no_binary_name(true));
        let fixed = [
            "--identity",
            file,
            "--allow-client",
            &key,
            "--control",
            "off",
        ];
        let matches = command
            .try_get_matches_from(fixed.iter().chain(words))
            .unwrap();
        let args = Args::from_arg_matches(&matches).unwrap();
        (Server::bind(args).await.unwrap(), folder)
    }

    #[tokio::test]
    async fn clients_are_told_what_is_advertised_or_else_what_is_bound() {
        let bound = [
            "127.0.0.1:7001".parse().unwrap(),
            "[::1]:7002".parse().unwrap(),
        ];
        let (plain, _folder) = server(&[]).await;
        let string = plain
            .announcement(&bound)
            .string()
            .unwrap()
            .unwrap()
            .to_string();
        assert!(string.ends_with("@127.0.0.1:7001,[::1]:7002"), "{string}");
        assert!(plain.announcement(&[]).string().unwrap().is_none());
        let words = ["vpn.example.com", "[2001:db8::1]", "h:7001", "h", "other:9"];
        let words: Vec<&str> = words
            .iter()
            .flat_map(|word| ["--advertise", word])
            .collect();
        let (named, _folder) = server(&words).await;
        let string = named.announcement(&bound).string().unwrap().unwrap();
        assert!(
            string
                .to_string()
                .ends_with("@vpn.example.com:7001,[2001:db8::1]:7001,h:7001,other:9"),
            "{string}"
        );
        assert_eq!(string.server(), named.identity().public_key());
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "advertise = [\"vpn.example.com\"]\n").unwrap();
        let (named, _folder) = server(&["--config", file.path().to_str().unwrap()]).await;
        let string = named
            .announcement(&bound)
            .string()
            .unwrap()
            .unwrap()
            .to_string();
        assert!(string.ends_with("@vpn.example.com:7001"), "{string}");
    }
}
