//! What Linux does with a packet to an address, asked over rtnetlink (RFC 3549, rtnetlink(7)).

use super::System;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// Message types and flags of `linux/netlink.h` and `linux/rtnetlink.h`.
const ERROR: u16 = 2;
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const REQUEST: u16 = 1;
const DESTINATION: u16 = 1;
/// `RTMGRP_LINK`, `RTMGRP_IPV4_IFADDR`, `_IPV4_ROUTE`, `_IPV4_RULE`, `_IPV6_IFADDR`, `_IPV6_ROUTE`,
/// and the rules of IPv6 (`RTNLGRP_IPV6_RULE`, the 19th group). What a packet's fate depends on is
/// announced in one of them.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 1 << 18;
/// Bytes of `nlmsghdr`, and of `rtmsg` behind it, whose eighth is the type of the route.
const HEADER: usize = 16;
const ROUTE: usize = 12;
const TYPE: usize = HEADER + 7;
/// Types of routes that end in this host: `RTN_LOCAL`, `RTN_BROADCAST`, `RTN_ANYCAST`.
const OWN: [u8; 3] = [2, 3, 4];

/// Two sockets: one for questions, one for notices of changes.
#[derive(Debug)]
pub(super) struct Kernel {
    questions: OwnedFd,
    notices: OwnedFd,
    sequence: u32,
}

impl Kernel {
    /// # Errors
    /// When the system does not let this process have such sockets.
    pub(super) fn open() -> io::Result<Self> {
        // Before the first answer: changes from now on are reported.
        let notices = socket(GROUPS)?;
        Ok(Kernel {
            questions: socket(0)?,
            notices,
            sequence: 0,
        })
    }

    fn ask(&mut self, address: IpAddr) -> io::Result<bool> {
        self.sequence = self.sequence.wrapping_add(1);
        send(
            &self.questions,
            &question(self.sequence, address),
            SendFlags::empty(),
        )?;
        let mut buffer = [0; 4096];
        loop {
            // The answer is there: the kernel writes it while it takes the question.
            let (length, _) = recv(&self.questions, &mut buffer, RecvFlags::DONTWAIT)?;
            if let Some(answer) = answer(&buffer[..length], self.sequence) {
                return answer;
            }
        }
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
        self.ask(address)
    }
}

fn socket(groups: u32) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Without a protocol, it is NETLINK_ROUTE, whose number is 0.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    bind(&socket, &SocketAddrNetlink::new(0, groups))?;
    Ok(socket)
}

/// Which route a packet of this host to `address` takes.
fn question(sequence: u32, address: IpAddr) -> Vec<u8> {
    let (family, octets) = match address {
        IpAddr::V4(address) => (AddressFamily::INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AddressFamily::INET6, address.octets().to_vec()),
    };
    let attribute = 4 + octets.len();
    let mut out = Vec::with_capacity(HEADER + ROUTE + attribute);
    out.extend(((HEADER + ROUTE + attribute) as u32).to_ne_bytes());
    out.extend(GET_ROUTE.to_ne_bytes());
    out.extend(REQUEST.to_ne_bytes());
    out.extend(sequence.to_ne_bytes());
    out.extend(0u32.to_ne_bytes());
    // The family, and all bits of the destination; the rest of `rtmsg` is the kernel's to say.
    out.extend([family.as_raw() as u8, 8 * octets.len() as u8]);
    out.resize(HEADER + ROUTE, 0);
    out.extend((attribute as u16).to_ne_bytes());
    out.extend(DESTINATION.to_ne_bytes());
    out.extend(octets);
    out
}

/// Whether the packet would end in this host; `None` for what does not answer this question.
fn answer(bytes: &[u8], sequence: u32) -> Option<io::Result<bool>> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    if word(8)? != sequence {
        return None;
    }
    match kind {
        NEW_ROUTE => Some(Ok(OWN.contains(bytes.get(TYPE)?))),
        ERROR => {
            let error = Errno::from_raw_os_error((word(HEADER)? as i32).wrapping_neg());
            match error {
                // There is no way to it, or a route says that it is not to be reached (blackhole:
                // EINVAL).
                Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::ACCESS | Errno::INVAL => {
                    Some(Ok(false))
                }
                error => Some(Err(error.into())),
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_those_to_the_question() {
        let route = |kind: u8| {
            let mut bytes = question(7, "192.0.2.1".parse().unwrap());
            bytes[4..6].copy_from_slice(&NEW_ROUTE.to_ne_bytes());
            bytes[TYPE] = kind;
            bytes
        };
        for (kind, own) in [(1, false), (2, true), (3, true), (4, true), (5, false)] {
            assert_eq!(answer(&route(kind), 7).unwrap().unwrap(), own, "{kind}");
        }
        assert!(answer(&route(2), 8).is_none());
        let error = |number: i32| {
            let mut bytes = route(0);
            bytes[4..6].copy_from_slice(&ERROR.to_ne_bytes());
            bytes[HEADER..HEADER + 4].copy_from_slice(&(-number).to_ne_bytes());
            answer(&bytes, 7).unwrap()
        };
        assert!(!error(Errno::NETUNREACH.raw_os_error()).unwrap());
        assert!(error(Errno::NOMEM.raw_os_error()).is_err());
        for length in 0..HEADER {
            assert!(answer(&route(2)[..length], 7).is_none(), "{length}");
        }
    }

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
