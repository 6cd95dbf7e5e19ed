//! What a flow's estimators know of the paths, for a flow that begins later.

use alloc::collections::BTreeMap;
use core::any::Any;

use super::arrivals::Arrivals;
use crate::wire::PathId;

/// Estimators without what is one flow's own: its packets and its promises.
#[derive(Debug)]
pub(super) struct Legacy(BTreeMap<PathId, Arrivals>);

impl Legacy {
    pub(super) fn of(paths: &BTreeMap<PathId, Arrivals>) -> Self {
        Self(paths.iter().map(|(id, path)| (*id, path.heir())).collect())
    }

    /// Those that another flow left, if it did.
    pub(super) fn paths(legacy: &dyn Any) -> Option<BTreeMap<PathId, Arrivals>> {
        let legacy: &Self = legacy.downcast_ref()?;
        Some(Self::of(&legacy.0).0)
    }
}
