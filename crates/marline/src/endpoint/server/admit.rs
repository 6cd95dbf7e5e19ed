//! Who may open a session, and who may join one.

use std::sync::Arc;

use bytes::Bytes;
use marline_proto::path::PathParams;
use marline_proto::wire::{Params, close_code};
use marline_proto::{Session as Machine, Side};

use super::Shared;
use super::memory;
use super::registry::{Entry, UsedPaths};
use crate::carrier::handshake::RefuseCode;
use crate::carrier::{Attempt, Carrier, JoinAttempt, NewAttempt, PathCarrier};
use crate::endpoint::Incomings;
use crate::endpoint::{Driver, Session};
use crate::identity::PublicKey;
use crate::support::lock;

pub(super) fn admit(shared: &Arc<Shared>, attempt: Attempt) {
    if shared.stop.is_cancelled() {
        attempt.refuse(RefuseCode::Stopping, "the server is about to stop");
        return;
    }
    match attempt {
        Attempt::New(attempt) => open(shared, attempt),
        Attempt::Join(attempt) => join(shared, attempt),
    }
}

fn params(carrier: &mut PathCarrier) -> PathParams {
    PathParams {
        max_datagram: carrier.least_datagram(),
        rtt: carrier.rtt(),
        carrier_controls: carrier.congestion().is_some(),
        ..PathParams::default()
    }
}

/// Makes room for one more session of this client, if it can be had.
fn room(shared: &Shared, peer: PublicKey) -> Result<(), &'static str> {
    let registry = shared.registry();
    if registry.len() >= shared.max_sessions {
        return Err("the server has as many sessions as it takes; try later");
    }
    if registry.of(peer).count() < shared.max_sessions_per_client {
        return Ok(());
    }
    // Left behind by a client that was killed.
    let orphan = registry
        .of(peer)
        .find(|entry| !entry.handle.has_working_path());
    match orphan {
        Some(entry) => {
            let reason = "the client has newer sessions, and this one no working path";
            entry.handle.close(close_code::NONE, reason);
            Ok(())
        }
        None => Err("this client has as many sessions as it may; end another one"),
    }
}

fn open(shared: &Arc<Shared>, attempt: NewAttempt) {
    let (peer, path) = (attempt.peer(), attempt.path());
    if let Err(reason) = room(shared, peer) {
        tracing::warn!("a session was refused to {}: {reason}", shared.name(peer));
        attempt.refuse(RefuseCode::Full, reason);
        return;
    }
    let theirs = match Params::decode(attempt.params()) {
        Ok(theirs) => theirs,
        Err(error) => {
            attempt.refuse(
                RefuseCode::Params,
                format!("the client's parameters: {error}"),
            );
            return;
        }
    };
    let worker = {
        let workers = shared.runtimes.len();
        shared.registry().place(peer, attempt.worker(), workers)
    };
    let runtime = &shared.runtimes[worker];
    // Its timers are the worker's.
    let _within = runtime.enter();
    let mut ours = Vec::new();
    shared.config.params().encode(&mut ours);
    let (mut carrier, key) = match attempt.accept(Bytes::from(ours)) {
        Ok(accepted) => accepted,
        Err(error) => {
            tracing::warn!("a session with {} failed: {error}", shared.name(peer));
            return;
        }
    };
    let (config, seed) = (shared.config.clone(), crate::endpoint::seed());
    let made = Driver::new(|now| Machine::new(now, Side::Server, config, theirs, seed));
    let (driver, handle) = match made {
        Ok(made) => made,
        Err(error) => {
            tracing::error!("no session can be made: {error}");
            return;
        }
    };
    let remote = carrier.remote_addr();
    let path_name = remote.to_string();
    if let Err(error) = handle.add_path(path, &path_name, &params(&mut carrier), Box::new(carrier))
    {
        tracing::warn!("a session with {} failed: {error}", shared.name(peer));
        return;
    }
    let mut used = UsedPaths::default();
    used.take(path);
    let session = key.session();
    let number = {
        let mut registry = shared.registry();
        let number = registry.number();
        registry.insert(Entry {
            number,
            peer,
            handle: handle.clone(),
            key,
            used,
            worker,
        });
        number
    };
    {
        let mut clients = lock(&shared.clients);
        handle.set_shaper(clients.shaper(peer));
        clients.seen(peer);
    }
    memory::look(shared);
    tracing::info!(
        "session {number} with {} from {remote} is open",
        shared.name(peer)
    );
    if shared
        .opened
        .try_send(Incomings::new(handle.clone(), peer))
        .is_err()
    {
        // As many wait to be served as there may be sessions.
        handle.close(close_code::INTERNAL, "the server is overloaded");
    }
    let driving = drive(Arc::clone(shared), driver, handle, number, session);
    shared.drivers.spawn_on(driving, runtime);
}

async fn drive(
    shared: Arc<Shared>,
    driver: Driver,
    handle: Session,
    number: u64,
    session: crate::carrier::handshake::SessionId,
) {
    driver.await;
    shared.registry().remove(session);
    let reason = handle.closed().await.0;
    tracing::info!("session {number} is over: {reason}");
}

fn join(shared: &Arc<Shared>, attempt: JoinAttempt) {
    let (path, peer) = (attempt.path(), attempt.peer());
    let mut registry = shared.registry();
    let found = registry.get(attempt.session());
    let Some(entry) = found.filter(|entry| entry.handle.is_closed().is_none()) else {
        let reason = "there is no such session: it has ended, or the server was restarted";
        attempt.refuse(RefuseCode::UnknownSession, reason);
        return;
    };
    let mut carrier = match attempt.accept(&entry.key) {
        Ok(carrier) => carrier,
        Err(error) => {
            tracing::warn!("{} was refused: {error}", shared.name(peer));
            return;
        }
    };
    // After the proof: nobody else may use numbers up.
    if !entry.used.take(path) {
        close(carrier, "the path's number was used before");
        return;
    }
    let remote = carrier.remote_addr();
    let added = entry.handle.add_path(
        path,
        &remote.to_string(),
        &params(&mut carrier),
        Box::new(carrier),
    );
    match added {
        Ok(()) => tracing::info!(
            number = path.0,
            "session {}: a path from {remote}",
            entry.number
        ),
        Err(error) => tracing::warn!("session {}: path {path}: {error}", entry.number),
    }
}

fn close(mut carrier: PathCarrier, reason: &str) {
    tracing::warn!(
        "a path from {} was refused: {reason}",
        carrier.remote_addr()
    );
    carrier.close(RefuseCode::Path.number().into(), reason);
}
