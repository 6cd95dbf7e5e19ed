//! What has arrived by some moment.

use marline_base::Instant;
use smallvec::SmallVec;

use crate::wire::PathId;

/// For each path, when what has arrived by some moment left at the latest, by the forecasts of
/// arrival.
///
/// An equation is of no use before all that it combines has arrived but for what was lost: over a
/// quick path, one about symbols that are still on their way over a slow path waits for these.
#[derive(Clone, Debug, Default)]
pub(crate) struct Due(SmallVec<[(PathId, Instant); 4]>);

impl Due {
    /// Has it arrived that left then on this path? Nobody waits for a path that cannot be used.
    pub(crate) fn is(&self, path: PathId, left: Instant) -> bool {
        let mut paths = self.0.iter();
        paths.all(|(id, latest)| *id != path || left <= *latest)
    }
}

impl FromIterator<(PathId, Instant)> for Due {
    fn from_iter<T: IntoIterator<Item = (PathId, Instant)>>(latest: T) -> Self {
        Self(latest.into_iter().collect())
    }
}
