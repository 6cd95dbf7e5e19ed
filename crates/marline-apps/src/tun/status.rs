//! What a running client reports about its tunnel. Fields may be added.

use serde::{Deserialize, Serialize};

/// A client's `--tun`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunnelStatus {
    /// Name of the network interface.
    pub device: String,
    /// This host's addresses in the tunnel; none while there is no lease.
    pub addresses: Vec<String>,
    /// The largest packet that it carries, bytes; 0 while there is no lease.
    pub mtu: u16,
    /// Who has these addresses.
    pub standing: TunnelStanding,
    /// Packets of the server that were dropped, because they are not for this host or not from
    /// behind the tunnel.
    pub dropped_packets: u64,
}

/// Who has the addresses of a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TunnelStanding {
    /// Nobody: the server has given none.
    NoLease,
    /// This client, and nobody else asks for them.
    Alone,
    /// This client, while another machine uses the same key and gets nothing.
    Shared,
    /// Another machine that uses the same key; nothing comes here.
    SetAside,
}

impl TunnelStanding {
    /// The words for it.
    pub fn as_str(self) -> &'static str {
        match self {
            TunnelStanding::NoLease => "no addresses yet",
            TunnelStanding::Alone => "up",
            TunnelStanding::Shared => "up, but another machine uses this one's key as well",
            TunnelStanding::SetAside => {
                "another machine uses this one's key and has the addresses: nothing comes here"
            }
        }
    }
}
