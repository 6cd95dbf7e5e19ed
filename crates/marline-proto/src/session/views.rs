//! What schedulers see of the paths that may carry data.

use alloc::vec::Vec;

use super::path_set::Paths;
use super::waiting::Waiting;
use crate::sched::PathView;

/// Views of the usable paths, made again only where a path, or what waits on one, has changed: a
/// burst of messages is judged by one look.
#[derive(Debug, Default)]
pub(super) struct Views {
    views: Vec<PathView>,
    /// Which revisions of the paths and of what waits on them they show; `None` if whoever had
    /// them changed them.
    of: Option<(u64, u64)>,
    /// Memory for those of them that one flow may have.
    pub(super) chosen: Vec<PathView>,
}

impl Views {
    pub(super) fn look(&mut self, paths: &Paths, waiting: &Waiting) -> &[PathView] {
        let of = Some((paths.revision(), waiting.revision()));
        if self.of != of {
            self.of = of;
            self.views.clear();
            self.views.reserve_exact(paths.len());
            self.views.extend(view_usable(paths, waiting));
        }
        &self.views
    }

    /// Gives them away, to be changed; whoever takes them [puts them back](Self::put_back).
    pub(super) fn take(&mut self, paths: &Paths, waiting: &Waiting) -> Vec<PathView> {
        self.look(paths, waiting);
        self.of = None;
        core::mem::take(&mut self.views)
    }

    pub(super) fn put_back(&mut self, views: Vec<PathView>) {
        self.views = views;
    }
}

/// The same one by one, where there are better uses than to keep them.
pub(super) fn view_usable<'a>(
    paths: &'a Paths,
    waiting: &'a Waiting,
) -> impl Iterator<Item = PathView> + Clone + 'a {
    paths.usable().map(|index| {
        let path = &paths[index];
        path.view(waiting.bytes(path.id))
    })
}
