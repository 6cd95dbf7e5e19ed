//! A client: one session with one server over all configured paths, kept up for ever.
//!
//! | file | what |
//! | --- | --- |
//! | `slot.rs` | the configured paths, and how each stands |
//! | `assign.rs` | which interface which path has |
//! | `path.rs` | the task that keeps one path up |
//! | `dial.rs`, `lookups.rs`, `kept.rs`, `nat64.rs` | a path's way to the server |
//! | `reach.rs`, `backoff.rs` | dials until it is there; when to try again |
//! | `fallback.rs`, `upgrade.rs` | a silent path over QUIC tries TCP beside it, one over TCP tries
//! QUIC |
//! | `policed.rs`, `policing.rs` | so does one over QUIC that seems to be policed; what that looks
//! like |
//! | `trial.rs` | such a path until it is kept |
//! | `session.rs` | the first connection opens the session, the others join |
//! | `manage.rs` | status; paths added, removed and rested at run time |
//! | `error.rs` | why no session came up |

mod assign;
mod backoff;
mod dial;
mod error;
mod fallback;
mod kept;
mod lookups;
mod manage;
mod nat64;
mod path;
mod policed;
mod policing;
mod reach;
mod session;
mod slot;
mod trial;
mod upgrade;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use marline_proto::MAX_PATHS;
use marline_proto::wire::close_code;
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use assign::assigned;
pub use error::{ConnectError, FailureKind, NoSession, PathFailure};
pub use manage::{AddPathError, RemovePathError, UnknownPath};

use crate::Path;
use crate::carrier::{Bind, Outcomes, QuicConfig, device, routable};
use crate::identity::{ConnectionString, HostPort, Identity, PublicKey};
use crate::interfaces::{Changes, Notifier, Sysfs, Translators, addresses};
use lookups::Lookups;
use session::Current;
use slot::Slots;

/// Most that a graceful stop waits for the peer to be informed.
const STOP: Duration = Duration::from_secs(2);

/// What a client is started with.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The server's key; a host with another one is not talked to.
    pub server: PublicKey,
    /// Where the server is, for paths that do not say otherwise. Names are looked up again for
    /// each dial, by the system and by each path that is bound to an interface or an address, and
    /// all addresses are tried.
    pub addresses: Vec<HostPort>,
    /// This client's key.
    pub identity: Identity,
    /// The paths, with different names. All are dialled at once.
    pub paths: Vec<Path>,
    /// Where the system tells what interfaces are known by.
    pub sysfs: Sysfs,
    /// A file that keeps what names stood for last, so that a client starts where no resolver
    /// answers: some lines as in hosts(5), of which others may be of other clients. It is made when
    /// there is none; one that is damaged, or cannot be read or written, is no error. Default none.
    pub names: Option<PathBuf>,
    /// Mark of what the paths send ([`SocketSpec::mark`](crate::carrier::SocketSpec::mark)).
    pub mark: Option<u32>,
    /// The session's configuration.
    pub session: marline_proto::Config,
    /// The carriers'; their idle limit is raised above the session's where it is not.
    pub quic: QuicConfig,
    /// The server may open flows, which are accepted from [`Client::session`]; they wait until
    /// somebody does. Default `false`: they are reset.
    pub takes_flows: bool,
}

impl ClientOptions {
    /// Of the server that a connection string names, with defaults for the rest.
    pub fn new(server: &ConnectionString, identity: Identity, paths: Vec<Path>) -> Self {
        Self {
            server: server.server(),
            addresses: server.addresses().to_vec(),
            identity,
            paths,
            sysfs: Sysfs::default(),
            names: None,
            mark: None,
            session: marline_proto::Config::default(),
            quic: QuicConfig::default(),
            takes_flows: false,
        }
    }
}

