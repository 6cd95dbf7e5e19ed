//! One emulated link in real time: a UDP relay that treats datagrams as [`marline_link`] says, or
//! two network devices between which it carries the kernel's packets.
//!
//! ```text
//!  client ──▶ listen socket ──▶ up link ──▶ socket of that client ──▶ target
//!         ◀──               ◀── down link ◀──                     ◀──
//!
//!  kernel ──▶ near device   ──▶ up link ──▶ far device            ──▶ kernel, in another network namespace
//!         ◀──               ◀── down link ◀──                     ◀──
//! ```
//!
//! Every client address gets a socket of its own towards the target, as behind a NAT; all clients
//! share the two links. A datagram counts with its IP and UDP headers (28 bytes with IPv4, 48 with
//! IPv6), so that a rate means what it means on a real link. A packet of a device counts as it is,
//! which is the same.
//!
//! An [`Emulator`] is one thread that sleeps until a packet comes or falls due; it needs no
//! runtime and ends when it is dropped.

mod clients;
mod clock;
#[cfg(target_os = "linux")]
mod device;
#[cfg(not(target_os = "linux"))]
#[path = "no_device.rs"]
mod device;
mod direction;
mod emulator;
mod ends;
mod error;
mod place;
mod port;
mod relay;
mod socket;
mod stats;
mod way;

#[cfg(test)]
mod tests;

pub use device::DeviceError;
pub use direction::Direction;
pub use emulator::{DevicesConfig, Emulator, EmulatorConfig};
pub use error::EmulateError;
pub use place::{Place, PlaceError};
pub use stats::{DirectionStats, Lateness, Stats};
