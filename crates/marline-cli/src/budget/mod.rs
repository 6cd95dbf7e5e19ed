//! Data budgets: what paths have carried this month, kept across restarts. A path over its budget
//! stands by for the rest of the month: it carries only what no other path can.
//!
//! | file | what |
//! | --- | --- |
//! | `month.rs` | calendar months |
//! | `ledger.rs` | what each path has carried, and the file that keeps it |
//! | `metered.rs` | a session whose paths have budgets |

mod ledger;
mod metered;
mod month;

pub use ledger::{Ledger, LedgerError};
pub use metered::Metered;
pub(crate) use metered::{account, carried};
pub use month::Month;
