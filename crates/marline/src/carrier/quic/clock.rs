use std::time::Instant;

/// The moment, as the runtime counts time.
pub(super) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
