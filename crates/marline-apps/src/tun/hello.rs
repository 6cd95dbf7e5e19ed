//! How a client and a server speak of a tunnel.
//!
//! A flow of a tunnel is opened with its [`Role`](crate::destination::Role) as its destination. The
//! lease is a stream. The server answers at once with an offer and keeps it open for as long as the
//! lease holds:
//!
//! ```text
//! 0 | length (2) | largest packet (2) | count (1)
//!   | count times: family (1): 4, 6 | prefix (1) | client's | server's
//! 1 | length (2) | why there is no lease, UTF-8
//! 2 | as 0, where the client takes joined packets, and the server does
//! ```
//! The client says nothing more on it.
//!
//! Numbers are big endian; a length counts the bytes behind it. The common flow brings the client
//! what belongs to no conversation that it has begun. All other flows carry one conversation each,
//! both ways, a packet a message, or several of TCP that are joined ([`joined`](super::joined)).
//!
//! A client that has a lease may open a stream of the role *standing*, on which the server says in
//! a byte, at once and whenever that changes, who has the lease's addresses ([`Standing`]): several
//! sessions of one key have the same. The client sends every byte back, by which the server knows
//! that it is there. Either end ignores bytes that it does not know, and a server that does not
//! know the role refuses the stream: nothing else depends on it.

use super::fit::LEAST;
use ipnet::IpNet;
use std::net::IpAddr;

const GRANTED: u8 = 0;
const REFUSED: u8 = 1;
const GRANTED_JOINED: u8 = 2;
/// Bytes before what the length counts.
pub const OFFER_HEAD: usize = 3;
/// Most bytes that the length may count.
const LONGEST: usize = 512;

/// Who has the addresses of a lease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Standing {
    /// This session, and no other asks for them.
    #[default]
    Alone,
    /// This session, and an older one of the same key is there, too.
    Shared,
    /// A newer session of the same key.
    SetAside,
}

impl Standing {
    const ALL: [Standing; 3] = [Standing::Alone, Standing::Shared, Standing::SetAside];

    /// The byte for it.
    pub fn encode(self) -> u8 {
        self as u8
    }

    /// Reads what [`encode`](Self::encode) wrote; `None` for what is not known.
    pub fn decode(byte: u8) -> Option<Self> {
        Standing::ALL.get(usize::from(byte)).copied()
    }
}

/// An address in the tunnel, and the server's in the same network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The client's, with the network's prefix length.
    pub own: IpNet,
    /// The server's, of the same family.
    pub server: IpAddr,
}

/// What the server answers to a client that asks for a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offer {
    /// These addresses.
    Granted {
        /// The largest packet that is carried (bytes), at least 1280.
        mtu: u16,
        /// One or two, of different families.
        places: Vec<Place>,
        /// Both ends take messages of several packets that are joined.
        joined: bool,
    },
    /// None, and why.
    Refused(String),
}

/// Why bytes are no offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// The first byte is none of 0, 1 and 2: it.
    #[error("an answer of kind {0} is not known")]
    Kind(u8),
    /// It is cut off or too long.
    #[error("the offer is cut off or too long")]
    Length,
    /// No address, two of one family, or a prefix that is longer than the address.
    #[error("the offer's addresses cannot be used")]
    Addresses,
    /// The largest packet is too small for anything: its bytes.
    #[error("the offer's largest packet of {0} bytes is too small")]
    Mtu(u16),
}

