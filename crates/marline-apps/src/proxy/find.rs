//! How a target becomes addresses, and which of them may be reached.

use super::reply::Refusal;
use super::{Protocol, Target};
use std::future::Future;
use std::net::SocketAddr;

/// Finds targets.
pub(crate) trait Find: Sync {
    /// The addresses of a target that may be reached, at least one.
    fn find(
        &self,
        target: &Target,
        protocol: Protocol,
    ) -> impl Future<Output = Result<Vec<SocketAddr>, Refusal>> + Send;

    /// May `address` be reached, which was found of `target`? To be asked again once it is reached:
    /// the address may have become one of this host meanwhile.
    fn allows(&self, target: &Target, address: SocketAddr) -> bool;

    /// May one more datagram go to `address`, as others before it?
    fn still_allows(&self, target: &Target, address: SocketAddr) -> bool;
}
