//! What control and metrics see of a session and its tunnel together.

use super::client::Shared;
use super::hello::Standing;
use crate::config::PathSpec;
use crate::control::tunnel::{TunnelStanding, TunnelStatus};
use crate::control::{Manage, ManageError, Status};
use marline_base::Rate;
use std::sync::Arc;

/// A running tunnel of a client, to be looked at. Cheap to clone.
#[derive(Debug, Clone)]
pub struct View(pub(super) Arc<Shared>);

/// A session with a tunnel, or without one.
#[derive(Debug)]
pub struct WithTunnel<M> {
    /// The session.
    pub session: Arc<M>,
    /// Its tunnel.
    pub tunnel: Option<View>,
}

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
            mtu: lease.as_ref().map_or(0, |lease| lease.mtu),
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

impl<M: Manage> Manage for WithTunnel<M> {
    async fn status(&self) -> Status {
        Status {
            tunnel: self.tunnel.as_ref().map(View::status),
            ..self.session.status().await
        }
    }

    async fn add_path(&self, path: PathSpec) -> Result<(), ManageError> {
        self.session.add_path(path).await
    }

    async fn remove_path(&self, name: &str) -> Result<(), ManageError> {
        self.session.remove_path(name).await
    }

    async fn set_standby(&self, name: &str, standby: bool) -> Result<(), ManageError> {
        self.session.set_standby(name, standby).await
    }

    async fn set_live_target(
        &self,
        live: Option<&str>,
        target: Option<Rate>,
    ) -> Result<(), ManageError> {
        self.session.set_live_target(live, target).await
    }
}
