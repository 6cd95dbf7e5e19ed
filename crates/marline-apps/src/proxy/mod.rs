//! Proxies: how programs that know nothing of Marline use a session.

pub(crate) mod asker;
pub(crate) mod associations;
mod eyeballs;
mod find;
pub(crate) mod flows;
mod forward;
pub mod front;
mod http_connect;
pub(crate) mod idle;
mod keepalive;
mod login;
pub mod objects;
pub(crate) mod places;
pub mod policy;
pub(crate) mod ports;
mod reach;
mod relay;
pub mod reply;
pub(crate) mod resolve;
pub(crate) mod server;
pub mod socks5;
mod tasks;
pub mod tcp;
mod tunnel;
pub mod udp;

pub use crate::destination::{Host, Protocol, Target, TargetError};
pub use flows::FlowsByClient;
pub use forward::Forward;
pub use login::SocksLogin;
pub use objects::AsObjects;
pub use places::Places;
pub use ports::Ports;
pub use resolve::Targets;
pub use tasks::Tasks;
pub(crate) use tunnel::until_end;
pub use tunnel::{Accept, ByteFlow, Incoming, IncomingFlow, Listen, OpenError, PacketFlow, Tunnel};
