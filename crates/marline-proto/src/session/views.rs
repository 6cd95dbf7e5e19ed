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
        debug_assert!(
            view_usable(paths, waiting).eq(self.views.iter().copied()),
            "what they show has changed, and no revision says so"
        );
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

/// Views of the usable paths, one by one.
pub(super) fn view_usable<'a>(
    paths: &'a Paths,
    waiting: &'a Waiting,
) -> impl Iterator<Item = PathView> + Clone + 'a {
    paths.usable().map(|index| {
        let path = &paths[index];
        path.view(waiting.bytes(path.id))
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use marline_base::Instant;

    use super::*;
    use crate::config::Config;
    use crate::path::PathParams;
    use crate::session::{FlowOptions, Session, Side};
    use crate::wire::{FlowKind, PathId};

    fn looked_at(session: &mut Session) -> Vec<PathView> {
        let Session {
            views,
            paths,
            waiting,
            ..
        } = session;
        views.look(paths, waiting).to_vec()
    }

    #[test]
    fn they_show_what_changed_and_are_kept_while_nothing_does() {
        let (now, config) = (Instant::ZERO, Config::default());
        let peer = config.params();
        let mut session = Session::new(now, Side::Client, config, peer, 7).unwrap();
        assert!(looked_at(&mut session).is_empty());
        for id in [PathId(0), PathId(1)] {
            session.add_path(now, id, &PathParams::default()).unwrap();
            session.paths[id.0 as usize].health = crate::path::Health::Active;
        }
        let both = looked_at(&mut session);
        assert_eq!(both.len(), 2);
        let of = session.views.of;
        assert_eq!(looked_at(&mut session), both);
        assert_eq!(session.views.of, of, "nothing changed");

        session.set_cost(PathId(1), 5).unwrap();
        assert_eq!(looked_at(&mut session)[1].cost, 5);
        let flow = session
            .open_flow(&FlowOptions::new(FlowKind::Stream))
            .unwrap();
        let data = Bytes::from_static(&[7; 50_000]);
        session.write(now, flow, &data).unwrap();
        session.plan(now);
        let queued = |views: &[PathView]| views.iter().map(|view| view.queued).sum::<u64>();
        assert_eq!(queued(&both), 0);
        let waits = [0, 1].map(|id| session.waiting.bytes(PathId(id)));
        let seen = looked_at(&mut session);
        assert!(queued(&seen) > 0);
        assert_eq!([seen[0].queued, seen[1].queued], waits, "not as one flow");
        session.reset(flow, 0);
        assert_eq!(queued(&looked_at(&mut session)), 0);
        session.remove_path(now, PathId(0)).unwrap();
        assert_eq!(looked_at(&mut session).len(), 1);
    }
}