impl Offer {
    /// The bytes of the answer.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, body) = match self {
            Offer::Granted {
                mtu,
                places,
                joined,
            } => {
                let mut body = Vec::from(mtu.to_be_bytes());
                body.push(places.len() as u8);
                for place in places {
                    let (family, prefix) = match place.own {
                        IpNet::V4(net) => (4, net.prefix_len()),
                        IpNet::V6(net) => (6, net.prefix_len()),
                    };
                    body.extend([family, prefix]);
                    for address in [place.own.addr(), place.server] {
                        match address {
                            IpAddr::V4(address) => body.extend(address.octets()),
                            IpAddr::V6(address) => body.extend(address.octets()),
                        }
                    }
                }
                (if *joined { GRANTED_JOINED } else { GRANTED }, body)
            }
            Offer::Refused(why) => {
                let mut end = why.len().min(LONGEST);
                while !why.is_char_boundary(end) {
                    end -= 1;
                }
                (REFUSED, Vec::from(&why.as_bytes()[..end]))
            }
        };
        let mut bytes = vec![kind];
        bytes.extend((body.len() as u16).to_be_bytes());
        bytes.extend(body);
        bytes
    }

    /// How many bytes follow the first [`OFFER_HEAD`].
    ///
    /// # Errors
    /// They are not those of an offer.
    pub fn rest(head: [u8; OFFER_HEAD]) -> Result<usize, OfferError> {
        if !matches!(head[0], GRANTED | REFUSED | GRANTED_JOINED) {
            return Err(OfferError::Kind(head[0]));
        }
        let length = usize::from(u16::from_be_bytes([head[1], head[2]]));
        if length <= LONGEST {
            Ok(length)
        } else {
            Err(OfferError::Length)
        }
    }

    /// Reads an offer. Any bytes are an offer or an error.
    ///
    /// # Errors
    /// See [`OfferError`].
    pub fn decode(bytes: &[u8]) -> Result<Self, OfferError> {
        let (head, body) = bytes
            .split_first_chunk::<OFFER_HEAD>()
            .ok_or(OfferError::Length)?;
        if Self::rest(*head)? != body.len() {
            return Err(OfferError::Length);
        }
        if head[0] == REFUSED {
            return Ok(Offer::Refused(printable(body)));
        }
        let [high, low, count, rest @ ..] = body else {
            return Err(OfferError::Length);
        };
        let mut rest = rest;
        let mtu = u16::from_be_bytes([*high, *low]);
        if mtu < LEAST {
            return Err(OfferError::Mtu(mtu));
        }
        let mut places: Vec<Place> = Vec::new();
        for _ in 0..*count {
            let (place, after) = place(rest)?;
            if places
                .iter()
                .any(|p| p.server.is_ipv4() == place.server.is_ipv4())
            {
                return Err(OfferError::Addresses);
            }
            places.push(place);
            rest = after;
        }
        match (rest, places.is_empty()) {
            ([], false) => Ok(Offer::Granted {
                mtu,
                places,
                joined: head[0] == GRANTED_JOINED,
            }),
            ([], true) => Err(OfferError::Addresses),
            _ => Err(OfferError::Length),
        }
    }
}

/// A text for the log, in which its author can begin no new line and steer no terminal.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain = |c: char| match c.is_control() {
        true => char::REPLACEMENT_CHARACTER,
        false => c,
    };
    text.chars().map(plain).collect()
}

/// An address of this family, and what is behind it.
fn address(family: u8, bytes: &[u8]) -> Result<(IpAddr, &[u8]), OfferError> {
    match family {
        4 => {
            let (octets, rest) = bytes.split_first_chunk::<4>().ok_or(OfferError::Length)?;
            Ok((IpAddr::from(*octets), rest))
        }
        6 => {
            let (octets, rest) = bytes.split_first_chunk::<16>().ok_or(OfferError::Length)?;
            Ok((IpAddr::from(*octets), rest))
        }
        _ => Err(OfferError::Addresses),
    }
}

