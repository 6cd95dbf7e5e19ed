//! The system's own resolver, in threads: it follows `/etc/hosts`, nsswitch.conf and resolv.conf,
//! and waits as long as those say. Nothing can make it stop, so each question has a thread;
//! [`Names`](super::names::Names) bounds their number.

use super::names::{Answer, Ask};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::thread;

/// Address space of a thread (bytes): half of what Rust's threads have by default. What the
/// resolver's plug-ins need is written down nowhere, and what is not touched costs no memory.
const STACK: usize = 1 << 20;
/// What answers depend on beside what name servers say.
const SETTINGS: [&str; 3] = ["/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf"];

/// A thread for each question.
#[derive(Debug)]
pub(super) struct Threads;

impl Ask for Threads {
    fn ask(&self, name: Arc<str>, answer: Answer) {
        let thread = thread::Builder::new()
            .name("resolver".to_owned())
            .stack_size(STACK);
        let started = thread.spawn(move || {
            let found = (&*name, 0).to_socket_addrs();
            answer.give(found.map(Iterator::collect));
        });
        // Without a thread, `answer` is gone, which is an answer, too.
        if let Err(error) = started {
            tracing::debug!(%error, "no thread to look up a name");
        }
    }

    fn settings(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        for file in SETTINGS {
            state(file).hash(&mut hash);
        }
        hash.finish()
    }
}

/// What changes with a file's content.
#[cfg(unix)]
fn state(file: &str) -> Option<impl Hash> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::metadata(file).ok()?;
    Some((
        meta.dev(),
        meta.ino(),
        meta.size(),
        meta.mtime(),
        meta.mtime_nsec(),
    ))
}

#[cfg(not(unix))]
fn state(file: &str) -> Option<impl Hash> {
    let meta = std::fs::metadata(file).ok()?;
    Some((meta.len(), meta.modified().ok()))
}
