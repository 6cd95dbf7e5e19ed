//! Looks at the program at a steady pace, whether or not anybody reads the page: who opens it wants
//! to see what was.

use super::store::Store;
use crate::control::Manage;
use hyper::body::Bytes;
use marline::support::lock;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

/// Glances in a second: what is over sooner is dated by how long it has lasted, if at all.
const GLANCES: u32 = 4;
/// With more flows and listed clients than this a look costs more than it finds, and there is one
/// a second: 1000 flows take some 2 ms.
const MANY_FLOWS: usize = 100;

/// What was seen, and the newest look for those who read along.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) store: Mutex<Store>,
    newest: watch::Sender<Bytes>,
}

impl Default for Watched {
    fn default() -> Self {
        Watched {
            store: Mutex::default(),
            newest: watch::Sender::new(Bytes::new()),
        }
    }
}

impl Watched {
    /// Every look from now on, as JSON.
    pub(super) fn follow(&self) -> watch::Receiver<Bytes> {
        self.newest.subscribe()
    }

    /// Looks, for ever.
    pub(super) async fn watch<M: Manage>(&self, managed: Arc<M>) {
        let mut ticks = interval(Duration::from_secs(1) / GLANCES);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut size = 0;
        for tick in 0_u32.. {
            ticks.tick().await;
            let full = tick % GLANCES == 0;
            if !full && size > MANY_FLOWS {
                continue;
            }
            let status = managed.status().await;
            let sessions = status.sessions.iter();
            let flows: usize = sessions.map(|session| session.flows.len()).sum();
            size = flows + status.clients.len();
            let at = now();
            let mut store = lock(&self.store);
            match full {
                false => store.glance(&status, at),
                true => {
                    store.look(&status, at, Instant::now());
                    // Made even if nobody follows: the next one who does has it at once.
                    let text = store.now(status, at);
                    drop(store);
                    self.newest.send_replace(text.into());
                }
            }
        }
    }
}

/// Unix time, seconds.
fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| (since.as_secs_f64() * 1e3).round() / 1e3)
}