fn place(bytes: &[u8]) -> Result<(Place, &[u8]), OfferError> {
    let [family, prefix, rest @ ..] = bytes else {
        return Err(OfferError::Length);
    };
    let (own, rest) = address(*family, rest)?;
    let (server, rest) = address(*family, rest)?;
    let own = IpNet::new(own, *prefix).map_err(|_| OfferError::Addresses)?;
    Ok((Place { own, server }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn granted() -> Offer {
        let place = |own: &str, server: &str| Place {
            own: own.parse().unwrap(),
            server: server.parse().unwrap(),
        };
        Offer::Granted {
            mtu: 1330,
            places: vec![
                place("10.77.0.2/24", "10.77.0.1"),
                place("fd77::2/64", "fd77::1"),
            ],
            joined: false,
        }
    }

    #[test]
    fn the_bytes_of_an_offer_are_the_documented_ones() {
        let bytes = granted().encode();
        assert_eq!(bytes[..8], [0, 0, 47, 5, 0x32, 2, 4, 24]);
        assert_eq!(bytes[8..16], [10, 77, 0, 2, 10, 77, 0, 1]);
        assert_eq!(bytes.len(), OFFER_HEAD + 47);
        assert_eq!(Offer::Refused("no".into()).encode(), b"\x01\0\x02no");
        assert_eq!(
            Offer::Refused("é".repeat(300)).encode().len(),
            OFFER_HEAD + LONGEST
        );
    }

    #[test]
    fn standings_are_bytes_and_others_are_not_known() {
        for standing in Standing::ALL {
            assert_eq!(Standing::decode(standing.encode()), Some(standing));
        }
        assert_eq!(Standing::SetAside.encode(), 2);
        assert_eq!(Standing::decode(3), None);
    }

    #[test]
    fn what_a_server_says_is_one_line() {
        let said = Offer::Refused("no\n\u{1b}[2J ERROR é".into()).encode();
        let Ok(Offer::Refused(why)) = Offer::decode(&said) else {
            panic!("it is a refusal");
        };
        assert_eq!(why, "no\u{fffd}\u{fffd}[2J ERROR é");
    }

    #[test]
    fn wrong_offers_are_told_apart() {
        let good = granted().encode();
        let changed = |at: usize, to: u8| {
            let mut bytes = good.clone();
            bytes[at] = to;
            Offer::decode(&bytes)
        };
        assert_eq!(changed(0, 9), Err(OfferError::Kind(9)));
        assert_eq!(changed(2, 46), Err(OfferError::Length));
        assert_eq!(changed(3, 0), Err(OfferError::Mtu(0x32)));
        assert_eq!(changed(3, 4), Err(OfferError::Mtu(0x432)));
        assert_eq!(changed(5, 1), Err(OfferError::Length));
        assert_eq!(changed(5, 3), Err(OfferError::Length));
        assert_eq!(changed(6, 5), Err(OfferError::Addresses));
        assert_eq!(changed(7, 33), Err(OfferError::Addresses));
        assert_eq!(
            Offer::decode(b"\0\0\x03\x05\x32\0"),
            Err(OfferError::Addresses)
        );
        assert_eq!(Offer::decode(b""), Err(OfferError::Length));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            for byte in &bytes {
                let standing = Standing::decode(*byte).map(Standing::encode);
                prop_assert_eq!(standing, Some(*byte).filter(|byte| *byte < 3));
            }
            if let Ok(Offer::Refused(why)) = Offer::decode(&bytes) {
                prop_assert!(!why.contains(char::is_control));
            }
        }

        #[test]
        fn offers_survive_the_wire(mtu in LEAST.., v4: u32, v6: u128, prefix in 0..=32u8, why: String) {
            let place = |own: IpAddr| Place { own: IpNet::new(own, prefix).unwrap(), server: own };
            let v4 = place(IpAddr::V4(v4.into()));
            let v6 = place(IpAddr::V6(v6.into()));
            for places in [vec![v4], vec![v6], vec![v6, v4]] {
                let offer = Offer::Granted { mtu, places, joined: prefix % 2 == 0 };
                prop_assert_eq!(Offer::decode(&offer.encode()), Ok(offer));
            }
            prop_assert!(Offer::decode(&Offer::Refused(why).encode()).is_ok());
        }

        #[test]
        fn any_bytes_fail_or_are_an_offer(
            kind in 0..3u8,
            body in proptest::collection::vec(any::<u8>(), 0..60),
            flip in any::<(prop::sample::Index, u8)>(),
        ) {
            let framed = [&[kind, 0, body.len() as u8], &body[..]].concat();
            let mut near = granted().encode();
            let at = flip.0.index(near.len());
            near[at] = flip.1;
            for bytes in [body, framed, near] {
                if let Ok(offer @ Offer::Granted { .. }) = Offer::decode(&bytes) {
                    prop_assert_eq!(offer.encode(), bytes);
                }
            }
        }
    }
}
