//! Ports that one test gives up and takes again, or that another program is to take.

use std::net::{Ipv4Addr, SocketAddr};

/// An address of loopback, its port yet to be chosen, that belongs to `test` alone where the system
/// has more than one: at the common one another test may take a port in the moment it is free.
pub(crate) fn quiet_address(test: Test) -> SocketAddr {
    let last = if cfg!(target_os = "linux") {
        [9, test as u8]
    } else {
        [0, 1]
    };
    (Ipv4Addr::new(127, 0, last[0], last[1]), 0).into()
}

/// Whose address it is.
#[derive(Clone, Copy)]
pub(crate) enum Test {
    Client = 1,
    Doctor,
    Renew,
    Tools,
}
