//! One emulated link in real time: a UDP relay that treats datagrams as [`marline_link`] says.
//!
//! ```text
//!  client ──▶ listen socket ──▶ up link ──▶ socket of that client ──▶ target
//!         ◀──               ◀── down link ◀──                     ◀──
//! ```
//!
//! Every client address gets a socket of its own towards the target, as behind a NAT; all clients
//! share the two links. A datagram counts with its IP and UDP headers (28 bytes with IPv4, 48 with
//! IPv6), so that a rate means what it means on a real link.
//!
//! An [`Emulator`] is one thread that sleeps until a datagram comes or falls due; it needs no
//! runtime and ends when it is dropped.

mod clients;
mod clock;
mod direction;
mod emulator;
mod error;
mod relay;
mod socket;
mod stats;

#[cfg(test)]
mod tests;

pub use direction::Direction;
pub use emulator::{Emulator, EmulatorConfig};
pub use error::EmulateError;
pub use stats::{DirectionStats, Lateness, Stats};
