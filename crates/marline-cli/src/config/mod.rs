//! Configuration: what the user wrote (`raw`), where (`source`), and what the program accepts
//! (`checked`).

mod advertise;
mod checked;
mod counts;
mod error;
mod file;
mod folders;
mod grants;
mod keys;
mod listening;
mod live_entries;
mod names;
mod publish;
mod qlog;
mod raw;
mod reload;
mod socks;
mod source;
#[cfg(test)]
mod tests;
mod tun;
mod web;
mod written;

pub use advertise::Advertised;
pub use checked::{ClientConfig, CommonConfig, ServerConfig};
pub use error::{ConfigError, Place};
pub use folders::{default_clients, default_identity, default_seen};
pub use grants::Grants;
pub use keys::Raw;
pub use listening::{Listening, Listens};
pub use names::Schedulers;
pub use qlog::QlogFolder;
#[cfg(feature = "experiments")]
pub(crate) use qlog::qlog_size;
pub use raw::{RawClient, RawServer};
pub use reload::{PathChange, changed_keys, path_changes};
pub use source::Source;
pub use web::{WebCertificate, WebLogin, WebPage};
pub use written::{Entry, Written};
