//! Does a route lead to an address by an interface?

use std::net::IpAddr;

/// Does an entry of the routing tables lead to `remote` by the interface of this number? A socket
/// that is bound to one where none does takes every address for a neighbour there, and no router
/// gets its packets. `None` when the system does not say.
#[cfg(target_os = "linux")]
pub(crate) fn leads_there(device: u32, remote: IpAddr) -> Option<bool> {
    linux::ask(device, remote).ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn leads_there(_: u32, _: IpAddr) -> Option<bool> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::net::IpAddr;

    use netlink_sys::protocols::NETLINK_ROUTE;
    use netlink_sys::{Socket, SocketAddr};
    use rustix::io::Errno;
    use rustix::net::AddressFamily;

    /// Message types and a flag of linux/netlink.h and linux/rtnetlink.h.
    const ERROR: u16 = 2;
    const NEW_ROUTE: u16 = 24;
    const GET_ROUTE: u16 = 26;
    const REQUEST: u16 = 1;
    /// The entry of the tables, not what the kernel would do without one.
    const FIB_MATCH: u32 = 0x2000;
    /// Attributes: `RTA_DST`, `RTA_OIF`.
    const DESTINATION: u16 = 1;
    const DEVICE: u16 = 4;
    /// Bytes of `nlmsghdr`, and of `rtmsg` behind it, whose last four are its flags.
    const HEADER: usize = 16;
    const ROUTE: usize = 12;

    pub(super) fn ask(device: u32, remote: IpAddr) -> io::Result<bool> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        // The kernel writes the answer while it takes the question.
        socket.set_non_blocking(true)?;
        socket.bind(&SocketAddr::new(0, 0))?;
        socket.connect(&SocketAddr::new(0, 0))?;
        socket.send(&question(device, remote), 0)?;
        let mut buffer = Vec::with_capacity(4096);
        socket.recv(&mut buffer, 0)?;
        answer(&buffer)
    }

    fn question(device: u32, remote: IpAddr) -> Vec<u8> {
        let (family, octets) = match remote {
            IpAddr::V4(address) => (AddressFamily::INET, address.octets().to_vec()),
            IpAddr::V6(address) => (AddressFamily::INET6, address.octets().to_vec()),
        };
        let attributes = 4 + octets.len() + 8;
        let mut out = Vec::with_capacity(HEADER + ROUTE + attributes);
        out.extend(((HEADER + ROUTE + attributes) as u32).to_ne_bytes());
        out.extend(GET_ROUTE.to_ne_bytes());
        out.extend(REQUEST.to_ne_bytes());
        out.extend([0; 8]);
        // The family, and all bits of the destination; the rest is the kernel's to say.
        out.extend([family.as_raw() as u8, 8 * octets.len() as u8]);
        out.resize(HEADER + ROUTE - 4, 0);
        out.extend(FIB_MATCH.to_ne_bytes());
        for (kind, value) in [
            (DESTINATION, octets),
            (DEVICE, device.to_ne_bytes().to_vec()),
        ] {
            out.extend((4 + value.len() as u16).to_ne_bytes());
            out.extend(kind.to_ne_bytes());
            out.extend(value);
        }
        out
    }

    fn answer(bytes: &[u8]) -> io::Result<bool> {
        let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
        let kind = bytes.get(4..6).ok_or_else(short)?;
        match u16::from_ne_bytes([kind[0], kind[1]]) {
            NEW_ROUTE => Ok(true),
            ERROR => {
                let number = bytes.get(HEADER..HEADER + 4).ok_or_else(short)?;
                let number = i32::from_ne_bytes([number[0], number[1], number[2], number[3]]);
                match Errno::from_raw_os_error(number.wrapping_neg()) {
                    // None, or one that says that it is not to be reached (blackhole: EINVAL).
                    Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::ACCESS | Errno::INVAL => {
                        Ok(false)
                    }
                    error => Err(error.into()),
                }
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    #[cfg(test)]
    mod tests {
        use proptest::prelude::*;

        use super::*;

        /// The loopback interface is the first of every network namespace.
        const LOOPBACK: u32 = 1;

        #[test]
        fn the_loopback_interface_leads_to_this_host_alone() {
            for (remote, leads) in [
                ("127.0.0.1", true),
                ("127.9.9.9", true),
                ("192.0.2.77", false),
            ] {
                let answer = ask(LOOPBACK, remote.parse().unwrap()).unwrap();
                assert_eq!(answer, leads, "{remote}");
            }
            assert!(!ask(LOOPBACK, "2001:db8::77".parse().unwrap()).unwrap());
        }

        proptest! {
            #[test]
            fn any_bytes_are_an_answer_or_an_error(bytes: Vec<u8>) {
                let _ = answer(&bytes);
            }
        }
    }
}