/// A running client. Cheap to clone; it runs until [`stop`](Self::stop) or the end of the runtime.
///
/// When its session ends, whatever the reason, flows end with an error, new ones are refused with
/// [`NoSession`], and the client goes on dialling until there is a session again.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: ClientOptions,
    started: Instant,
    /// Changes whenever a session comes or goes, and whenever a path's failure does.
    current: watch::Sender<Current>,
    /// The server may open flows.
    takes_flows: AtomicBool,
    /// Held by the task that opens a session, so that only one does.
    opening: tokio::sync::Mutex<()>,
    slots: Mutex<Slots>,
    /// Which networks let no QUIC through.
    outcomes: Outcomes,
    lookups: Lookups,
    /// The NAT64 translators that are announced.
    translators: Translators,
    /// Passes on changes of this host's devices, addresses and routes, after paths have been given
    /// their interfaces.
    notifier: Notifier,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Shared {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Client {
    /// Starts to dial. Needs a tokio runtime.
    ///
    /// # Errors
    /// A session configuration that [`marline_proto::Config::check`] refuses.
    pub fn start(mut options: ClientOptions) -> Result<Self, marline_proto::ConfigError> {
        options.session.check()?;
        options.quic = super::outliving(options.quic, &options.session);
        let paths = std::mem::take(&mut options.paths);
        let lookups = Lookups::new(options.names.take());
        let client = Self {
            shared: Arc::new(Shared {
                takes_flows: AtomicBool::new(options.takes_flows),
                options,
                started: Instant::now(),
                current: watch::Sender::new(Current::default()),
                opening: tokio::sync::Mutex::new(()),
                slots: Mutex::new(Slots::default()),
                outcomes: Outcomes::default(),
                lookups,
                translators: Translators::new(),
                notifier: Notifier::new(),
                stop: CancellationToken::new(),
                tasks: TaskTracker::new(),
            }),
        };
        // Watched first, and looked at then: nothing is missed.
        let mut changes = Changes::watch();
        {
            let mut slots = client.shared.slots();
            for spec in paths {
                slots.add(spec, client.shared.stop.child_token());
            }
        }
        client.assign();
        let added: Vec<u64> = {
            let slots = client.shared.slots();
            let first = slots.iter().filter(|slot| slot.of.is_none());
            first.map(|slot| slot.number).collect()
        };
        for number in added {
            client.keep(number);
        }
        let following = client.clone();
        client.shared.tasks.spawn(async move {
            let stop = following.shared.stop.clone();
            let translators = following.shared.translators.clone();
            let forever = async {
                loop {
                    let announced = changes.next().await;
                    following.shared.translators.keep(has_ipv6);
                    following.assign();
                    following.shared.notifier.notify(announced);
                }
            };
            tokio::select! {
                () = forever => {}
                () = translators.watch() => {}
                () = stop.cancelled() => {}
            }
        });
        Ok(client)
    }

    /// Gives paths the interfaces that there are now, and starts and ends those that are there for
    /// one alone.
    fn assign(&self) {
        let (start, stop) = {
            let mut slots = self.shared.slots();
            if !slots
                .iter()
                .any(|slot| matches!(slot.spec.local, Bind::Matching(_)))
            {
                return;
            }
            let devices = self.shared.options.sysfs.devices();
            let assigned = assign::assign(&mut slots, &devices, &routable());
            // Added before others may look: two of them would give out the same interface.
            let start: Vec<u64> = assigned
                .start
                .into_iter()
                .map(|(of, path, device)| {
                    let number = slots.add(path, self.shared.stop.child_token());
                    if let Some(slot) = slots.get(number) {
                        (slot.of, slot.device) = (Some(of), Some(device));
                    }
                    number
                })
                .collect();
            (start, assigned.stop)
        };
        for number in stop {
            self.end_path(number);
        }
        for number in start {
            self.keep(number);
        }
    }

    fn start_path(&self, spec: Path) {
        let gone = self.shared.stop.child_token();
        let number = self.shared.slots().add(spec, gone);
        self.assign();
        self.keep(number);
    }

    /// Starts the task that keeps the path of this number up.
    fn keep(&self, number: u64) {
        let Some((name, gone)) = self
            .shared
            .slots()
            .get(number)
            .map(|slot| (slot.spec.name.clone(), slot.gone.clone()))
        else {
            return;
        };
        tracing::info!("path {name}: dialling");
        let task = path::keep(Arc::clone(&self.shared), number, gone);
        self.shared.tasks.spawn(task);
    }

    /// Waits until there is a session, at most for `limit` if there is one, and returns it. Neither
    /// interfaces nor addresses nor names need to be there yet. Cancel safe.
    ///
    /// # Errors
    /// The limit is over, or there is no use in waiting: the server will not have this client, or
    /// no path's failure may heal by itself. The client goes on trying all the same.
    pub async fn connect(
        &self,
        limit: impl Into<Option<Duration>>,
    ) -> Result<crate::Session, ConnectError> {
        let mut current = self.shared.current.subscribe();
        let start = Instant::now();
        let over = limit.into().and_then(|limit| start.checked_add(limit));
        loop {
            if let Some(live) = current.borrow_and_update().live() {
                return Ok(live.handle.clone());
            }
            let paths = self.shared.slots().failures();
            let in_vain = match over {
                _ if hopeless(&paths) => true,
                Some(over) => timeout_at(over, current.changed()).await.is_err(),
                // The sender lives as long as this client does.
                None => current.changed().await.is_err(),
            };
            if in_vain {
                let after = start.elapsed();
                return Err(ConnectError { paths, after });
            }
        }
    }

    /// Waits until [`stop`](Self::stop) has been called.
    pub async fn closed(&self) {
        self.shared.stop.cancelled().await;
    }

    /// Ends the session, sends the server the reason, and dials no more. Takes 2 s at most.
    pub async fn stop(&self, reason: &str) {
        self.shared.stop.cancel();
        let live = self.shared.current.borrow().live();
        if let Some(live) = live {
            live.handle.close(close_code::NONE, reason);
        }
        self.shared.tasks.close();
        if timeout(STOP, self.shared.tasks.wait()).await.is_err() {
            tracing::debug!("the carriers did not end in time");
        }
    }

    /// The session's handle, if there is a session.
    pub fn session(&self) -> Option<super::Session> {
        let live = self.shared.current.borrow().live()?;
        Some(live.handle.clone())
    }

    /// The session's handle.
    ///
    /// # Errors
    /// There is no session now, and why.
    pub fn current(&self) -> Result<super::Session, NoSession> {
        let current = self.shared.current.borrow();
        match current.live() {
            Some(live) => Ok(live.handle.clone()),
            None => Err(NoSession(current.why_none())),
        }
    }

    /// Has the server open flows from now on, or not ([`ClientOptions::takes_flows`]).
    pub fn take_flows(&self, takes: bool) {
        self.shared.takes_flows.store(takes, Ordering::Relaxed);
        if let Ok(session) = self.current() {
            session.take_flows(takes);
        }
    }

    /// Waits until there is a session. Cancel safe.
    pub async fn session_is_there(&self) {
        let mut current = self.shared.current.subscribe();
        // The sender lives as long as this client does.
        let _ = current.wait_for(|current| current.live().is_some()).await;
    }
}

/// Can no path come up by waiting?
fn hopeless(paths: &[(String, Option<PathFailure>)]) -> bool {
    let kinds = || {
        let failures = paths.iter().map(|(_, failure)| failure.as_ref());
        failures.map(|failure| failure.map(|failure| failure.kind))
    };
    let refused = kinds().any(|kind| kind == Some(FailureKind::Refused));
    refused || kinds().all(|kind| kind.is_some_and(|kind| !kind.may_heal()))
}

/// Has the interface of this number an address by which a network's routers know it? Where a link
/// is down it has none.
fn has_ipv6(interface: u32) -> bool {
    addresses().into_iter().any(|(name, ip)| match ip {
        IpAddr::V6(ip) => !ip.is_unicast_link_local() && device(&name) == Some(interface),
        IpAddr::V4(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_when_it_cannot_help() {
        let paths = |kinds: &[Option<FailureKind>]| -> Vec<_> {
            let failure = |kind| PathFailure {
                kind,
                ..PathFailure::passing("it failed".into())
            };
            let named = |kind: &Option<FailureKind>| ("any".to_owned(), kind.map(failure));
            kinds.iter().map(named).collect()
        };
        use FailureKind::{Configuration, NoInterface, NoName, Passing, Refused, WrongServer};
        for (kinds, expected) in [
            (&[Some(Refused), None][..], true),
            (&[Some(Refused), Some(NoInterface)], true),
            (&[Some(WrongServer), Some(Configuration)], true),
            (&[Some(WrongServer), None], false),
            (&[Some(WrongServer), Some(NoInterface)], false),
            (&[Some(NoInterface), Some(NoName), Some(Passing)], false),
        ] {
            assert_eq!(hopeless(&paths(kinds)), expected, "{kinds:?}");
        }
    }
}
