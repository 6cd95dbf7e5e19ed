//! Targets that this host's own configuration names: nobody else chooses them, so all of them are
//! allowed.

use super::super::find::Find;
use super::super::reply::Refusal;
use super::super::{Host, Protocol, Target};
use super::at_port;
use super::names::{Names, Resolver};
use super::threads::Threads;
use std::net::SocketAddr;

/// Finds them by the system's resolver.
#[derive(Debug)]
pub(crate) struct OwnTargets(Names);

impl OwnTargets {
    pub(crate) fn new() -> Self {
        OwnTargets(Resolver::new(Threads).of(None))
    }
}

impl Find for OwnTargets {
    async fn find(&self, target: &Target, protocol: Protocol) -> Result<Vec<SocketAddr>, Refusal> {
        if target.protocol() != protocol {
            return Err(Refusal::BadTarget);
        }
        match target.host() {
            Host::Ip(address) => Ok(vec![(*address, target.port()).into()]),
            Host::Name(name) => match at_port(self.0.look_up(name).await, target)? {
                found if found.is_empty() => Err(Refusal::NameNotFound),
                found => Ok(found),
            },
        }
    }

    fn allows(&self, _: &Target, _: SocketAddr) -> bool {
        true
    }

    fn still_allows(&self, _: &Target, _: SocketAddr) -> bool {
        true
    }
}
