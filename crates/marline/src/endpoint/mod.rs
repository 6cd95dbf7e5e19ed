//! Sessions over real carriers: the pure state machine of `marline-proto`, driven by tokio.
//!
//! | file | what |
//! | --- | --- |
//! | `client/` | [`Client`]: one session with one server, kept up over all paths |
//! | `server/` | [`Server`]: many sessions with many clients |
//! | `incomings.rs` | [`Incomings`]: the accepting end of a session |
//! | `info.rs` | [`SessionInfo`]: how a session and its paths stand |
//! | `clock.rs` | real time as the session counts it |
//! | `shared.rs` | the session behind its lock, and who waits for what |
//! | `driver.rs` | the task that moves datagrams and time |
//! | `buffers.rs` | memory of datagrams on their way to carriers |
//! | `shaping.rs` | what a server lets each client send and receive |
//! | `session.rs` | [`Session`]: open and accept flows, add and remove paths |
//! | `stream.rs`, `packets.rs` | flows as tokio knows streams, and as messages |
//! | `blocks.rs`, `objects.rs`, `units.rs` | flows of blocks and of objects, and what they share |
//! | `report.rs` | what became of a block, and whether the paths carry a rate |
//! | `not_taken.rs` | why something was not taken, as tokio says it |

mod blocks;
mod buffers;
pub mod client;
mod clock;
mod driver;
mod incomings;
mod info;
mod not_taken;
mod objects;
mod packets;
mod report;
pub mod server;
mod session;
mod shaping;
mod shared;
mod stream;
#[cfg(test)]
mod tests;
mod units;

use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};

use crate::carrier::QuicConfig;

pub use blocks::Blocks;
pub use client::{
    AddPathError, Client, ClientOptions, ConnectError, FailureKind, NoSession, PathFailure,
    RemovePathError, UnknownPath,
};
pub use driver::Driver;
pub use incomings::Incomings;
pub use info::{PathInfo, SessionInfo, SessionState};
#[doc(hidden)]
pub use not_taken::not_taken;
pub use objects::{Object, Objects};
pub use packets::Packets;
pub use report::{GivenUp, RateReport, Settled};
pub use server::{BindError, Server, ServerOptions};
pub use session::{Accepted, Session};
pub use shaping::ClientLimits;
pub use shared::Closed;
pub use stream::{ReadHalf, Stream, WriteHalf};
pub use units::{Incoming, Units};

/// A seed for what needs no secrecy but should differ from run to run.
fn seed() -> u64 {
    let mut bytes = [0; 8];
    // Without randomness TLS fails anyway, and with a message.
    let _ = SystemRandom::new().fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// Carriers whose idle limit lies beyond the session's, which is the one that counts, and beyond
/// the longest time for which the session leaves a path alone.
fn outliving(quic: QuicConfig, session: &marline_proto::Config) -> QuicConfig {
    const BEYOND: Duration = Duration::from_secs(10);
    const LONGEST: Duration = Duration::from_secs(86_400);
    QuicConfig {
        idle_timeout: quic
            .idle_timeout
            .max(session.idle_timeout.max(session.longest_quiet) + BEYOND)
            .min(LONGEST),
        ..quic
    }
}
