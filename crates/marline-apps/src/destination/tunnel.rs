//! The part of a tunnel that a flow is for:
//!
//! ```text
//! version (1) = 3 | role (1): 0 lease, 1 common, 2 conversation, 3 standing,
//!     4 lease of a client that takes joined packets
//!   | of a lease: largest packet (2)
//! ```

use bytes::Bytes;

pub(super) const VERSION: u8 = 3;
const LEASE: u8 = 0;
const COMMON: u8 = 1;
const CONVERSATION: u8 = 2;
const STANDING: u8 = 3;
const LEASE_JOINED: u8 = 4;

/// What a flow of a tunnel is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// To ask for addresses.
    Lease {
        /// The largest packet that the client would have (bytes).
        mtu: u16,
        /// It takes messages of several packets that are joined.
        joined: bool,
    },
    /// What belongs to no conversation.
    Common,
    /// One conversation.
    Conversation,
    /// Who has the addresses of the lease.
    Standing,
}

impl Role {
    /// The bytes that open the flow.
    pub fn encode(self) -> Bytes {
        match self {
            Role::Lease { mtu, joined } => {
                let role = if joined { LEASE_JOINED } else { LEASE };
                [[VERSION, role], mtu.to_be_bytes()].concat().into()
            }
            Role::Common => Bytes::from_static(&[VERSION, COMMON]),
            Role::Conversation => Bytes::from_static(&[VERSION, CONVERSATION]),
            Role::Standing => Bytes::from_static(&[VERSION, STANDING]),
        }
    }

    /// Reads what [`encode`](Self::encode) wrote; `None` for everything else.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        match *bytes {
            [VERSION, role @ (LEASE | LEASE_JOINED), high, low] => Some(Role::Lease {
                mtu: u16::from_be_bytes([high, low]),
                joined: role == LEASE_JOINED,
            }),
            [VERSION, COMMON] => Some(Role::Common),
            [VERSION, CONVERSATION] => Some(Role::Conversation),
            [VERSION, STANDING] => Some(Role::Standing),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LiveName, Target};
    use super::*;

    #[test]
    fn roles_open_flows_and_are_nothing_else() {
        let lease = |joined| Role::Lease { mtu: 1330, joined };
        assert_eq!(lease(false).encode()[..], [3, 0, 5, 0x32]);
        assert_eq!(lease(true).encode()[..], [3, 4, 5, 0x32]);
        let roles = [Role::Common, Role::Conversation, Role::Standing];
        for role in roles.into_iter().chain([false, true].map(lease)) {
            let bytes = role.encode();
            assert_eq!(Role::decode(&bytes), Some(role));
            assert!(Target::decode(&bytes).is_err());
            assert_eq!(LiveName::decode(&bytes), None);
        }
        for wrong in [&b""[..], &[3], &[3, 4], &[3, 0, 1], &[3, 1, 0], &[1, 1]] {
            assert_eq!(Role::decode(wrong), None, "{wrong:?}");
        }
    }
}
