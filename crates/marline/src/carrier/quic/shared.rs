//! A connection behind its lock, and what keeps it open.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use quinn_proto::VarInt;

use super::demux::Close;
use super::state::State;
use crate::support::lock;

/// What handles, streams and the keeper share.
pub(super) struct Shared {
    state: Mutex<State>,
}

impl Shared {
    pub(super) const fn new(state: State) -> Self {
        let state = Mutex::new(state);
        Self { state }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Close for Shared {
    fn close(&self, code: VarInt, reason: &[u8]) {
        self.lock().close(code, reason);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

/// Keeps a connection open: when it is dropped, the connection is closed with code 0.
#[derive(Debug)]
pub(super) struct Handle(Arc<Shared>);

impl Handle {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    pub(super) const fn shared(&self) -> &Arc<Shared> {
        &self.0
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.close(VarInt::from_u32(0), b"");
    }
}
