//! This host's network interfaces as they come and go.
//!
//! | file | what |
//! | --- | --- |
//! | `addresses.rs` | [`addresses()`]: what they are reached by |
//! | `changes.rs` | [`Changes`]: notices that devices, addresses or routes are other than before |
//! | `sysfs.rs` | [`Device`]: what an interface is known by |
//! | `selector.rs` | [`Selector`]: which of them a path may use |

mod addresses;
mod changes;
mod selector;
mod sysfs;

pub use addresses::addresses;
pub use changes::Changes;
pub(crate) use changes::Notifier;
pub use selector::Selector;
pub use sysfs::{Device, Sysfs};
