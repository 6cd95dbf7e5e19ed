//! This host's network interfaces as they come and go.
//!
//! | file | what |
//! | --- | --- |
//! | `addresses.rs` | [`addresses()`]: what they are reached by |
//! | `changes.rs` | [`Changes`]: notices that devices, addresses or routes are other than before |
//! | `translators.rs`, `pref64.rs` | NAT64 translators that routers announce (RFC 8781) |
//! | `routes.rs` | [`Routes`]: what the routing tables say of an address (Linux) |
//! | `sysfs.rs` | [`Device`]: what an interface is known by |
//! | `selector.rs` | [`Selector`]: which of them a path may use |

mod addresses;
mod changes;
#[doc(hidden)]
pub mod pref64;
#[cfg(target_os = "linux")]
mod routes;
mod selector;
mod sysfs;
mod translators;

pub use addresses::addresses;
pub use changes::Changes;
pub(crate) use changes::Notifier;
#[cfg(target_os = "linux")]
pub use routes::Routes;
pub use selector::Selector;
pub use sysfs::{Device, Sysfs};
pub(crate) use translators::Translators;
