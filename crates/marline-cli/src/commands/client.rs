//! `marline client`: local proxies over a session with a server.

use super::service::{Service, unbound};
use super::{CliError, live, qlog, reload, runtime, schedulers};
use crate::budget::{Ledger, Metered, Month};
use crate::config::{ClientConfig, ConfigError, PathChange, RawClient, Source, path_changes};
use crate::control::{Manage, Managed, Problem};
use crate::qlog::{Qlog, WhenFull};
use crate::recording::Recorder;
use marline::endpoint::client::FailureKind;
use marline::endpoint::{self, ClientOptions, ConnectError};
use marline::identity::Identity;
use marline_apps::live::Inlets;
use marline_apps::proxy::front::{Front, stranger};
use marline_apps::proxy::socks5::SocksOptions;
use marline_apps::proxy::{Tasks, Tunnel};
use marline_apps::publish::{self, Published};
use marline_apps::tun::ClientTunnel;
use marline_proto::sched::registry;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long it waits at the end for other clients that write the usage file.
const LAST_SAVE: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  One laptop, two links, a SOCKS5 proxy at 127.0.0.1:1080:
    marline client --server 'marline://...' --path wlan0 --path wwan0
    curl --proxy socks5h://127.0.0.1:1080 https://example.com/

  A mobile modem that is used only when the cable is down:
    marline client --server 'marline://...' --path eth0 --path wwan0,standby,cost=2

  A modem with 20 GB a month, after which it is only for emergencies:
    marline client --server 'marline://...' --path eth0 --path wwan0,cost=2,budget=20GB

  Modems, whatever they are called after they were plugged in again; 20 GB for both together:
    marline client --server 'marline://...' --path eth0 --path 'wwan*,cost=2,budget=20GB'

  A game's datagrams on every link at once, for the lowest delay; nothing older than 200 ms:
    marline client --server 'marline://...' --path wlan0 --path wwan0 --socks off \\
      --forward udp:127.0.0.1:5000=game.example:5000,scheduler=redundant,lifetime=200ms

  A camera's or encoder's stream (MPEG-TS, RTP, SRT or RIST over UDP) to port 5000 of this host, at most 300 ms later
  than the paths take, of which 10 Mb/s must get through; the server has --live too:
    marline client --server 'marline://...' --path wwan0 --path wwan1 --live udp://:5000 --target 10mbps

  Video as RTP of which 99 of 100 frames must be whole 80 ms after their first packet:
    marline client --server 'marline://...' --path wwan0 --path wwan1 --live udp://:5004 --deadline 80ms \\
      --reliability 0.99

  Video as MPEG-TS or RTP whose frames are planned whole, the key frames first; what is neither goes as ever:
    marline client --server 'marline://...' --path wwan0 --path wwan1 --live udp://:5000,objects=auto

  The encoder of this host, an SRT listener at port 9000, is called at port 9000 of the server, with the latency
  budget of a live entry:
    marline client --server 'marline://...' --path wwan0 --path wwan1 \\
      --publish udp:9000=127.0.0.1:9000,latency=300ms

  A web server of this host at port 8443 of the server, whose --allow-publish lets this client have it:
    marline client --server 'marline://...' --path eth0 --path wwan0 \\
      --publish tcp:8443=127.0.0.1:443

  Everything that this host sends, through a network interface; calls on every link at once (needs root):
    marline client --server 'marline://...' --path wlan0 --path wwan0 --tun --tun-setup \\
      --tun-route 0.0.0.0/0 --tun-route ::/0 --tun-rule dscp=ef,scheduler=redundant,priority=0

  In a script, which is to go on without a session after a minute:
    marline client --server 'marline://...' --path wwan0 --wait 1m

  From a file, where the keys are the names of the flags; SIGHUP reads its paths and what it publishes again:
    marline client --config client.toml

    server = \"marline://...\"
    path = [\"wlan0\", \"wwan0,standby,cost=2\"]
    forward = [\"tcp:127.0.0.1:8080=intranet.example:80\"]
    [[live]]
    address = \"udp://:5000\"
    name = \"cam\"
    latency = \"150ms\"";

/// Carry local programs' traffic over several links to a server.
#[derive(Debug, clap::Args)]
#[command(after_help = schedulers::after(EXAMPLES, registry::all()))]
pub struct Args {
    /// Read the configuration from this TOML file; flags win over it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    raw: RawClient,
}

/// What a client listens on, bound before anything is dialled.
#[derive(Debug)]
pub struct Client {
    args: Args,
    source: Source<RawClient>,
    config: ClientConfig,
    identity: Identity,
    front: Front,
    inlets: Inlets,
    tunnel: Option<ClientTunnel>,
    ledger: Ledger,
    service: Service,
    recorder: Recorder,
}

impl Client {
    /// Checks the configuration, reads the key, and binds what is asked for.
    ///
    /// # Errors
    /// Wrong configuration, an unusable key file, a busy port, another instance at the control
    /// socket.
    pub async fn bind(args: Args) -> Result<Self, CliError> {
        let source = args.source()?;
        let config = ClientConfig::check(&source)?;
        let identity = Identity::load(&config.identity).map_err(CliError::usage)?;
        let ledger = Ledger::load(config.usage.clone(), Month::now()).map_err(|error| {
            CliError::runtime(error)
                .hint("mend the file, or remove it: what was carried this month is forgotten then")
        })?;
        let service = Service::bind(&source, &config.common).await?;
        let unbound = |error| unbound(&source, &error);
        let options = SocksOptions {
            login: config.socks_login.clone(),
            objects: config.objects,
            udp_address: config.socks_udp_address,
        };
        let socks = config.socks.map(|address| (address, options));
        let front = Front::bind(socks, &config.forwards, config.objects)
            .await
            .map_err(unbound)?;
        let inlets = Inlets::bind(&config.live).await.map_err(unbound)?;
        let tunnel = config.tun.as_ref().map(ClientTunnel::open).transpose();
        let tunnel = tunnel.map_err(|error| {
            let hint = error.hint();
            CliError::runtime(error).hint(hint)
        })?;
        Ok(Client {
            args,
            source,
            config,
            identity,
            front,
            inlets,
            tunnel,
            ledger,
            service,
            recorder: Recorder::default(),
        })
    }

    /// The configuration.
    pub fn config(&self) -> &ClientConfig {
        &self.config
    }

    /// The key pair.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Serves local programs over `session` until a signal, a request to stop, or the end of the
    /// session for good, which `ended` reports with its reason.
    ///
    /// # Errors
    /// What `ended` reports.
    pub async fn serve<S: Tunnel + Manage>(
        self,
        session: S,
        ended: impl Future<Output = CliError>,
    ) -> Result<(), CliError> {
        let Client {
            args,
            source,
            mut config,
            identity,
            front,
            inlets,
            tunnel,
            ledger,
            service,
            recorder,
        } = self;
        let tasks = Tasks::new();
        front.serve(&session, &tasks);
        let published = publish::serve(
            &config.publications,
            identity.public_key(),
            &session,
            &tasks,
        );
        let board = inlets.board();
        inlets.serve(&session, &tasks);
        for entry in config.live.iter().filter(|entry| stranger(entry.listen)) {
            tracing::info!("live {}: every host that reaches it may send", entry.name);
        }
        let tunnel = tunnel.map(|tunnel| tunnel.serve(&session, &tasks));
        if !board.is_empty() {
            tasks.spawn(live::show(board.clone(), tasks.clone()));
        }
        let session = Arc::new(Metered::new(session, &config.paths, ledger));
        let watched = Arc::clone(&session);
        let draining = tasks.clone();
        tasks.spawn(async move {
            tokio::select! {
                () = draining.draining() => {}
                () = watched.watch() => {}
            }
        });
        let metered = Arc::clone(&session);
        let managed = Arc::new(Managed {
            session,
            board,
            published: published.board(),
            tunnel,
            seen: None,
            recorder: Some(recorder),
        });
        let reload = async || {
            let managed = managed.as_ref();
            read_again(&args, &source.raw, &mut config, managed, &published).await
        };
        let result = service
            .run(Arc::clone(&managed), tasks, reload, ended)
            .await;
        metered.save(Month::now(), LAST_SAVE);
        result
    }
}

pub(super) fn run(args: Args) -> Result<(), CliError> {
    let runtime = runtime()?;
    let result = runtime.block_on(start(args));
    // The look-up of a name may still hang in a thread of its own.
    runtime.shutdown_background();
    result
}

async fn start(args: Args) -> Result<(), CliError> {
    let program = Client::bind(args).await?;
    let config = program.config();
    let (identity, paths) = (program.identity().clone(), config.paths.clone());
    let mut options = ClientOptions {
        session: config.common.session(),
        sysfs: config.sysfs.clone(),
        names: config.names.clone(),
        mark: config.mark(),
        takes_flows: !config.publications.is_empty(),
        ..ClientOptions::new(&config.server, identity, paths)
    };
    options.quic.segmentation_offload = config.common.gso;
    let qlog = qlog::open(config.common.qlog.as_ref(), WhenFull::Drop)?;
    let written = qlog.as_ref().map(Qlog::observers).unwrap_or_default();
    options.session.observers = program.recorder.observers(written);
    let wait = config.common.wait;
    let client = endpoint::Client::start(options).map_err(CliError::usage)?;
    let ended = async {
        if let Err(error) = client.connect(wait).await {
            return unconnected(&error);
        }
        client.closed().await;
        CliError::runtime("the client was stopped")
    };
    let result = program.serve(client.clone(), ended).await;
    client.stop("the client stops").await;
    if let Some(qlog) = qlog {
        qlog.finish();
    }
    result
}

fn unconnected(error: &ConnectError) -> CliError {
    let cli = match error.worst().map(|failure| failure.kind) {
        Some(FailureKind::Configuration) => CliError::usage(error),
        _ => CliError::runtime(error),
    };
    match error.hint() {
        Some(hint) => cli.hint(hint),
        None => cli.hint(
            "run `marline doctor client` with the same options: its checks `route`, `rp_filter`, \
             `udp` and `tcp` look for the cause",
        ),
    }
}

impl Args {
    /// No options but this file.
    #[cfg(unix)]
    pub(super) fn of_file(file: &std::path::Path) -> Self {
        Args {
            config: Some(file.to_owned()),
            raw: RawClient::default(),
        }
    }

    /// The configuration that these options and their file make.
    pub(super) fn configuration(&self) -> Result<ClientConfig, ConfigError> {
        ClientConfig::check(&self.source()?)
    }

    fn source(&self) -> Result<Source<RawClient>, ConfigError> {
        Source::load(self.raw.clone(), self.config.as_deref())
    }
}

/// Reads the configuration again and changes the paths of the running session, and what is
/// published. `running` is what
/// the client was started with. Whatever is wrong with the new configuration, the session goes on
/// as it is.
async fn read_again<M: Manage>(
    args: &Args,
    running: &RawClient,
    current: &mut ClientConfig,
    managed: &M,
    published: &Published,
) -> Result<(), Problem> {
    let Some(file) = &args.config else {
        tracing::warn!("there is nothing to read again: this client was started without --config");
        return Ok(());
    };
    let read = args
        .source()
        .and_then(|source| Ok((ClientConfig::check(&source)?, source)));
    let (new, source) = match read {
        Ok(read) => read,
        Err(error) => return Err(reload::refused(error)),
    };
    for change in path_changes(&current.paths, &new.paths) {
        let (what, result) = match change {
            PathChange::Add(path) => (format!("add {path}"), managed.add_path(path).await),
            PathChange::Remove(name) => {
                (format!("remove {name}"), managed.remove_path(&name).await)
            }
            PathChange::Standby(name, standby) => {
                let result = managed.set_standby(&name, standby).await;
                (format!("standby {name} {standby}"), result)
            }
        };
        match result {
            Ok(()) => tracing::info!("reload: {what}"),
            Err(Problem { message, hint }) => {
                let error = CliError::runtime(message);
                let error = match hint {
                    Some(hint) => error.hint(hint),
                    None => error,
                };
                tracing::error!("reload: {what}: {}", error.in_one());
            }
        }
    }
    if new.publications != current.publications {
        let texts: Vec<String> = new.publications.iter().map(ToString::to_string).collect();
        tracing::info!(
            "reload: published is {}",
            match &texts[..] {
                [] => "nothing".to_owned(),
                texts => texts.join(", "),
            }
        );
        published.replace(&new.publications);
    }
    let mut waiting = reload::waiting(running, &source.raw, &["path", "publish"]);
    let password = "socks-password-file";
    if new.socks_login != current.socks_login && !waiting.iter().any(|key| key == password) {
        waiting.push(password.to_owned());
    }
    reload::need_restart(file, &waiting);
    current.paths = new.paths;
    current.publications = new.publications;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Status;
    use marline::Path;
    use marline::identity::{ConnectionString, PublicKey};
    use std::fs;
    use std::sync::Mutex;

    /// Writes down what it is given.
    #[derive(Default)]
    struct Recorder(Mutex<Vec<String>>);

    impl Recorder {
        fn note(&self, text: String) -> Result<(), Problem> {
            self.0.lock().unwrap().push(text);
            Ok(())
        }
    }

    impl Manage for Recorder {
        async fn status(&self) -> Status {
            crate::control::status::tests::example()
        }
        async fn add_path(&self, path: Path) -> Result<(), Problem> {
            self.note(format!("add {path}"))
        }
        async fn remove_path(&self, name: &str) -> Result<(), Problem> {
            self.note(format!("remove {name}"))
        }
        async fn set_standby(&self, name: &str, standby: bool) -> Result<(), Problem> {
            self.note(format!("standby {name} {standby}"))
        }
    }

    #[tokio::test]
    async fn a_reload_changes_paths_and_survives_a_wrong_file() {
        let key = PublicKey::from_bytes([1; 32]);
        let server = ConnectionString::new(key, vec!["host".parse().unwrap()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("client.toml");
        let write = |paths: &str| {
            fs::write(&file, format!("server = \"{server}\"\npath = {paths}\n")).unwrap();
        };
        write(r#"["wlan0", "eth0"]"#);
        let args = Args {
            config: Some(file.clone()),
            raw: RawClient::default(),
        };
        let source = args.source().unwrap();
        let mut config = ClientConfig::check(&source).unwrap();
        let running = source.raw;
        let (recorder, published) = (Recorder::default(), Published::default());

        write("wlan0");
        let read = read_again(&args, &running, &mut config, &recorder, &published).await;
        assert!(read.is_err());
        assert!(recorder.0.lock().unwrap().is_empty());

        write(r#"["wlan0,standby", "wwan0"]"#);
        let read = read_again(&args, &running, &mut config, &recorder, &published).await;
        read.unwrap();
        let told = ["standby wlan0 true", "add wwan0", "remove eth0"];
        assert_eq!(*recorder.0.lock().unwrap(), told);
        // What was done is not done again.
        let read = read_again(&args, &running, &mut config, &recorder, &published).await;
        read.unwrap();
        assert_eq!(recorder.0.lock().unwrap().len(), told.len());
    }
}
