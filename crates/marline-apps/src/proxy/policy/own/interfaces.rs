//! The addresses of all interfaces, for systems that cannot be asked about a single address.

use super::System;
use if_addrs::{IfAddr, get_if_addrs};
use std::io;
use std::net::IpAddr;

/// Read for every question: changes are not reported.
#[derive(Debug)]
pub(super) struct Interfaces;

impl System for Interfaces {
    fn has_changed(&mut self) -> bool {
        true
    }

    fn is_own(&mut self, address: IpAddr) -> io::Result<bool> {
        let all = get_if_addrs()?;
        Ok(all.iter().any(|interface| {
            let broadcast = match &interface.addr {
                IfAddr::V4(v4) => v4.broadcast.map(IpAddr::V4),
                IfAddr::V6(_) => None,
            };
            interface.ip() == address || broadcast == Some(address)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_an_interface() {
        assert!(Interfaces.is_own("127.0.0.1".parse().unwrap()).unwrap());
        assert!(!Interfaces.is_own("192.0.2.77".parse().unwrap()).unwrap());
    }
}
