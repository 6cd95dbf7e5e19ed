mod devices;
mod run;

use super::clients::Clients;
use super::clock::Clock;
use super::direction::Lane;
use super::ends::Ends;
use super::relay::Relay;
use super::{Direction, EmulateError, Stats, socket};
use marline_base::Rng;
use marline_link::{Link, LinkConfig};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, PipeWriter};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub use devices::DevicesConfig;

/// What an emulator relays, and how.
#[derive(Clone, PartialEq, Debug)]
pub struct EmulatorConfig {
    /// Where clients send to; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Where their datagrams go.
    pub target: SocketAddr,
    /// The link from the clients to the target.
    pub up: LinkConfig,
    /// The link from the target to the clients.
    pub down: LinkConfig,
    /// Seed of both links, each of which draws from a stream of its own.
    pub seed: u64,
    /// How many clients are served at a time; datagrams of others are dropped. Each costs a socket.
    pub max_clients: usize,
    /// A client without traffic for this long is forgotten.
    pub idle: Duration,
}

impl EmulatorConfig {
    /// Both directions alike, on a free port of the loopback interface, for up to 256 clients that
    /// are forgotten after two minutes. The seed is drawn: two links started alike lose each its
    /// own packets.
    pub fn new(target: SocketAddr, link: LinkConfig) -> Self {
        Self {
            listen: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
            target,
            up: link.clone(),
            down: link,
            seed: drawn(),
            max_clients: 256,
            idle: Duration::from_secs(120),
        }
    }
}

/// The links of both directions.
fn lanes(up: &LinkConfig, down: &LinkConfig, seed: u64) -> Result<[Lane; 2], EmulateError> {
    let lane = |direction: Direction, config: &LinkConfig| {
        let seed = Rng::new(seed).stream(direction.name()).next_u64();
        match Link::new(config.clone(), seed) {
            Ok(link) => Ok(Lane::new(link)),
            Err(source) => Err(EmulateError::Config { direction, source }),
        }
    };
    Ok([lane(Direction::Up, up)?, lane(Direction::Down, down)?])
}

/// A seed that is short enough to be typed again.
fn drawn() -> u64 {
    RandomState::new().hash_one(()) >> 32
}

/// An emulated link that runs until it is dropped. `At` is where programs find it: an address, or
/// two devices ([`between`](Emulator::between)).
///
/// Memory: at most 64 MiB of packets on their way in each direction, and what the two
/// [`Link`]s hold.
#[derive(Debug)]
pub struct Emulator<At = SocketAddr> {
    at: At,
    relay: Arc<Mutex<Relay>>,
    /// Closing it ends the thread.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Emulator {
    /// Binds the listening socket and starts the thread.
    ///
    /// # Errors
    ///
    /// When a link's parameters are out of range, the address is taken or not ours, the target
    /// cannot be sent to, or the system has no thread left.
    pub fn start(config: EmulatorConfig) -> Result<Self, EmulateError> {
        let lanes = lanes(&config.up, &config.down, config.seed)?;
        let refused = |source| EmulateError::Listen {
            addr: config.listen,
            source,
        };
        let listen = Arc::new(socket::bind(config.listen).map_err(refused)?);
        let addr = listen.local_addr().map_err(refused)?;
        // Known now rather than with the first client.
        socket::connect(config.target).map_err(|source| EmulateError::Target {
            addr: config.target,
            source,
        })?;
        let clients = Clients::new(config.target, config.max_clients, config.idle);
        let name = format!("link {}", addr.port());
        Self::run(addr, name, Ends::Udp { listen, clients }, lanes)
    }

    /// Where clients send to.
    pub const fn addr(&self) -> SocketAddr {
        self.at
    }

    /// Gives every client a new port towards the target when it sends next, as a NAT does that has
    /// lost its table. What the target sends to the old ports is lost.
    pub fn rebind(&self) {
        if let Some(clients) = self.relay().ends.clients_mut() {
            clients.clear();
        }
    }
}

impl<At> Emulator<At> {
    /// Starts the thread, which has this name.
    fn run(at: At, name: String, ends: Ends, lanes: [Lane; 2]) -> Result<Self, EmulateError> {
        let (stopped, stop) = io::pipe().map_err(EmulateError::Thread)?;
        let relay = Arc::new(Mutex::new(Relay::new(Clock::start(), ends, lanes)));
        let shared = Arc::clone(&relay);
        let thread = std::thread::Builder::new()
            .name(name)
            .spawn(move || run::run(&shared, &stopped))
            .map_err(EmulateError::Thread)?;
        Ok(Self {
            at,
            relay,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Switches both directions off or on.
    ///
    /// While dark, what is offered is lost; going dark also loses what waits in the queues.
    pub fn set_dark(&self, dark: bool) {
        for direction in Direction::BOTH {
            self.set_direction_dark(direction, dark);
        }
    }

    /// As [`set_dark`](Self::set_dark), for one direction.
    pub fn set_direction_dark(&self, direction: Direction, dark: bool) {
        self.relay().set_dark(direction, dark);
    }

    /// Changes the link of one direction, as [`Link::reconfigure`] says: what it has accepted keeps
    /// its time, what comes from now on finds the new link.
    ///
    /// # Errors
    ///
    /// When a parameter is out of its range; then nothing changes.
    pub fn reconfigure(&self, direction: Direction, link: LinkConfig) -> Result<(), EmulateError> {
        self.relay()
            .reconfigure(direction, link)
            .map_err(|source| EmulateError::Config { direction, source })
    }

    /// What happened so far.
    pub fn stats(&self) -> Stats {
        self.relay().stats()
    }

    fn relay(&self) -> MutexGuard<'_, Relay> {
        // The thread leaves the relay whole between datagrams, whatever happened to it.
        self.relay.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the thread; packets on their way are lost.
impl<At> Drop for Emulator<At> {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has been reported by the thread.
            let _ = thread.join();
        }
    }
}
