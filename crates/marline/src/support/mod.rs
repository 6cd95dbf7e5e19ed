//! What Marline's other crates share with this one; not for users, and free to change.

pub mod accept;
pub mod access;
pub mod descriptors;
mod lock;
pub mod seldom;

pub use lock::lock;

/// What begins each line that `/etc/resolv.conf` held before a tunnel's name servers came into it.
pub const FORMER: &str = "#marline#";
