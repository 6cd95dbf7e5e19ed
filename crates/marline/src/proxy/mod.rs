//! Proxies: how programs that know nothing of Marline use a session.

pub(crate) mod associations;
pub mod front;
pub(crate) mod idle;
pub mod objects;
mod places;
pub mod policy;
mod relay;
pub mod reply;
mod resolve;
pub mod server;
pub mod socks5;
mod target;
mod tasks;
pub mod tcp;
mod tunnel;
pub mod udp;

pub use objects::AsObjects;
pub use places::Places;
pub use resolve::Targets;
pub use target::{Host, Protocol, Target, TargetError};
pub use tasks::Tasks;
pub use tunnel::{
    Accept, ByteFlow, Incoming, IncomingFlow, Listen, OpenError, OpenOptions, PacketFlow, Tunnel,
};
