//! A row of the table of attacks, and what it is given.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use marline::Path;
use marline::endpoint::{Client, ClientOptions};
use marline::identity::{ConnectionString, Identity, PublicKey};
use marline_apps::proxy::{Protocol, Target};
use tokio::time::{Instant, sleep};

/// Why an attack could not begin.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;
/// What an attack ends with: that it could not begin, and never that it was withstood.
pub(crate) type Outcome = Result<(), Failure>;

/// A row of the table.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) run: fn(Knobs) -> Pin<Box<dyn Future<Output = Outcome>>>,
}

/// Rows of name, help and function.
macro_rules! attacks {
    ($($name:literal, $help:literal, $run:path;)*) => {
        &[$(Attack { name: $name, help: $help, run: |knobs| Box::pin($run(knobs)) }),*]
    };
}
pub(crate) use attacks;

/// What an attack may be given; each takes what it needs.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Knobs {
    /// The server, as it prints itself
    #[arg(long, value_name = "STRING")]
    server: Option<ConnectionString>,
    /// A key file; several for a crowd
    #[arg(long, value_name = "FILE")]
    identity: Vec<PathBuf>,
    /// As a client's --path, for the carrier and its way
    #[arg(long, default_value = "any")]
    path: String,
    /// What flows are for, as HOST:PORT
    #[arg(long, value_name = "HOST:PORT")]
    target: Option<String>,
    /// Flows, connections or names
    #[arg(long, default_value_t = 64)]
    pub(crate) count: usize,
    /// How long it goes on
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Sessions at once
    #[arg(long, default_value_t = 1)]
    pub(crate) sessions: usize,
    /// Bytes of each flow until it stalls
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    pub(crate) each: u64,
    /// Datagrams, handshakes or flows a second
    #[arg(long, default_value_t = 500)]
    pub(crate) rate: u64,
    /// Source addresses, in turn
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    pub(crate) from: Vec<IpAddr>,
    /// The proxy of an honest client
    #[arg(long, value_name = "ADDRESS:PORT")]
    socks: Option<SocketAddr>,
    /// Where a server or the targets listen
    #[arg(long, default_value_t = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0), value_name = "ADDRESS:PORT")]
    pub(crate) listen: SocketAddr,
    /// Keys that a server lets in
    #[arg(long, value_name = "KEY")]
    pub(crate) allow: Vec<PublicKey>,
    /// Which frames are written by hand
    #[arg(long, default_value = "pings")]
    pub(crate) wave: String,
}

impl Knobs {
    pub(crate) fn server(&self) -> Result<&ConnectionString, Failure> {
        Ok(self.server.as_ref().ok_or("give --server")?)
    }

    /// The server's first address.
    pub(crate) async fn server_addr(&self) -> Result<SocketAddr, Failure> {
        look_up(&self.server()?.addresses()[0].to_string()).await
    }

    /// Where bare connections go: to the target if there is one, else to the server.
    pub(crate) async fn place(&self) -> Result<SocketAddr, Failure> {
        match &self.target {
            Some(target) => look_up(target).await,
            None => self.server_addr().await,
        }
    }

    pub(crate) fn identities(&self) -> Result<Vec<Identity>, Failure> {
        let loaded = self.identity.iter().map(|file| Identity::load(file));
        Ok(loaded.collect::<Result<_, _>>()?)
    }

    pub(crate) fn identity(&self) -> Result<Identity, Failure> {
        Ok(self.identities()?.pop().ok_or("give --identity")?)
    }

    pub(crate) fn socks(&self) -> Result<SocketAddr, Failure> {
        Ok(self.socks.ok_or("give --socks")?)
    }

    pub(crate) fn target_text(&self) -> Result<&str, Failure> {
        Ok(self.target.as_deref().ok_or("give --target")?)
    }

    /// The bytes that open a flow to the target.
    pub(crate) fn target(&self, protocol: Protocol) -> Result<Bytes, Failure> {
        let target = Target::parse(protocol, self.target_text()?);
        Ok(target.map_err(|problem| problem.to_string())?.encode())
    }

    pub(crate) fn path(&self) -> Result<Path, Failure> {
        let spec = self.path.parse::<Path>();
        Ok(spec.map_err(|problem| problem.to_string())?)
    }

    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// When it is over.
    pub(crate) fn end(&self) -> Instant {
        Instant::now() + self.duration()
    }

    /// Time between two of what there is `--rate` of.
    pub(crate) fn pause(&self) -> Duration {
        Duration::from_secs(1) / u32::try_from(self.rate.max(1)).unwrap_or(u32::MAX)
    }

    /// A session of this key.
    pub(crate) async fn client(&self, identity: Identity) -> Result<Client, Failure> {
        let options = ClientOptions::new(self.server()?, identity, vec![self.path()?]);
        let client = Client::start(options)?;
        client.connect(Duration::from_secs(10)).await?;
        Ok(client)
    }

    /// As many sessions of one key as are asked for.
    pub(crate) async fn clients(&self) -> Result<Vec<Client>, Failure> {
        let identity = self.identity()?;
        let mut clients = Vec::new();
        for _ in 0..self.sessions.max(1) {
            clients.push(self.client(identity.clone()).await?);
        }
        Ok(clients)
    }

    /// Says that the attack stands, and lets it stand.
    pub(crate) async fn hold(&self, what: &str) -> Outcome {
        println!("ready: {what}");
        sleep(self.duration()).await;
        Ok(())
    }
}

async fn look_up(place: &str) -> Result<SocketAddr, Failure> {
    let mut found = tokio::net::lookup_host(place).await?;
    Ok(found
        .next()
        .ok_or_else(|| format!("{place} has no address"))?)
}

/// What an attack's flows have moved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Moved(Arc<AtomicU64>);

impl Moved {
    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits until nothing has moved for a second and a half, at most for a minute.
    pub(crate) async fn settled(&self) {
        const STILL: usize = 15;
        const PATIENCE: Duration = Duration::from_secs(60);
        let (end, mut before, mut still) = (Instant::now() + PATIENCE, 0, 0);
        while still < STILL && Instant::now() < end {
            sleep(Duration::from_millis(100)).await;
            let now = self.bytes();
            still = if now == before { still + 1 } else { 0 };
            before = now;
        }
    }
}
