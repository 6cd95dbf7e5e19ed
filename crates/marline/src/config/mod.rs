//! Configuration: what the user wrote (`raw`), where (`source`), and what the program accepts (`checked`).

mod advertise;
mod checked;
mod error;
mod file;
mod forward;
mod listening;
mod live;
mod live_entries;
mod names;
mod path;
mod raw;
mod reload;
mod socks;
mod source;
#[cfg(test)]
mod tests;
pub mod text;
mod tun;

pub use advertise::Advertised;
pub use checked::{ClientConfig, CommonConfig, ServerConfig, default_identity};
pub use error::{ConfigError, Place, Problem};
pub use forward::Forward;
pub(crate) use forward::priority;
pub use listening::{Listening, stranger};
pub use live::{FrameTerms, LiveDefaults, LiveIn, LiveOut, live_target};
pub use names::{AUTO, Congestion, Schedulers, scheduler};
pub use path::PathSpec;
pub use raw::{RawClient, RawServer};
pub use reload::{PathChange, changed_keys, path_changes};
pub use socks::SocksLogin;
pub use source::{Entry, Raw, Source, Written};
pub use tun::{TunIn, TunOut, TunSetup};
