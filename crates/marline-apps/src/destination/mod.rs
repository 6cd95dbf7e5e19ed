//! What a flow is for, in the bytes that open it.
//!
//! The first byte tells the kinds apart: [`Target`] has 1, [`LiveName`] 2, [`Role`] 3,
//! [`ServerPort`] 4, [`Association`] 5, [`Measure`] 6. Every destination has exactly one encoding
//! (`docs/PROTOCOL.md`).

mod association;
mod host;
mod live;
mod measure;
mod port;
mod tunnel;

pub use association::Association;
pub use host::{Host, Protocol, Target, TargetError};
pub use live::LiveName;
pub use measure::{MOST_SECONDS, Measure, Way};
pub use port::{PortRole, ServerPort};
pub use tunnel::Role;

use bytes::Bytes;

/// What a flow is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A host behind the server.
    Host(Target),
    /// The server's live entry of that name.
    Live(LiveName),
    /// The server's end of a tunnel.
    Tunnel(Role),
    /// A port of the server's that leads to a service behind the client.
    Port(PortRole, ServerPort),
    /// Everybody whom a program sends datagrams to.
    Association,
    /// Nowhere: what passes shows what a path carries.
    Measure(Measure),
}

impl Destination {
    /// The bytes that open a flow to it, at most 259.
    pub fn encode(&self) -> Bytes {
        match self {
            Destination::Host(target) => target.encode(),
            Destination::Live(name) => name.encode(),
            Destination::Tunnel(role) => role.encode(),
            Destination::Port(role, port) => role.encode(*port),
            Destination::Association => Association.encode(),
            Destination::Measure(measure) => measure.encode(),
        }
    }

    /// Reads what [`encode`](Self::encode) wrote. Any bytes are a destination or an error.
    ///
    /// # Errors
    /// They are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, TargetError> {
        let found = match bytes.first() {
            Some(&live::VERSION) => LiveName::decode(bytes).map(Destination::Live),
            Some(&tunnel::VERSION) => Role::decode(bytes).map(Destination::Tunnel),
            Some(&port::VERSION) => {
                PortRole::decode(bytes).map(|(role, port)| Destination::Port(role, port))
            }
            Some(&association::VERSION) => {
                Association::decode(bytes).map(|Association| Destination::Association)
            }
            Some(&measure::VERSION) => Measure::decode(bytes).map(Destination::Measure),
            _ => None,
        };
        match found {
            Some(destination) => Ok(destination),
            None => Target::decode(bytes).map(Destination::Host),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn each_kind_is_read_as_what_it_is() {
        for destination in [
            Destination::Host(Target::parse(Protocol::Tcp, "a.example:80").unwrap()),
            Destination::Live("cam-2".parse().unwrap()),
            Destination::Tunnel(Role::Lease {
                mtu: 1280,
                joined: true,
            }),
            Destination::Tunnel(Role::Standing),
            Destination::Port(PortRole::Visit, "udp:9000".parse().unwrap()),
            Destination::Association,
            Destination::Measure(Measure::new(Way::Up, Duration::from_secs(5), 1 << 40)),
        ] {
            let bytes = destination.encode();
            assert_eq!(Destination::decode(&bytes), Ok(destination));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_one_destination_or_none(
            version in 0..8_u8,
            rest in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let bytes = [&[version][..], &rest].concat();
            if let Ok(destination) = Destination::decode(&bytes) {
                prop_assert_eq!(&destination.encode()[..], &bytes[..]);
            }
        }
    }
}
