//! This host's network interfaces as they come and go.
//!
//! | file | what |
//! | --- | --- |
//! | `addresses.rs` | [`addresses()`]: what they are reached by |
//! | `changes.rs` | [`Changes`]: notices that devices, addresses or routes are other than before |
//! | `route.rs` | whether a route leads to an address by one of them |
//! | `sysfs.rs` | [`Device`]: what an interface is known by |
//! | `selector.rs` | [`Selector`]: which of them a path may use |

mod addresses;
mod changes;
mod route;
mod selector;
mod sysfs;

pub use addresses::addresses;
pub use changes::Changes;
pub(crate) use changes::Notifier;
pub(crate) use route::leads_there;
pub use selector::Selector;
pub use sysfs::{Device, Sysfs};
