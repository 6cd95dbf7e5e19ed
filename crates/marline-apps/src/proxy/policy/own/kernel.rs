//! What Linux does with a packet to an address, asked over rtnetlink (RFC 3549, rtnetlink(7)).

use super::System;
use marline::interfaces::Routes;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// `RTMGRP_LINK`, `RTMGRP_IPV4_IFADDR`, `_IPV4_ROUTE`, `_IPV4_RULE`, `_IPV6_IFADDR`, `_IPV6_ROUTE`,
/// and the rules of IPv6 (`RTNLGRP_IPV6_RULE`, the 19th group). What a packet's fate depends on is
/// announced in one of them.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 1 << 18;
/// Types of routes that end in this host: `RTN_LOCAL`, `RTN_BROADCAST`, `RTN_ANYCAST`.
const OWN: [u8; 3] = [2, 3, 4];

/// One socket for questions, and one for notices of changes.
#[derive(Debug)]
pub(super) struct Kernel {
    routes: Routes,
    notices: OwnedFd,
}

impl Kernel {
    /// # Errors
    /// When the system does not let this process have such sockets.
    pub(super) fn open() -> io::Result<Self> {
        // Before the first answer: changes from now on are reported.
        let notices = notices()?;
        Ok(Kernel {
            routes: Routes::open()?,
            notices,
        })
    }
}

impl System for Kernel {
    fn has_changed(&mut self) -> bool {
        let mut changed = false;
        let mut buffer = [0; 8192];
        loop {
            match recv(&self.notices, &mut buffer, RecvFlags::DONTWAIT) {
                // What exactly is not looked at; nor is what was lost when there was too much of
                // it.
                Ok(_) | Err(Errno::NOBUFS) => changed = true,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return changed,
                // Nothing more can be learnt of changes, so nothing that was learnt holds.
                Err(_) => return true,
            }
        }
    }

    fn is_own(&mut self, address: IpAddr) -> io::Result<bool> {
        let route = self.routes.to(address, None)?;
        Ok(route.is_some_and(|kind| OWN.contains(&kind)))
    }
}

fn notices() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Without a protocol, it is NETLINK_ROUTE, whose number is 0.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_knows_this_host() {
        let mut kernel = Kernel::open().unwrap();
        for (address, own) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("192.0.2.77", false),
            ("2001:db8::77", false),
        ] {
            let found = kernel.is_own(address.parse().unwrap()).unwrap();
            assert_eq!(found, own, "{address}");
        }
    }
}
