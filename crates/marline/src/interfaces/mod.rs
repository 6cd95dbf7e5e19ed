//! This host's network interfaces as they come and go.
//!
//! | file | what |
//! | --- | --- |
//! | `changes.rs` | [`Changes`]: notices that devices, addresses or routes are other than before |

mod changes;

pub use changes::Changes;
