//! A tunnel for IP packets: programs that know nothing of Marline, and of proxies, use the session
//! all the same.
//!
//! The client's device is a network interface; what the kernel sends there goes to the server's
//! device, and from there wherever the server's kernel routes it. Every conversation (addresses,
//! protocol, ports) has a flow of its own, so that one that waits for a lost packet holds nobody
//! else up. `docs/TUNNEL.md` has the user's view.
//!
//! | file | what |
//! | --- | --- |
//! | `packet.rs`, `checksum.rs` | IP headers |
//! | `key.rs` | which packets belong together |
//! | `fit.rs` | how large packets may be |
//! | `mss.rs`, `icmp.rs` | what is done about packets that are too large or forbidden |
//! | `rules.rs` | which conversations are carried how |
//! | `queue.rs` | what waits for a flow |
//! | `pool.rs`, `leases.rs`, `lease_file.rs` | addresses inside the tunnel |
//! | `prefixes.rs` | networks behind a server's clients |
//! | `guests.rs` | which clients a server has, and which session of a key has its addresses |
//! | `gate.rs` | what a server lets through |
//! | `hello.rs` | how client and server speak of the tunnel |
//! | `joined.rs` | packets of one connection that travel together |
//! | `device.rs`, `virtio.rs` | the network interface |
//! | `setup/` | addresses, routes, forwarding and address translation |
//! | `remains.rs` | what a killed run left of them |
//! | `lease.rs` | how a client gets addresses |
//! | `shared.rs` | what the tasks of a client's tunnel have in common |
//! | `tcp.rs` | the fields of its header |
//! | `ack.rs` | TCP's acknowledgements, which need no order |
//! | `carry.rs` | one flow of a client's tunnel |
//! | `terms.rs`, `elsewhere.rs` | what a client takes from its server |
//! | `client.rs`, `server.rs` | the two ends |
//! | `options.rs` | how it is wanted |
//! | `view.rs`, `status.rs` | what a client's tunnel reports |
//!
//! CoDel keeps the queue of each conversation short. The kernel's device is opened by `tun-rs`,
//! which also joins packets for it.

mod ack;
mod carry;
mod checksum;
mod client;
#[cfg(target_os = "linux")]
mod device;
#[cfg(not(target_os = "linux"))]
#[path = "no_device.rs"]
mod device;
mod elsewhere;
mod fit;
mod gate;
mod guests;
mod hello;
mod icmp;
#[cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "the device needs the rest")
)]
mod joined;
mod key;
mod lease;
mod lease_file;
mod leases;
mod mss;
mod options;
mod packet;
mod pool;
mod prefixes;
mod queue;
mod remains;
mod rules;
mod server;
mod setup;
mod shared;
pub mod status;
mod tcp;
mod terms;
#[cfg(test)]
mod tests;
mod view;
#[cfg(target_os = "linux")]
mod virtio;

pub use crate::destination::Role;
pub use client::ClientTunnel;
pub use device::{Device, DeviceError};
pub(crate) use fit::room;
pub use gate::Gate;
pub use hello::{OFFER_HEAD, Offer, OfferError, Place, Standing};
pub use icmp::{Refusal, answer};
pub use joined::{MessageError, packets};
pub use key::Key;
pub use leases::LeasesError;
pub use mss::clamp;
pub use options::{ClientSetup, Resolver, TunIn, TunOut, TunSetup};
pub use packet::{Fragment, Packet, PacketError};
pub use pool::Pool;
pub use prefixes::{Prefix, Prefixes, network};
pub use rules::{Rule, Rules};
pub(crate) use server::refuse;
pub use server::{Hub, ServerTunnel, Visitor};
pub use setup::{Applied, MARK, SetupError, Strict};
pub use view::View;

use bytes::Bytes;
use ipnet::IpNet;
use tokio::sync::mpsc;

/// The device's name when none is given.
pub const DEVICE: &str = "marline0";

/// Bytes that wait in a flow until a path has room for them: enough to fill what becomes free at
/// once, and for a scheduler to see that the paths are full. What waits longer does so before it,
/// where CoDel bounds the time.
const FLOW_QUEUE: u64 = 32 << 10;

/// Packets to and from the kernel.
#[derive(Debug)]
struct Port {
    incoming: mpsc::Receiver<Bytes>,
    outgoing: mpsc::Sender<Bytes>,
}

/// A tunnel could not be had.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// The device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The state file.
    #[error(transparent)]
    Leases(#[from] LeasesError),
    /// What sets the device up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// A network behind a client overlaps the clients' own addresses.
    #[error("the network {0} behind a client overlaps the tunnel's own addresses, {1}")]
    Prefix(IpNet, Pool),
}

impl TunnelError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            TunnelError::Device(error) => error.hint(),
            TunnelError::Leases(_) => "mend the file, or remove it: clients get new addresses then",
            TunnelError::Setup(error) => error.hint(),
            TunnelError::Prefix(..) => {
                "choose other addresses for the tunnel, --tun-pool, or another network at the client"
            }
        }
    }
}
