//! Ports at the server that lead to services behind a client.
//!
//! A client asks for a port by a stream whose destination is the port with the role *ask*
//! (`destination/port.rs`). The server answers as on any stream ([`reply`](crate::proxy::reply)):
//! where it listens, or why it does not. A server that does not know the destination answers that
//! it does not understand the target. The client has the port for as long as it keeps the stream
//! open; behind the answer the server says in a byte, whenever that changes, whether it has it
//! (`Standing`). The client says nothing on the stream.
//!
//! Who comes to the port is carried by a flow that the server opens, of the role *visit*: a stream
//! for a connection, on which the client answers as a server does, or a flow of messages for all
//! datagrams of one address. It names the port. Where that leads is in the client's own
//! configuration and nowhere else: a hostile server reaches what the client publishes, no more.

mod asking;
mod line;
mod listening;
mod permits;
mod publication;
mod server;
mod visits;

pub use permits::{Permit, Permits};
pub use publication::{MOST, Publication};
pub use server::Publisher;
pub(crate) use server::Visits;

use crate::proxy::{Tasks, Tunnel};
use marline::identity::PublicKey;
use std::sync::Arc;

/// Connections that one published port carries at a time, and addresses that it carries datagrams
/// of. Each costs a flow, and a socket at either end; a client takes 1024 flows of its server
/// (`max_flows`). A choice, not tuned.
const EACH: usize = 256;
/// Of all ports of a client together: half of the flows that it takes.
const ALL: usize = 512;

/// Whether the client that asked for a port has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Standing {
    /// It has it.
    Has = 0,
    /// A newer session of the same key has it.
    SetAside = 1,
}

impl Standing {
    /// What a byte says; `None` for one of a newer server.
    fn decode(byte: u8) -> Option<Self> {
        [Standing::Has, Standing::SetAside]
            .into_iter()
            .find(|standing| *standing as u8 == byte)
    }
}

/// Publishes over `tunnel`, as tasks; `own` is this client's key, for what the log says.
pub fn serve<T: Tunnel>(publications: &[Publication], own: PublicKey, tunnel: &T, tasks: &Tasks) {
    if publications.is_empty() {
        return;
    }
    let all: Arc<[Publication]> = publications.into();
    tasks.spawn_until_drained(visits::take(tunnel.clone(), all, tasks.clone()));
    for publication in publications {
        let asking = asking::keep(tunnel.clone(), publication.clone(), own);
        tasks.spawn_until_drained(asking);
    }
}
