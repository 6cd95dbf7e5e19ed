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
mod board;
mod line;
mod listening;
mod permits;
mod publication;
mod server;
pub mod status;
mod visits;

pub use board::Board;
pub use permits::{Permit, Permits};
pub use publication::{MOST, Publication};
pub use server::Publisher;
pub(crate) use server::Visits;

use crate::proxy::{Tasks, Tunnel};
use marline::identity::PublicKey;
use std::collections::HashMap;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

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

/// What a client publishes, which may change while it runs. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Published {
    publications: watch::Sender<Vec<Publication>>,
    board: Board,
}

impl Published {
    /// Publishes nothing but these from now on. Who came to others meanwhile is carried to the end.
    pub fn replace(&self, publications: &[Publication]) {
        self.publications.send_if_modified(|old| {
            let changed = old != publications;
            *old = publications.to_vec();
            changed
        });
    }

    /// How they stand.
    pub fn board(&self) -> Board {
        self.board.clone()
    }
}

/// Publishes over `tunnel`, as tasks; `own` is this client's key, for what the log says.
pub fn serve<T: Tunnel>(
    publications: &[Publication],
    own: PublicKey,
    tunnel: &T,
    tasks: &Tasks,
) -> Published {
    let published = Published {
        publications: watch::Sender::new(publications.to_vec()),
        board: Board::default(),
    };
    let visits = visits::take(
        tunnel.clone(),
        published.publications.subscribe(),
        tasks.clone(),
    );
    tasks.spawn_until_drained(visits);
    let changes = published.publications.subscribe();
    let asking = ask(
        changes,
        own,
        tunnel.clone(),
        tasks.clone(),
        published.board(),
    );
    tasks.spawn_until_drained(asking);
    published
}

/// Asks for what is published, and gives up what is not any more. Never completes.
async fn ask<T: Tunnel>(
    mut publications: watch::Receiver<Vec<Publication>>,
    own: PublicKey,
    tunnel: T,
    tasks: Tasks,
    board: Board,
) {
    let mut asked: HashMap<Publication, DropGuard> = HashMap::new();
    loop {
        let now = publications.borrow_and_update().clone();
        // A server that has nothing to open is not let.
        tunnel.take_flows(!now.is_empty());
        asked.retain(|publication, _| now.contains(publication));
        for publication in now {
            let entry = asked.entry(publication);
            let publication = entry.key().clone();
            entry.or_insert_with(|| {
                let given_up = CancellationToken::new();
                let stop = given_up.clone();
                let keep = asking::keep(tunnel.clone(), publication, own, board.clone());
                tasks.spawn_until_drained(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = keep => {}
                    }
                });
                given_up.drop_guard()
            });
        }
        if publications.changed().await.is_err() {
            // Whoever holds the other end has gone; what was asked for goes on.
            std::future::pending::<()>().await;
        }
    }
}
