//! Listens to both ends of a run's sessions, and scores what one said of the other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use marline_base::{Duration, Instant};
use marline_proto::observe::{Observer, Record};
use marline_proto::path::Foreseen;
use marline_proto::wire::PathId;

use super::claims::{Claim, Estimator, Recent, claims};
use super::score::Score;
use crate::engine::End;
use crate::scenario::Watch;

/// What left in the last part of a run may still be under way, and is not counted.
const LAST: Duration = Duration::from_secs(3);
/// What arrives later is called lost: nobody waits for it.
const LATEST: Duration = Duration::from_secs(10);

/// A direction of a path.
type Way = (String, bool, PathId);

#[derive(Debug, Default)]
struct Direction {
    /// Claims of packets under way; all of them or none.
    open: BTreeMap<u64, (Instant, [Claim; 3])>,
    /// When packets left, until they are acknowledged.
    recent: Recent,
}

#[derive(Debug, Default)]
struct Seen {
    from: Instant,
    ways: BTreeMap<Way, Direction>,
    scores: [Score; 3],
    now: Instant,
}

/// Sees what is claimed of each packet and what becomes of it.
#[derive(Clone, Debug, Default)]
pub struct Witness(Arc<Mutex<Seen>>);

#[derive(Debug)]
struct Ear {
    seen: Arc<Mutex<Seen>>,
    session: String,
    client: bool,
}

impl Ear {
    fn way(&self, client: bool, path: PathId) -> Way {
        (self.session.clone(), client, path)
    }
}

impl Witness {
    /// Of packets that leave from then on.
    pub fn new(from: Instant) -> Self {
        let seen = Seen {
            from,
            ..Seen::default()
        };
        Self(Arc::new(Mutex::new(seen)))
    }

    /// What makes it listen to a scenario's runs.
    pub fn watch(&self) -> Watch {
        let seen = Arc::clone(&self.0);
        Watch::new(move |session| {
            Some(Box::new(Ear {
                seen: Arc::clone(&seen),
                session: session.session.to_owned(),
                client: session.end == End::Client,
            }))
        })
    }

    /// The scores, in the order of [`Estimator::ALL`]. What left long before the end and did not
    /// arrive is lost.
    pub fn scores(&self) -> [(Estimator, Score); 3] {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = &mut *seen;
        for way in seen.ways.values_mut() {
            let open = std::mem::take(&mut way.open);
            for (sent, claims) in open.into_values() {
                if seen.now.since(sent) > LAST {
                    lost(&mut seen.scores, &claims);
                }
            }
        }
        std::array::from_fn(|n| (Estimator::ALL[n], seen.scores[n]))
    }
}

fn lost(scores: &mut [Score; 3], claims: &[Claim; 3]) {
    for (score, claim) in scores.iter_mut().zip(claims) {
        if let Some(law) = claim {
            score.on_lost(law);
        }
    }
}

impl Observer for Ear {
    fn on(&mut self, now: Instant, record: &Record) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = &mut *seen;
        seen.now = seen.now.max(now);
        let ways = &mut seen.ways;
        match record {
            Record::Acked {
                path,
                after,
                arrived_us: Some(at_us),
                ..
            } => {
                let sent = Instant::from_nanos(now.as_nanos() - after.as_nanos() as u64);
                let way = ways.entry(self.way(self.client, *path)).or_default();
                way.recent.on_acked(sent, *at_us);
            }
            Record::Received { path, packet, .. } => {
                let way = ways.entry(self.way(!self.client, *path)).or_default();
                let Some((sent, said)) = way.open.remove(packet) else {
                    return;
                };
                if now.since(sent) > LATEST {
                    return lost(&mut seen.scores, &said);
                }
                let at = now.as_nanos() as f64 / 1e3;
                for (score, claim) in seen.scores.iter_mut().zip(&said) {
                    if let Some(law) = claim {
                        score.on_arrived(law, at);
                    }
                }
            }
            _ => {}
        }
    }

    fn foresees(&self) -> bool {
        true
    }

    fn on_foreseen(&mut self, now: Instant, foreseen: &Foreseen) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let from = seen.from;
        let way = self.way(self.client, foreseen.path);
        let way = seen.ways.entry(way).or_default();
        let said = claims(now, foreseen, &mut way.recent);
        if now >= from && said.iter().all(Option::is_some) {
            way.open.insert(foreseen.packet, (now, said));
        }
    }
}
