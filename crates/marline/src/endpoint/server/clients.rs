//! What a server knows of its clients beside their sessions: what they may send and receive, and
//! when they were seen last.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use super::Server;
use crate::endpoint::ClientLimits;
use crate::endpoint::shaping::Shaper;
use crate::identity::{AllowList, PublicKey};
use crate::support::lock;

/// Of all that ever had a session and are still let in.
#[derive(Debug, Default)]
pub(super) struct Clients {
    limits: HashMap<PublicKey, ClientLimits>,
    known: BTreeMap<PublicKey, Known>,
}

#[derive(Debug, Default)]
struct Known {
    shaper: Arc<Shaper>,
    seen: Option<SystemTime>,
}

impl Clients {
    /// What the sessions of a client share.
    pub(super) fn shaper(&mut self, client: PublicKey) -> Arc<Shaper> {
        let shaper = &self.known.entry(client).or_default().shaper;
        shaper.set(self.limits.get(&client).copied().unwrap_or_default());
        Arc::clone(shaper)
    }

    /// The client is there now.
    pub(super) fn seen(&mut self, client: PublicKey) {
        self.known.entry(client).or_default().seen = Some(SystemTime::now());
    }

    /// Forgets those who are let in no more.
    pub(super) fn retain(&mut self, allow: &AllowList) {
        self.known.retain(|client, _| allow.contains(client));
    }
}

impl Server {
    /// Keeps clients to these rates, and others to none, from now on; sessions go on.
    pub fn limit_clients(&self, limits: HashMap<PublicKey, ClientLimits>) {
        let mut clients = lock(&self.shared.clients);
        for (client, known) in &clients.known {
            let new = limits.get(client).copied().unwrap_or_default();
            known.shaper.set(new);
        }
        clients.limits = limits;
    }

    /// When each client had a working path last, of those that had a session since this server
    /// started and are let in.
    pub fn last_seen(&self) -> Vec<(PublicKey, SystemTime)> {
        let present: Vec<PublicKey> = {
            let registry = self.shared.registry();
            let entries = registry.iter();
            let present = entries.filter(|entry| entry.handle.has_working_path());
            present.map(|entry| entry.peer).collect()
        };
        let mut clients = lock(&self.shared.clients);
        present.into_iter().for_each(|client| clients.seen(client));
        let known = clients.known.iter();
        known
            .filter_map(|(client, known)| Some((*client, known.seen?)))
            .collect()
    }
}
