//! Choices that several schedulers begin with.

use super::PathView;

/// Index of the path with the smallest smoothed round-trip time among those that `may` take a
/// symbol; the first of equals.
pub(super) fn quickest(paths: &[PathView], may: impl Fn(&PathView) -> bool) -> Option<usize> {
    let able = paths.iter().enumerate().filter(|(_, p)| may(p));
    able.min_by_key(|(_, p)| p.srtt).map(|(i, _)| i)
}

/// Could a scheduler wait for the path? It has room, or acknowledgements that make some are due.
pub(super) fn will_have_room(path: &PathView) -> bool {
    path.has_room() || path.in_flight + path.queued > 0
}
