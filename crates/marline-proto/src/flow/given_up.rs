//! Where messages were when their lifetime ended.

use alloc::vec::Vec;

use crate::wire::{MAX_PATHS, PathId};

/// Messages of a flow that this end gave up because their lifetime ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// Of them, those that had not left whole, or not before half of their lifetime was over: no
    /// path had room for them in time.
    pub waited: u64,
    /// Those that had left in time, and the path that carried their first part: the path that lost
    /// or delayed them. A path that is dialled again has another number, so they come and go: only
    /// the [`MAX_PATHS`] with the most such messages.
    pub on: Vec<(PathId, u64)>,
}

impl GivenUp {
    /// Counts one more that left over `path`.
    pub(super) fn count_on(&mut self, path: PathId) {
        if let Some((_, count)) = self.on.iter_mut().find(|(known, _)| *known == path) {
            *count += 1;
            return;
        }
        if self.on.len() == MAX_PATHS {
            let counts = self.on.iter().map(|(_, count)| *count).enumerate();
            if let Some((least, _)) = counts.min_by_key(|(_, count)| *count) {
                self.on.remove(least);
            }
        }
        self.on.push((path, 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_come_and_go_and_few_are_remembered() {
        let mut given_up = GivenUp::default();
        for _ in 0..9 {
            given_up.count_on(PathId(70));
        }
        for id in 0..40 {
            given_up.count_on(PathId(id));
            given_up.count_on(PathId(id));
        }
        assert_eq!(given_up.on.len(), MAX_PATHS);
        assert_eq!(given_up.on[0], (PathId(70), 9));
        assert_eq!(given_up.on[15], (PathId(39), 2));
    }
}
