//! The threads that a server's sessions run on.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Tasks that have their turns before the runtime looks at what has come: tokio's own 61 would
/// have a client wait for as many of another one's.
const EVENT_INTERVAL: u32 = 8;

/// A runtime of one thread each; the first is that of whoever started them. The others end when
/// this is dropped, with all that runs on them.
#[derive(Debug)]
pub(super) struct Workers {
    runtimes: Vec<Handle>,
    _stop: DropGuard,
}

impl Workers {
    /// As many as `count`, at least the runtime of now.
    ///
    /// # Errors
    /// The system's, which may have no threads or descriptors left.
    pub(super) fn start(count: usize) -> io::Result<Self> {
        let mut runtimes = vec![Handle::current()];
        let stop = CancellationToken::new();
        for number in 1..count {
            let runtime = Builder::new_current_thread()
                .event_interval(EVENT_INTERVAL)
                .enable_all()
                .build()?;
            runtimes.push(runtime.handle().clone());
            let stop = stop.clone();
            let thread = thread::Builder::new().name(format!("worker-{number}"));
            thread.spawn(move || {
                runtime.block_on(stop.cancelled());
                // The look-up of a name may still hang in a thread of its own.
                runtime.shutdown_background();
            })?;
        }
        Ok(Self {
            runtimes,
            _stop: stop.drop_guard(),
        })
    }

    pub(super) fn runtimes(&self) -> &[Handle] {
        &self.runtimes
    }
}
