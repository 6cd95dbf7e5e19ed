//! A message of an association: where its datagram goes to or comes from, and the datagram.
//!
//! ```text
//! host type (1): 4, 6, 0 name | address (4, 16), or length (1) and name | port (2) | payload
//! ```
//! The port is big endian. A name is the client's, for what it has sent there, and the server's for
//! answers to that.

use super::super::{Host, Protocol, Target};
use bytes::{BufMut, Bytes, BytesMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const NAME: u8 = 0;
const V4: u8 = 4;
const V6: u8 = 6;
/// Most bytes before the payload: type, length, name (`destination/host.rs`) and port.
const HEAD: usize = 1 + 1 + 254 + 2;

/// The message of a datagram.
pub(super) fn encode(host: &Host, port: u16, payload: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(HEAD + payload.len());
    match host {
        Host::Ip(IpAddr::V4(address)) => {
            out.put_u8(V4);
            out.put_slice(&address.octets());
        }
        Host::Ip(IpAddr::V6(address)) => {
            out.put_u8(V6);
            out.put_slice(&address.octets());
        }
        Host::Name(name) => {
            // A target's name is no longer than 254 bytes.
            let name = &name.as_bytes()[..name.len().min(255)];
            out.put_u8(NAME);
            out.put_u8(name.len() as u8);
            out.put_slice(name);
        }
    }
    out.put_u16(port);
    out.put_slice(payload);
    out.freeze()
}

/// What [`encode`] wrote; `None` for everything else.
pub(super) fn decode(message: &Bytes) -> Option<(Target, Bytes)> {
    let (kind, rest) = message.split_first()?;
    let (host, rest) = match *kind {
        V4 => {
            let (octets, rest) = rest.split_first_chunk::<4>()?;
            (Host::Ip(Ipv4Addr::from(*octets).into()), rest)
        }
        V6 => {
            let (octets, rest) = rest.split_first_chunk::<16>()?;
            (Host::Ip(Ipv6Addr::from(*octets).into()), rest)
        }
        NAME => {
            let (length, rest) = rest.split_first()?;
            let (name, rest) = rest.split_at_checked(usize::from(*length))?;
            (Host::Name(std::str::from_utf8(name).ok()?.to_owned()), rest)
        }
        _ => return None,
    };
    let (port, payload) = rest.split_first_chunk::<2>()?;
    let target = Target::new(Protocol::Udp, host, u16::from_be_bytes(*port)).ok()?;
    Some((target, message.slice_ref(payload)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_bytes_are_the_documented_ones() {
        for (target, head) in [
            ("192.0.2.1:53", &[4, 192, 0, 2, 1, 0, 53][..]),
            ("a.example:258", b"\0\x09a.example\x01\x02"),
            (
                "[::1]:1",
                &[6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1],
            ),
        ] {
            let target = Target::parse(Protocol::Udp, target).unwrap();
            let message = encode(target.host(), target.port(), b"payload");
            assert_eq!(message[..], [head, b"payload"].concat());
            assert_eq!(
                decode(&message),
                Some((target, Bytes::from_static(b"payload")))
            );
        }
    }

    #[test]
    fn wrong_messages_are_none() {
        for wrong in [
            &b""[..],
            &[4],
            &[4, 1, 2, 3, 4, 0],
            &[4, 1, 2, 3, 4, 0, 0],
            &[6, 1, 2, 3, 4, 0, 1],
            &[0, 9, b'a', 0, 1],
            b"\0\x03a b\0\x01",
            &[5, 0, 1],
        ] {
            assert_eq!(decode(&Bytes::copy_from_slice(wrong)), None, "{wrong:?}");
        }
        let longest = "a".repeat(63);
        let longest = [&longest[..]; 4].join(".");
        assert!(Target::new(Protocol::Udp, Host::Name(longest), 1).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(
            kind in 0..8_u8,
            rest in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let bytes = Bytes::from([&[kind][..], &rest].concat());
            if let Some((target, payload)) = decode(&bytes) {
                let again = encode(target.host(), target.port(), &payload);
                prop_assert_eq!(decode(&again), Some((target, payload)));
            }
        }
    }
}
