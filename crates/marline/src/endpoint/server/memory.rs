//! What all sessions of a server hold, and who yields when that is too much.
//!
//! Each session bounds itself; this bounds them together. A client's sessions share half of what is
//! free, as the flows of a session do (`marline_proto`, `session/memory.rs`), and one turn on the
//! thread. Beyond the budget the client that holds most gives up flows, the longest-stalled first.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use marline_proto::wire::{FlowId, close_code};
use tokio::time::{MissedTickBehavior, interval};

use super::Shared;
use crate::endpoint::Session;
use crate::identity::PublicKey;

/// How often it is looked at: at 1 Gb/s 12 MB come between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// A session as this knows it.
#[derive(Debug)]
struct Holder {
    client: PublicKey,
    handle: Session,
    held: u64,
}

/// Watches over the sessions' memory until the server stops.
pub(super) async fn watch(shared: Arc<Shared>) {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = looks.tick() => look(&shared),
            () = shared.stop.cancelled() => return,
        }
    }
}

/// Shares the memory out: as often as time asks, and when a session begins.
pub(super) fn look(shared: &Shared) {
    let holders: Vec<Holder> = {
        let registry = shared.registry();
        // What is over gives its memory back by itself.
        let open = registry
            .iter()
            .filter(|entry| entry.handle.is_closed().is_none());
        let holders = open.map(|entry| Holder {
            client: entry.peer,
            handle: entry.handle.clone(),
            held: entry.handle.held(),
        });
        holders.collect()
    };
    let mut clients: BTreeMap<PublicKey, u64> = BTreeMap::new();
    let mut sessions: BTreeMap<PublicKey, u32> = BTreeMap::new();
    for holder in &holders {
        *clients.entry(holder.client).or_default() += holder.held;
        *sessions.entry(holder.client).or_default() += 1;
    }
    let mut all: u64 = clients.values().sum();
    for holder in &holders {
        let client = clients[&holder.client];
        let free = most(shared.memory, all - client).saturating_sub(client);
        // Until the next look none of its sessions takes what another one may have by then.
        let own = sessions[&holder.client];
        holder.handle.limit_growth(free / u64::from(own));
        holder.handle.set_siblings(own);
    }
    while all > shared.memory {
        let Some((&client, &held)) = clients.iter().max_by_key(|(_, held)| **held) else {
            return;
        };
        let others = clients.iter().filter(|(other, _)| **other != client);
        let next = others.map(|(_, held)| *held).max().unwrap_or(0);
        // What makes it equal to the next one, and where they are equal already an eighth, so that
        // few steps are enough.
        let too_much = all - shared.memory;
        let excess = (held - next).clamp(too_much.div_ceil(8), too_much);
        let freed = relieve(shared, client, &holders, excess);
        if freed == 0 {
            return;
        }
        clients.insert(client, held.saturating_sub(freed));
        all = all.saturating_sub(freed);
    }
}

/// Bytes that a client may hold beside what others hold: half of what is free.
fn most(budget: u64, others: u64) -> u64 {
    budget.saturating_sub(others) / 2
}

/// Has a client give up what holds at least `excess` bytes, if it can; returns how many bytes that
/// freed.
fn relieve(shared: &Shared, client: PublicKey, holders: &[Holder], excess: u64) -> u64 {
    let own = holders.iter().filter(|holder| holder.client == client);
    let held = || own.clone().map(|holder| holder.handle.held()).sum::<u64>();
    let flows = |(index, holder): (usize, &Holder)| {
        let flows = holder.handle.stalled_flows().into_iter();
        flows.map(move |(since, flow, held)| (since, index, flow, held))
    };
    let mut stalled: Vec<_> = own.clone().enumerate().flat_map(flows).collect();
    stalled.sort_unstable_by_key(|(since, ..)| *since);
    let (mut sum, mut victims) = (0, BTreeMap::<usize, Vec<FlowId>>::new());
    for (_, index, flow, held) in stalled {
        if sum >= excess {
            break;
        }
        sum += held;
        victims.entry(index).or_default().push(flow);
    }
    let before = held();
    for (index, holder) in own.clone().enumerate() {
        if let Some(flows) = victims.remove(&index) {
            holder.handle.give_up(flows);
        }
    }
    let freed = before.saturating_sub(held());
    if freed > 0 {
        return freed;
    }
    // Flows that hold nothing cost something, too.
    let open = own.filter(|holder| holder.handle.is_closed().is_none());
    let Some(largest) = open.max_by_key(|holder| holder.handle.held()) else {
        return 0;
    };
    let freed = largest.handle.held();
    tracing::warn!(
        "a session with {} was ended: the server's memory was needed",
        shared.name(client)
    );
    let reason = "the server needs the memory that this session holds";
    largest.handle.close(close_code::NONE, reason);
    freed
}
