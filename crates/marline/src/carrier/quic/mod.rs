//! QUIC connections, handled on the task of the session that they carry.
//!
//! | file | what |
//! | --- | --- |
//! | `carrier.rs` | [`QuicCarrier`]: a connection as sessions know carriers |
//! | `connection.rs` | [`Connection`]: a handle on one, from its handshake to its end |
//! | `shared.rs`, `state.rs` | the connection behind its lock: packets in, packets out, time |
//! | `outgoing.rs`, `timer.rs` | what it sends; when its next timer runs out |
//! | `streams.rs` | the stream of the handshake |
//! | `underlay.rs` | its own socket, or a server's |
//! | `demux.rs` | a server's socket, the task that reads it, and the table of its connections |
//! | `server.rs` | [`ServerEndpoint`], [`Incoming`]: where a server takes connections in |
//! | `steering.rs` | which of a server's workers has a connection, by its id |
//! | `inbox.rs` | what waits for the task of one connection there |
//! | `socket.rs`, `batch.rs`, `packet.rs` | UDP in batches, both ways |
//! | `readiness.rs` | when a socket can be read and written |
//! | `plain.rs` | UDP where the system lacks options |
//!
//! The protocol is `quinn-proto`'s, which knows neither sockets nor tasks; system calls are
//! `quinn-udp`'s. A client's connection owns its socket: the session's task reads it, decrypts,
//! encrypts and sends, with no other task and no queue in between. A server's socket is shared: a
//! task reads it and puts each packet into the inbox of its connection (a lock and a waker), and
//! the session's task does the rest and sends by the shared socket itself. A server with several
//! workers has a socket for each, with a task that reads it and a table of connections.

mod batch;
mod carrier;
mod clock;
mod connection;
mod demux;
mod inbox;
mod outgoing;
mod packet;
mod plain;
mod readiness;
mod server;
mod shared;
mod socket;
mod state;
mod steering;
mod streams;
mod timer;
mod underlay;

pub use carrier::QuicCarrier;
pub(super) use carrier::{Side, exported, remote_addr};
pub(super) use connection::Connection;
pub(super) use demux::Worker;
pub(super) use server::{Incoming, ServerEndpoint};
pub(super) use socket::Socket;
pub(super) use streams::SendStream;
