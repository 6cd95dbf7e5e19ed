//! Keys, and the threads that hold the clients' sessions.

use super::Failure;
use super::load::{Phase, Shared, What, hold};
use super::server::Server;
use marline::identity::Identity;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, Scope, ScopedJoinHandle};
use tempfile::TempDir;
use tokio::sync::{mpsc, watch};

/// A folder with the server's key and the list of its clients, and the clients' keys.
pub(crate) struct Site {
    folder: TempDir,
    server: Identity,
    clients: Vec<Identity>,
}

/// Sessions on their threads. They end with [`end`](Self::end), and when this is dropped.
pub(crate) struct Crowd<'scope> {
    pub(crate) shared: Arc<Shared>,
    count: usize,
    phases: watch::Sender<Phase>,
    opened: mpsc::UnboundedReceiver<Result<(), Failure>>,
    threads: Vec<ScopedJoinHandle<'scope, Result<(), Failure>>>,
}

impl Site {
    pub(crate) fn new(clients: usize) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let server = Identity::generate()?;
        server.save_new(&folder.path().join("server"))?;
        let clients: Result<Vec<_>, _> = (0..clients).map(|_| Identity::generate()).collect();
        let clients = clients?;
        let keys = clients.iter().map(|client| client.public_key().to_string());
        std::fs::write(
            folder.path().join("clients"),
            keys.collect::<Vec<_>>().join("\n"),
        )?;
        Ok(Self {
            folder,
            server,
            clients,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Begins to open a session for each client.
    pub(crate) fn start<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        server: &Server,
        what: What,
    ) -> Result<Crowd<'scope>, Failure> {
        let shared = Arc::new(Shared::new());
        let (phases, phase) = watch::channel(Phase::Idle);
        let (tell, opened) = mpsc::unbounded_channel();
        let cores = thread::available_parallelism()?.get();
        let of_each = self.clients.len().div_ceil(cores).max(1);
        let at = (server.addr, self.server.public_key());
        let threads = self.clients.chunks(of_each).map(|some| {
            let (shared, tell, phase) = (Arc::clone(&shared), tell.clone(), phase.clone());
            scope.spawn(move || hold(some, at, what, &shared, &tell, &phase))
        });
        let threads = threads.collect();
        Ok(Crowd {
            shared,
            count: self.clients.len(),
            phases,
            opened,
            threads,
        })
    }
}

impl Crowd<'_> {
    /// Waits until all are open.
    pub(crate) fn opened(&mut self) -> Result<(), Failure> {
        for _ in 0..self.count {
            self.opened.blocking_recv().ok_or("the clients ended")??;
        }
        Ok(())
    }

    /// From now on they do this.
    pub(crate) fn turn(&self, phase: Phase) {
        self.phases.send_replace(phase);
    }

    /// Ends them.
    pub(crate) fn end(mut self) -> Result<(), Failure> {
        self.stop();
        for thread in std::mem::take(&mut self.threads) {
            thread.join().map_err(|_| "a client's thread panicked")??;
        }
        Ok(())
    }

    fn stop(&self) {
        self.turn(Phase::Over);
        self.shared.stop.store(true, Ordering::Relaxed);
    }
}

impl Drop for Crowd<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}
