//! What a path carries: zeros from one end to the other, as fast as the session sends them.
//!
//! A client asks for it over a session with that path alone (`marline doctor --speed`). It is
//! nothing that a client could not have by a download: the same flow control, congestion control
//! and limits of its key hold. So that it is not more than that, a key has one at a time, a server
//! four, and both ends bound time and bytes.

mod client;
mod server;

pub use client::{Measured, NotMeasured, Seen, run};
pub(crate) use server::serve;
pub use server::{MOST_BYTES, Measures};

/// Bytes of one read or write (some datagrams).
const CHUNK: usize = 16 << 10;
