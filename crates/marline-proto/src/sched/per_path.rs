//! What a scheduler remembers of each path.

use alloc::vec::Vec;

use crate::wire::PathId;

/// Paths that are remembered: twice as many as a session has at once, for one that is silent may
/// come back, and one that is opened again has another number.
pub(super) const MOST: usize = 32;

/// Something of each path that was used lately; of more than [`MOST`], what was used longest ago is
/// forgotten.
#[derive(Clone, Debug)]
pub(super) struct PerPath<T> {
    known: Vec<Known<T>>,
    uses: u64,
}

#[derive(Clone, Debug)]
struct Known<T> {
    path: PathId,
    used: u64,
    what: T,
}

impl<T> Default for PerPath<T> {
    fn default() -> Self {
        Self {
            known: Vec::new(),
            uses: 0,
        }
    }
}

impl<T> PerPath<T> {
    /// Of this path, if something is known.
    pub(super) fn get(&self, path: PathId) -> Option<&T> {
        let known = self.known.iter().find(|known| known.path == path);
        known.map(|known| &known.what)
    }

    /// The same to change.
    pub(super) fn get_mut(&mut self, path: PathId) -> Option<&mut T> {
        let known = self.known.iter_mut().find(|known| known.path == path);
        known.map(|known| &mut known.what)
    }

    /// Of this path, which is in use; made if nothing is known.
    pub(super) fn of(&mut self, path: PathId, make: impl FnOnce() -> T) -> &mut T {
        self.uses += 1;
        let used = self.uses;
        let place = self.known.iter().position(|known| known.path == path);
        let place = place.unwrap_or_else(|| {
            if self.known.len() >= MOST {
                let oldest = self.known.iter().enumerate().min_by_key(|(_, k)| k.used);
                let oldest = oldest.map_or(0, |(place, _)| place);
                self.known.swap_remove(oldest);
            }
            let what = make();
            self.known.push(Known { path, used, what });
            self.known.len() - 1
        });
        let known = &mut self.known[place];
        known.used = used;
        &mut known.what
    }

    /// Of all paths.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.known.iter().map(|known| &known.what)
    }

    /// Of all paths, to change.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (PathId, &mut T)> {
        self.known.iter_mut().map(|k| (k.path, &mut k.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_is_forgotten() {
        let mut per = PerPath::default();
        for n in 0..1_000 {
            *per.of(PathId(n), || 0) = n;
            // This one is in use all the time.
            assert_eq!(*per.of(PathId(0), || 77), 0);
        }
        assert_eq!(per.values().count(), MOST);
        assert_eq!(per.get(PathId(999)), Some(&999));
        assert_eq!(per.get(PathId(1)), None);
        for (path, value) in per.iter_mut() {
            assert_eq!(path.0, *value);
        }
    }
}
