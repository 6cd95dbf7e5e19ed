//! This host's network interfaces as they come and go.
//!
//! | file | what |
//! | --- | --- |
//! | `addresses.rs` | [`addresses()`]: what they are reached by |
//! | `changes.rs` | [`Changes`]: notices that devices, addresses or routes are other than before |
//! | `routes.rs` | [`Routes`]: what the routing tables say of an address (Linux) |
//! | `sysfs.rs` | [`Device`]: what an interface is known by |
//! | `selector.rs` | [`Selector`]: which of them a path may use |

mod addresses;
mod changes;
#[cfg(target_os = "linux")]
mod routes;
mod selector;
mod sysfs;

pub use addresses::addresses;
pub use changes::Changes;
pub(crate) use changes::Notifier;
#[cfg(target_os = "linux")]
pub use routes::Routes;
pub use selector::Selector;
pub use sysfs::{Device, Sysfs};
