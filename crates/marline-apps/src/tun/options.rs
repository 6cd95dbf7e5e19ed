//! How a tunnel is wanted.

use super::{Pool, Rules};
use ipnet::IpNet;
use marline_proto::sched::Choice;
use std::path::PathBuf;

/// A client's tunnel.
#[derive(Debug, Clone, PartialEq)]
pub struct TunIn {
    /// Name of the device.
    pub device: String,
    /// What is done to the system, and undone in the end.
    pub setup: ClientSetup,
    /// Networks behind the tunnel.
    pub routes: Vec<IpNet>,
    /// How conversations are carried.
    pub rules: Rules,
}

/// A server's tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TunOut {
    /// Name of the device.
    pub device: String,
    /// Whether the system is set up.
    pub setup: TunSetup,
    /// Networks from which clients get addresses; `None` for those of this server's key.
    pub pool: Option<Pool>,
    /// Where clients' addresses are kept across restarts, if they are.
    pub state: Option<PathBuf>,
    /// Clients reach each other.
    pub peers: bool,
    /// The scheduler of what goes to clients whose paths have different costs; `None` for the
    /// session's default.
    pub by_cost: Option<Choice>,
}

/// What a client does to its system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientSetup {
    /// Addresses and routes; without it, nothing, and the commands are shown.
    pub on: bool,
    /// Forwarding and address translation for the networks behind this host, too.
    pub gateway: bool,
}

/// What a server does to its system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TunSetup {
    /// Nothing; it shows the commands.
    Off,
    /// Addresses, forwarding and address translation, undone in the end.
    On,
    /// Addresses and forwarding.
    WithoutNat,
}
