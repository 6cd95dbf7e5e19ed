//! How many sockets and files the program may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open descriptors as far as the system lets a process do so itself: the usual
/// 1024 are for programs that wait with select(2), and each connection through a proxy is one.
pub(super) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        tracing::debug!("at most {} descriptors", shown(current));
        return;
    }
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::debug!(
            "at most {} descriptors, {} before",
            shown(maximum),
            shown(current)
        ),
        Err(error) => tracing::debug!(
            "at most {} descriptors; the limit cannot be raised: {error}",
            shown(current)
        ),
    }
}

fn shown(limit: Option<u64>) -> String {
    limit.map_or_else(|| "any number of".into(), |limit| limit.to_string())
}
