//! Dials for as long as it takes, so that a path is up soon after the network is.
//!
//! A handshake asks again after 1, 3 and 7 s. A network that comes in between would be noticed
//! seconds later, and a slow one needs a dial that waits for long. So two dials are under way while
//! nobody answers: a patient one, and beside it one that is restarted every one and a half seconds.
//! When the interface or the source address changes that the path would have, both are restarted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::Shared;
use super::backoff::{Backoff, LONG, SHORT};
use super::dial::{dial, egresses};
use super::error::PathFailure;
use crate::Path;
use crate::carrier::Dialled;

/// The time that a dial has before an early one takes its place, after a change that need not
/// concern the path: more than a round trip on most paths. The patient one stays.
const AFTER_CHANGE: Duration = Duration::from_millis(200);

type Up = (Dialled, SocketAddr);

/// Dials until the server answers. Failures are handed to `failed` as they show.
pub(super) async fn reach(
    shared: &Arc<Shared>,
    path: impl Fn() -> Option<(Path, Option<SocketAddr>)>,
    backoff: &mut Backoff,
    mut failed: impl FnMut(PathFailure),
) -> Up {
    let mut changes = shared.notifier.changes();
    let began = Instant::now();
    let mut dials = Dials::default();
    let mut egress = None;
    // Was this dial begun before its time? Busy hosts change all the time, so after an early dial
    // comes one after the whole pause.
    let mut is_early = false;
    loop {
        let Some((spec, favourite)) = path() else {
            // It was removed, and whoever waits here is about to be ended.
            return std::future::pending().await;
        };
        egress.get_or_insert_with(|| egresses(shared, &spec));
        dials.begin(dial(Arc::clone(shared), spec.clone(), favourite));
        let last = Instant::now();
        let mut again = last + pause(began.elapsed());
        let mut next_is_early = false;
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
                () = sleep_until(again) => {
                    is_early = next_is_early;
                    break;
                }
                announced = changes.next() => {
                    // Its interface may be another one now.
                    let Some((spec, _)) = path() else {
                        continue;
                    };
                    let now = egresses(shared, &spec);
                    if egress.as_ref() != Some(&now) {
                        egress = Some(now);
                        dials = Dials::default();
                        backoff.reset();
                        is_early = false;
                        break;
                    }
                    // A route that was missing when a dial began need not show otherwise.
                    if announced && !is_early {
                        again = again.min((last + AFTER_CHANGE).max(Instant::now()));
                        next_is_early = true;
                    }
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

/// A patient dial, and one that is restarted again and again.
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
        struct Dial(u32, mpsc::UnboundedSender<u32>);
        impl Drop for Dial {
            fn drop(&mut self) {
                let _ = self.1.send(self.0);
            }
        }
        let mut dials = Dials::default();
        for number in 0..4 {
            let dial = Dial(number, alive.clone());
            dials.begin(async move {
                let _dial = dial;
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
