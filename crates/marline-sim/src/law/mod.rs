//! How good the paths' laws are: every packet's law against what became of the packet.
//!
//! The simulator knows when each packet arrived. So what a path's law ([`marline_proto::law`]) said
//! when the packet left is scored beside what older estimators said, over the links of the bench
//! ([`field`](crate::field)) and over the experiments. The lines of [`Report`] are what docs/LAW.md
//! shows.

mod bench;
mod claims;
mod picture;
mod score;
mod table;
mod watch;

pub use bench::{Options, Prepared, prepare};
pub use claims::{Claim, Estimator};
pub use picture::{Picture, picture};
pub use score::Score;
pub use table::{Line, Report, text};
pub use watch::Witness;
