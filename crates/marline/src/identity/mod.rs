//! Who a host is: an Ed25519 key pair in a file, the list of clients that a server lets in, and
//! the one line that tells a client where a server is and how to recognise it.
//!
//! There are no certificates and no names: a host is its public key, as users of SSH and
//! WireGuard know it. Every text form carries a checksum, so that a mistyped key is an error at
//! once and not a refused connection later.

mod address;
mod allow;
mod file;
mod key;

pub use address::{
    ConnectionString, ConnectionStringError, DEFAULT_PORT, Host, HostPort, HostPortError,
    MAX_ADDRESSES,
};
pub use allow::{AllowList, AllowListChange, AllowListError, AllowedClient, MAX_ALLOW_LIST_BYTES};
pub use file::KeyFileError;
pub use key::{Identity, KeyTextError, NoRandomness, PublicKey};
