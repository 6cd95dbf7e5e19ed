//! The session that all paths share: the first connection opens it, the others join it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use marline_proto::path::PathParams;
use marline_proto::wire::{Params, PathId, close_code};
use marline_proto::{CloseReason, Session as Machine, Side};
use tokio::time::timeout;

use super::Shared;
use super::error::PathFailure;
use super::slot::Slot;
use crate::Path;
use crate::carrier::handshake::{RefuseCode, SessionKey};
use crate::carrier::{Carrier, CarrierKind, DialError, Dialled, PathCarrier};
use crate::endpoint::{Driver, Session};

/// How long one connection may keep the others waiting while it opens the session.
const OPEN: Duration = Duration::from_secs(4);

/// A session that runs.
#[derive(Debug)]
pub(super) struct Live {
    /// Counted from 0.
    pub(super) number: u64,
    pub(super) handle: Session,
    key: SessionKey,
    next_path: AtomicU64,
}

/// The session of the moment.
#[derive(Debug, Default)]
pub(super) struct Current {
    live: Option<Arc<Live>>,
    /// Sessions that were opened so far.
    opened: u64,
    /// Why the last one ended.
    last_end: Option<String>,
}

impl Current {
    /// The session, unless it is over.
    pub(super) fn live(&self) -> Option<Arc<Live>> {
        let live = self.live.as_ref()?;
        live.handle.is_closed().is_none().then(|| Arc::clone(live))
    }

    /// Why there is no session, for an application.
    pub(super) fn why_none(&self) -> String {
        let closed = self.live.as_ref().and_then(|live| live.handle.is_closed());
        let ended = closed.map(|closed| closed.0.to_string());
        match ended.or_else(|| self.last_end.clone()) {
            Some(reason) => format!("the last one ended ({reason}) and there is no new one yet"),
            None => "still connecting".to_owned(),
        }
    }

    /// Is there a session, or was there one?
    pub(super) fn was_up(&self) -> bool {
        self.opened > 0
    }

    /// The number of the session to come.
    pub(super) fn next(&self) -> u64 {
        self.opened
    }
}

fn params(carrier: &mut PathCarrier, spec: &Path) -> PathParams {
    PathParams {
        max_datagram: carrier.least_datagram(),
        cost: u32::from(spec.cost),
        standby: spec.standby,
        rtt: carrier.rtt(),
        carrier_controls: carrier.congestion().is_some(),
        survives_rebinding: carrier.kind() == CarrierKind::Quic,
    }
}

impl Shared {
    /// Makes a connection a path of the session, opening the session if there is none.
    pub(super) async fn attach(
        self: &Arc<Self>,
        dialled: Dialled,
        spec: &Path,
    ) -> Result<(Arc<Live>, PathId), PathFailure> {
        let client = self.options.identity.public_key();
        let live = {
            let _opening = self.opening.lock().await;
            let live = self.current.borrow().live();
            match live {
                Some(live) => live,
                None => {
                    let opened = timeout(OPEN, self.open(dialled, spec)).await;
                    return opened.unwrap_or_else(|_| {
                        Err(PathFailure::passing(
                            "the server answered, but then did not open a session in time".into(),
                        ))
                    });
                }
            }
        };
        let path = PathId(live.next_path.fetch_add(1, Ordering::Relaxed));
        let mut carrier = dialled.join(&live.key, path).await.map_err(|error| {
            if let DialError::Refused {
                code: RefuseCode::UnknownSession | RefuseCode::Proof,
                reason,
                ..
            } = &error
            {
                live.handle.end(CloseReason::Peer {
                    code: close_code::NONE,
                    reason: reason.clone(),
                });
            }
            PathFailure::of(&error, client)
        })?;
        live.handle
            .add_path(
                path,
                &spec.name,
                &params(&mut carrier, spec),
                Box::new(carrier),
            )
            .map_err(|error| PathFailure::passing(error.to_string()))?;
        Ok((live, path))
    }

    async fn open(
        self: &Arc<Self>,
        dialled: Dialled,
        spec: &Path,
    ) -> Result<(Arc<Live>, PathId), PathFailure> {
        let first = PathId(0);
        let mut ours = Vec::new();
        self.options.session.params().encode(&mut ours);
        let mut opened = dialled
            .open(first, Bytes::from(ours))
            .await
            .map_err(|error| PathFailure::of(&error, self.options.identity.public_key()))?;
        let theirs = Params::decode(&opened.params).map_err(|error| {
            PathFailure::passing(format!("the server's parameters cannot be read: {error}"))
        })?;
        let config = self.options.session.clone();
        let seed = crate::endpoint::seed();
        let (driver, handle) =
            Driver::new(|now| Machine::new(now, Side::Client, config, theirs, seed))
                .map_err(|error| PathFailure::passing(error.to_string()))?;
        // Most servers have nothing to open.
        if !self.takes_flows.load(Ordering::Relaxed) {
            handle.refuse_flows();
        }
        handle
            .add_path(
                first,
                &spec.name,
                &params(&mut opened.carrier, spec),
                Box::new(opened.carrier),
            )
            .map_err(|error| PathFailure::passing(error.to_string()))?;
        let live = Arc::new(Live {
            number: self.current.borrow().next(),
            handle,
            key: opened.key,
            next_path: AtomicU64::new(1),
        });
        tracing::info!(
            "session {} with {} is open",
            live.number,
            self.options.server
        );
        if live.number == 0 {
            let mut slots = self.slots();
            let others = slots.iter_mut();
            let others = others.filter(|slot| slot.spec.name != spec.name);
            others.for_each(Slot::complain);
        }
        self.current.send_modify(|current| {
            current.live = Some(Arc::clone(&live));
            current.opened = live.number + 1;
        });
        // That may have changed since this session was made.
        live.handle
            .take_flows(self.takes_flows.load(Ordering::Relaxed));
        self.tasks.spawn(watch(Arc::clone(self), Arc::clone(&live)));
        self.tasks.spawn(driver);
        // Since it was asked to stop, the client may have looked for a session and found none.
        if self.stop.is_cancelled() {
            live.handle.close(close_code::NONE, "the client stops");
        }
        Ok((live, first))
    }
}

/// Notes the end of a session.
async fn watch(shared: Arc<Shared>, live: Arc<Live>) {
    let reason = live.handle.closed().await.0.to_string();
    if shared.stop.is_cancelled() {
        tracing::info!("session {} is over: {reason}", live.number);
    } else {
        tracing::warn!(
            "session {} is over: {reason}; dialling for a new one",
            live.number
        );
    }
    shared.current.send_modify(|current| {
        // There may be a new one already.
        let same = |other: &Arc<Live>| Arc::ptr_eq(other, &live);
        if current.live.as_ref().is_some_and(same) {
            current.live = None;
        }
        current.last_end = Some(reason);
    });
}
