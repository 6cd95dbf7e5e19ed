//! The tasks behind a proxy, and how they end: first no new ones, then those that run finish, then
//! the rest are cut off.

use std::future::Future;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// All connections and associations of one running program. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    draining: CancellationToken,
    cut: CancellationToken,
    running: TaskTracker,
}

impl Tasks {
    /// No tasks yet.
    pub fn new() -> Self {
        Tasks::default()
    }

    /// Runs `task` until it ends or is cut off.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(self.track(task));
    }

    /// The same on another runtime.
    pub fn spawn_on(&self, runtime: &Handle, task: impl Future<Output = ()> + Send + 'static) {
        runtime.spawn(self.track(task));
    }

    /// Has `task`, which somebody else runs, end when what runs is cut off.
    pub(crate) fn track(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let cut = self.cut.clone();
        self.running.track_future(async move {
            tokio::select! {
                biased;
                () = cut.cancelled() => {}
                () = task => {}
            }
        })
    }

    /// Runs `task` until it ends or nothing new is to be begun.
    pub fn spawn_until_drained(&self, task: impl Future<Output = ()> + Send + 'static) {
        let draining = self.draining.clone();
        self.spawn(async move {
            tokio::select! {
                () = draining.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// Completes when nothing new is to be begun.
    pub async fn draining(&self) {
        self.draining.cancelled().await;
    }

    /// Begins nothing new from now on; what runs goes on.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Drops whatever still runs, which resets its connections and flows.
    pub fn cut(&self) {
        self.draining.cancel();
        self.cut.cancel();
    }

    /// Drains, waits at most `patience` for what runs to end, and cuts off the rest. Returns how
    /// many were cut off.
    pub async fn finish(&self, patience: Duration) -> usize {
        self.drain();
        self.running.close();
        let left = match tokio::time::timeout(patience, self.running.wait()).await {
            Ok(()) => 0,
            Err(_) => self.running.len(),
        };
        self.cut();
        self.running.wait().await;
        left
    }
}
