//! A run by real processes: the two ends are processes of this program, and each relay is a
//! `marline link`. All read one clock, the machine's, so a delay is measured as exactly as between
//! threads.

mod part;
mod words;

pub use part::part;

use super::tally::Tally;
use super::{Ended, Options, RunError, Way, link_seed, lock, tcp};
use crate::demo::plan::NAMES;
use crate::process::{Process, Relay, link_flags, look};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use words::{Anchor, Go, Order, Role, Word};

/// What the last words of the receiving process may take after the sending one is done.
const REST: Duration = Duration::from_millis(300);
/// Time between two looks at what both say.
const LOOK: Duration = Duration::from_millis(5);

/// Sets what it holds when it is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One run. Dropping the future ends all processes.
pub(super) async fn run(
    options: &Options,
    way: &Way,
    tally: &Arc<Mutex<Tally>>,
) -> Result<Ended, RunError> {
    let stop = Arc::new(AtomicBool::new(false));
    let _guard = StopOnDrop(Arc::clone(&stop));
    let (options, way, tally) = (options.clone(), way.clone(), Arc::clone(tally));
    let run = tokio::task::spawn_blocking(move || carry(&options, &way, &tally, &stop));
    let ended = run.await;
    ended.map_err(|_| RunError::Failed("the thread that led the processes ended".into()))?
}

fn carry(
    options: &Options,
    way: &Way,
    tally: &Mutex<Tally>,
    stop: &AtomicBool,
) -> Result<Ended, RunError> {
    let folder = tempfile::Builder::new().prefix("marline-").tempdir()?;
    let folder = folder.path();
    let start = |name, role| {
        let task = options.task();
        Part::start(name, folder, &Order { role, task })
    };
    let (mut near, mut far) = match way {
        Way::Session(scheduler) => {
            let scheduler = scheduler.to_string();
            let client = Role::Client {
                scheduler: scheduler.clone(),
            };
            let mut near = start("the client", client)?;
            let client = near.said("its key", stop, |word| match word {
                Word::Key(key) => Some(key),
                _ => None,
            })?;
            (
                near,
                start("the server", Role::Server { scheduler, client })?,
            )
        }
        Way::Tcp(links) => {
            let shares = tcp::shares(options, links);
            let sender = Role::Sender {
                shares: shares.clone(),
            };
            let near = start("the sender", sender)?;
            (near, start("the receiver", Role::Receiver { shares })?)
        }
    };
    let (server, addrs) = far.said("where it listens", stop, |word| match word {
        Word::Listens { key, addrs } => Some((key, addrs)),
        _ => None,
    })?;
    let relays = relays(options, way, &addrs, folder, stop)?;
    let entries = relays.iter().map(|relay| relay.addr).collect();
    near.tell(&Go { server, entries })?;
    let redundancy = follow(&mut near, &mut far, tally, stop)?;
    let mut late_ms: f64 = 0.0;
    for relay in relays {
        late_ms = late_ms.max(relay.end(stop)?);
    }
    Ok(Ended {
        redundancy,
        relays_late: Duration::try_from_secs_f64(late_ms / 1e3).unwrap_or_default(),
    })
}

/// The relays of the links in use; of several addresses the first is the first link's.
fn relays(
    options: &Options,
    way: &Way,
    addrs: &[SocketAddr],
    folder: &Path,
    stop: &AtomicBool,
) -> Result<Vec<Relay>, RunError> {
    let to = addrs.iter().cycle();
    let links = way.links().into_iter().zip(to);
    let start = |(link, to): (usize, &SocketAddr)| {
        let flags = link_flags(&options.links[link], &options.links[link]);
        let (to, seed) = (to.to_string(), link_seed(options, link));
        Ok(Relay::start(NAMES[link], flags, &to, seed, folder, stop)?)
    };
    links.map(start).collect()
}

/// Gives the tally what the two ends report, until all is over; answers the redundancy.
fn follow(
    near: &mut Part,
    far: &mut Part,
    tally: &Mutex<Tally>,
    stop: &AtomicBool,
) -> Result<f64, RunError> {
    let anchor = Anchor::new();
    let mut came = VecDeque::new();
    let mut over: Option<(Instant, f64)> = None;
    loop {
        look(stop)?;
        // The sending end speaks of a block before it is under way, but its words may be read
        // later.
        if over.is_none() {
            match near.word(LOOK)? {
                Some(Word::Wrote(at)) => lock(tally).wrote(anchor.instant(at)),
                Some(Word::Refused) => lock(tally).refused(),
                Some(Word::Over(redundancy)) => over = Some((Instant::now(), redundancy)),
                _ => {}
            }
        }
        let patience = if over.is_some() { LOOK } else { Duration::ZERO };
        while let Some(word) = far.word(patience)? {
            if let Word::Came { number, at } = word {
                came.push_back((number, anchor.instant(at)));
            }
        }
        let mut tally = lock(tally);
        let written = tally.written();
        while let Some((number, at)) = came.pop_front() {
            if over.is_none() && number.is_some_and(|number| number >= written) {
                came.push_front((number, at));
                break;
            }
            tally.came(number, at);
        }
        if let Some((since, redundancy)) = over
            && (tally.is_complete() || since.elapsed() > REST)
        {
            return Ok(redundancy);
        }
    }
}

/// One end of a run as a process.
#[derive(Debug)]
struct Part(Process);

impl Part {
    fn start(name: &str, folder: &Path, order: &Order) -> Result<Self, RunError> {
        let words = ["demo", "--part"].map(str::to_owned);
        let mut part = Part(Process::start(name, folder, &words)?);
        part.tell(order)?;
        Ok(part)
    }

    fn tell(&mut self, what: &impl serde::Serialize) -> Result<(), RunError> {
        let line = serde_json::to_string(what);
        let line = line.map_err(|error| RunError::Failed(error.to_string()))?;
        Ok(self.0.tell(&line)?)
    }

    /// Its next word; `None` if it says none within `patience`, or something else.
    fn word(&mut self, patience: Duration) -> Result<Option<Word>, RunError> {
        match self.0.line(patience)?.as_deref().and_then(Word::read) {
            Some(Word::Failed(why)) => Err(RunError::Failed(why)),
            word => Ok(word),
        }
    }

    /// Waits for a word that `find` has an answer to.
    fn said<T>(
        &mut self,
        what: &str,
        stop: &AtomicBool,
        find: impl Fn(Word) -> Option<T>,
    ) -> Result<T, RunError> {
        let found = self.0.said(what, stop, |line| match Word::read(line)? {
            Word::Failed(why) => Some(Err(RunError::Failed(why))),
            word => find(word).map(Ok),
        });
        found.map_err(RunError::from)?
    }
}
