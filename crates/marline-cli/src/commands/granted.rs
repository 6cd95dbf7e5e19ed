//! What clients are granted, as it holds in a running server.

use crate::config::{ConfigError, Grants};
use marline_apps::proxy::Targets;
use marline_apps::publish::Publisher;
use marline_apps::tun::{Hub, Pool};
use std::sync::OnceLock;

/// The parts of a server that keep to it.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) targets: Targets,
    pub(super) publisher: Publisher,
    /// The networks of the tunnel, if there is one.
    pool: Option<Pool>,
    hub: OnceLock<Hub>,
}

impl Granted {
    pub(super) fn new(targets: Targets, publisher: Publisher, pool: Option<Pool>) -> Self {
        Granted {
            targets,
            publisher,
            pool,
            hub: OnceLock::new(),
        }
    }

    /// Checks what the configuration alone does not show.
    ///
    /// # Errors
    /// That of [`Grants::fit`].
    pub(super) fn fits(&self, grants: &Grants) -> Result<(), ConfigError> {
        match &self.pool {
            Some(pool) => grants.fit(pool),
            None => {
                if !grants.addresses.is_empty() || !grants.prefixes.is_empty() {
                    tracing::warn!(
                        "`address` and `prefix` of clients mean nothing without a tunnel: --tun"
                    );
                }
                Ok(())
            }
        }
    }

    /// Has these hold from now on; sessions go on.
    pub(super) fn apply(&self, grants: &Grants) {
        self.targets.set_rules(&grants.targets);
        self.publisher.permit(grants.permits.clone());
        if let Some(hub) = self.hub.get() {
            hub.grant(&grants.prefixes, &grants.addresses);
        }
    }

    /// The tunnel runs.
    pub(super) fn serve(&self, hub: Hub, grants: &Grants) {
        let hub = self.hub.get_or_init(|| hub);
        hub.grant(&grants.prefixes, &grants.addresses);
    }
}
