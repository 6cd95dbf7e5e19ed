//! Sessions over real carriers: the pure state machine of `marline-proto`, driven by tokio.
//!
//! | file | what |
//! | --- | --- |
//! | `clock.rs` | real time as the session counts it |
//! | `shared.rs` | the session behind its lock, and who waits for what |
//! | `driver.rs` | the task that moves datagrams and time |
//! | `handle.rs` | [`Handle`]: open and accept flows, add and remove paths |
//! | `stream.rs`, `packets.rs` | flows as tokio knows streams, and as messages |

mod clock;
mod driver;
mod handle;
mod packets;
mod shared;
mod stream;

pub use driver::{Driver, PathEnd};
pub use handle::{Accepted, Handle};
pub use packets::Packets;
pub use shared::Closed;
pub use stream::Stream;
