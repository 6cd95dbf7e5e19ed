//! What Linux's routing tables say of an address, asked over rtnetlink (RFC 3549, rtnetlink(7)).

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

/// Message types and flags of linux/netlink.h and linux/rtnetlink.h.
const ERROR: u16 = 2;
const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const REQUEST: u16 = 1;
/// The entry of the tables, not what the kernel does without one.
const FIB_MATCH: u32 = 0x2000;
/// Attributes: `RTA_DST`, `RTA_OIF`.
const DESTINATION: u16 = 1;
const DEVICE: u16 = 4;
/// Bytes of `nlmsghdr`, and of `rtmsg` behind it, whose eighth is the type of the route and whose
/// last four are its flags.
const HEADER: usize = 16;
const ROUTE: usize = 12;
const TYPE: usize = HEADER + 7;

/// A socket to ask by.
#[derive(Debug)]
pub struct Routes {
    socket: OwnedFd,
    sequence: u32,
}

impl Routes {
    /// # Errors
    /// When the system does not let this process have such sockets.
    pub fn open() -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Without a protocol, it is NETLINK_ROUTE, whose number is 0.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// The type (`RTN_UNICAST` is 1, `RTN_LOCAL` 2) of the route that a packet of this host to
    /// `address` takes; `None` if there is none, or one says that it is not to be reached.
    ///
    /// With the number of a `device`, of the entry that leads there by that interface: without one
    /// the kernel takes every address for a neighbour there, and no router gets its packets.
    ///
    /// # Errors
    /// The system does not answer.
    pub fn to(&mut self, address: IpAddr, device: Option<u32>) -> io::Result<Option<u8>> {
        self.sequence = self.sequence.wrapping_add(1);
        let question = question(self.sequence, address, device);
        send(&self.socket, &question, SendFlags::empty())?;
        let mut buffer = [0; 4096];
        loop {
            // The answer is there: the kernel writes it while it takes the question.
            let (length, _) = recv(&self.socket, &mut buffer, RecvFlags::DONTWAIT)?;
            if let Some(answer) = answer(&buffer[..length], self.sequence) {
                return answer;
            }
        }
    }
}

fn question(sequence: u32, address: IpAddr, device: Option<u32>) -> Vec<u8> {
    let (family, octets) = match address {
        IpAddr::V4(address) => (AddressFamily::INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AddressFamily::INET6, address.octets().to_vec()),
    };
    // The family, and all bits of the destination; the rest of `rtmsg` is the kernel's to say.
    let mut route = vec![family.as_raw() as u8, 8 * octets.len() as u8];
    route.resize(ROUTE - 4, 0);
    route.extend(device.map_or(0, |_| FIB_MATCH).to_ne_bytes());
    let device = device.map(|number| (DEVICE, number.to_ne_bytes().to_vec()));
    for (kind, value) in [(DESTINATION, octets)].into_iter().chain(device) {
        route.extend((4 + value.len() as u16).to_ne_bytes());
        route.extend(kind.to_ne_bytes());
        route.extend(value);
    }
    let mut out = Vec::from(((HEADER + route.len()) as u32).to_ne_bytes());
    out.extend(GET_ROUTE.to_ne_bytes());
    out.extend(REQUEST.to_ne_bytes());
    out.extend(sequence.to_ne_bytes());
    out.extend(0u32.to_ne_bytes());
    out.extend(route);
    out
}

/// See [`Routes::to`]; `None` for what does not answer this question.
fn answer(bytes: &[u8], sequence: u32) -> Option<io::Result<Option<u8>>> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    if word(8)? != sequence {
        return None;
    }
    match kind {
        NEW_ROUTE => Some(Ok(Some(*bytes.get(TYPE)?))),
        ERROR => {
            let error = Errno::from_raw_os_error((word(HEADER)? as i32).wrapping_neg());
            match error {
                // Blackholes are EINVAL.
                Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::ACCESS | Errno::INVAL => {
                    Some(Ok(None))
                }
                error => Some(Err(error.into())),
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The loopback interface is the first of every network namespace.
    const LOOPBACK: u32 = 1;
    const LOCAL: u8 = 2;

    #[test]
    fn answers_are_those_to_the_question() {
        let route = |kind: u8| {
            let mut bytes = question(7, "192.0.2.1".parse().unwrap(), None);
            bytes[4..6].copy_from_slice(&NEW_ROUTE.to_ne_bytes());
            bytes[TYPE] = kind;
            bytes
        };
        assert_eq!(answer(&route(5), 7).unwrap().unwrap(), Some(5));
        assert!(answer(&route(2), 8).is_none());
        let error = |number: i32| {
            let mut bytes = route(0);
            bytes[4..6].copy_from_slice(&ERROR.to_ne_bytes());
            bytes[HEADER..HEADER + 4].copy_from_slice(&(-number).to_ne_bytes());
            answer(&bytes, 7).unwrap()
        };
        assert_eq!(error(Errno::NETUNREACH.raw_os_error()).unwrap(), None);
        assert!(error(Errno::NOMEM.raw_os_error()).is_err());
        for length in 0..HEADER {
            assert!(answer(&route(2)[..length], 7).is_none(), "{length}");
        }
    }

    #[test]
    fn the_loopback_interface_leads_to_this_host_alone() {
        let mut routes = Routes::open().unwrap();
        for (address, found) in [
            ("127.0.0.1", Some(LOCAL)),
            ("127.9.9.9", Some(LOCAL)),
            ("192.0.2.77", None),
            ("2001:db8::77", None),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(routes.to(address, Some(LOOPBACK)).unwrap(), found);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_an_error_or_neither(bytes: Vec<u8>) {
            let _ = answer(&bytes, 0);
        }
    }
}
