//! Something that is due at a time which changes meanwhile; and times gone by.

use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Calls `act` whenever it is `due`, which is asked again after each call and whenever it
/// `changed`. Never completes.
pub(super) async fn act_in_time(
    changed: &Notify,
    due: impl Fn() -> Option<Instant>,
    act: impl Fn(Instant),
) {
    loop {
        let due = due();
        let waited = async {
            match due {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = changed.notified() => {}
            () = waited => act(Instant::now()),
        }
    }
}

/// This long ago.
pub(super) fn before(waited: Duration) -> Instant {
    let now = Instant::now();
    now.checked_sub(waited).unwrap_or(now)
}
