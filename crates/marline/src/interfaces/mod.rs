//! This host's network interfaces as they come and go.
//!
//! | file | what |
//! | --- | --- |
//! | `changes.rs` | [`Changes`]: notices that devices, addresses or routes are other than before |
//! | `sysfs.rs` | [`Device`]: what an interface is known by |
//! | `selector.rs` | [`Selector`]: which of them a path may use |

mod changes;
mod selector;
mod sysfs;

pub use changes::Changes;
pub(crate) use changes::Teller;
pub use selector::Selector;
pub use sysfs::{Device, Sysfs};
