//! How many sockets and files the program may have open.

use crate::platform::{self, Descriptors};

/// Raises the limit of open descriptors as far as the system lets a process do so itself: the usual
/// 1024 are for programs that wait with select(2), and each connection through a proxy is one.
pub(super) fn raise_limit() {
    let Descriptors { now, most } = platform::descriptors();
    if now == most {
        tracing::debug!("at most {} descriptors", shown(now));
        return;
    }
    match platform::raise_descriptors() {
        Ok(()) => tracing::debug!("at most {} descriptors, {} before", shown(most), shown(now)),
        Err(error) => tracing::debug!(
            "at most {} descriptors; the limit cannot be raised: {error}",
            shown(now)
        ),
    }
}

fn shown(limit: Option<u64>) -> String {
    limit.map_or_else(|| "any number of".into(), |limit| limit.to_string())
}
