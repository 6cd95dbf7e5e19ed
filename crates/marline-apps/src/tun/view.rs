//! What others see of a client's running tunnel.

use super::hello::Standing;
use super::shared::Shared;
use super::status::{TunnelStanding, TunnelStatus};
use std::sync::Arc;

/// A running tunnel of a client, to be looked at. Cheap to clone.
#[derive(Debug, Clone)]
pub struct View(pub(super) Arc<Shared>);

impl View {
    /// What it is like now.
    pub fn status(&self) -> TunnelStatus {
        let View(shared) = self;
        let lease = shared.lease();
        let places = lease.iter().flat_map(|lease| &lease.places);
        let addresses = places.map(|place| place.own.addr().to_string());
        TunnelStatus {
            device: shared.device.clone(),
            addresses: addresses.collect(),
            mtu: lease.as_ref().map_or(0, |lease| lease.mtu.get()),
            standing: match (&lease, shared.standing()) {
                (None, _) => TunnelStanding::NoLease,
                (Some(_), Standing::Alone) => TunnelStanding::Alone,
                (Some(_), Standing::Shared) => TunnelStanding::Shared,
                (Some(_), Standing::SetAside) => TunnelStanding::SetAside,
            },
            dropped_packets: shared.strays(),
        }
    }
}
