//! What Marline's other crates share with this one; not for users, and free to change.

pub mod accept;
pub mod access;
mod lock;
pub mod seldom;

pub use lock::lock;
