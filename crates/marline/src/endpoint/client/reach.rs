//! Dials for as long as it takes, so that a path is up soon after the network is.
//!
//! A handshake asks again after 1, 3 and 7 s. A network that comes in between would be noticed
//! seconds later, and a slow one needs a dial that waits for long. So two dials are under way while
//! nobody answers: a patient one, and beside it one that is begun anew every one and a half
//! seconds. Whatever changes at this host, its devices, addresses and routes, begins both anew.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::Shared;
use super::backoff::{Backoff, LONG, SHORT};
use super::dial::{dial, standing};
use super::error::PathFailure;
use crate::Path;
use crate::carrier::Dialled;

/// The time that a dial has before one that a change gives reason to takes its place: more than a
/// round trip on most paths. The patient one stays.
const AFTER_CHANGE: Duration = Duration::from_millis(200);

type Up = (Dialled, SocketAddr);

/// Dials until the server answers. Failures are handed to `failed` as they show.
pub(super) async fn reach(
    shared: &Arc<Shared>,
    path: impl Fn() -> Option<(Path, Option<SocketAddr>)>,
    backoff: &mut Backoff,
    mut failed: impl FnMut(PathFailure),
) -> Up {
    let mut changes = shared.teller.changes();
    let began = Instant::now();
    let mut dials = Dials::default();
    let mut stands = None;
    loop {
        let Some((spec, favourite)) = path() else {
            // It was removed, and whoever waits here is about to be ended.
            return std::future::pending().await;
        };
        stands.get_or_insert_with(|| standing(shared, &spec));
        dials.begin(dial(Arc::clone(shared), spec.clone(), favourite));
        let last = Instant::now();
        let mut again = last + pause(began.elapsed());
        loop {
            tokio::select! {
                Some(done) = dials.under_way.join_next() => match done {
                    Ok(Ok(up)) => return up,
                    Ok(Err(failure)) => {
                        failed(failure);
                        if dials.under_way.is_empty() {
                            again = Instant::now() + backoff.next();
                        }
                    }
                    // It was given up for a younger one.
                    Err(_) => {}
                },
                () = sleep_until(again) => break,
                () = changes.next() => {
                    // Its interface may be another one now.
                    let Some((spec, _)) = path() else {
                        continue;
                    };
                    let now = standing(shared, &spec);
                    if stands.as_ref() != Some(&now) {
                        stands = Some(now);
                        dials = Dials::default();
                        backoff.begin_again();
                        break;
                    }
                    // A route that was missing when a dial began need not show otherwise.
                    again = again.min((last + AFTER_CHANGE).max(Instant::now()));
                }
            }
        }
    }
}

/// From the beginning of one dial to that of the next, this long after the first: networks come
/// back within minutes, and what is longer away costs some hundred bytes a second.
fn pause(since: Duration) -> Duration {
    /// Ten minutes at the quick pace are a megabyte for each address of the server.
    const QUICK: Duration = Duration::from_secs(600);
    if since < QUICK { SHORT } else { LONG }
}

/// A patient dial, and one that is begun again and again.
#[derive(Default)]
struct Dials {
    under_way: JoinSet<Result<Up, PathFailure>>,
    patient: Option<AbortHandle>,
    eager: Option<AbortHandle>,
}

impl Dials {
    fn begin(&mut self, dial: impl Future<Output = Result<Up, PathFailure>> + Send + 'static) {
        if let Some(before) = self.eager.take() {
            before.abort();
        }
        let new = self.under_way.spawn(dial);
        match &self.patient {
            Some(patient) if !patient.is_finished() => self.eager = Some(new),
            _ => self.patient = Some(new),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn the_patient_dial_outlives_the_eager_ones() {
        let (alive, mut ended) = mpsc::unbounded_channel();
        struct Told(u32, mpsc::UnboundedSender<u32>);
        impl Drop for Told {
            fn drop(&mut self) {
                let _ = self.1.send(self.0);
            }
        }
        let mut dials = Dials::default();
        for number in 0..4 {
            let told = Told(number, alive.clone());
            dials.begin(async move {
                let _told = told;
                std::future::pending().await
            });
        }
        assert_eq!((ended.recv().await, ended.recv().await), (Some(1), Some(2)));
        assert!(ended.try_recv().is_err());
        drop(dials);
        let mut left = [ended.recv().await, ended.recv().await];
        left.sort();
        assert_eq!(left, [Some(0), Some(3)]);
    }
}
