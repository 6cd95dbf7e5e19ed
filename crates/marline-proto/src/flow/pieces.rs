//! Which pieces are somewhere, so that one that brings all of another is found without a search
//! through all of them.

use alloc::collections::BTreeMap;

use super::Symbol;

/// A multiset of symbols, each with a group that it is looked for in and a tag that tells it apart.
#[derive(Debug)]
pub(crate) struct Pieces<G, T> {
    /// Ordered by group, unit and offset, then by length and tag; with how often each is there.
    pieces: BTreeMap<(G, u64, u64, u32, T), u32>,
    /// No piece is longer (bytes).
    longest: u32,
}

impl<G, T> Default for Pieces<G, T> {
    fn default() -> Self {
        Self {
            pieces: BTreeMap::new(),
            longest: 0,
        }
    }
}

impl<G: Ord + Copy, T: Ord + Copy> Pieces<G, T> {
    pub(crate) fn insert(&mut self, group: G, symbol: &Symbol, tag: T) {
        let key = (group, symbol.unit, symbol.offset, symbol.len, tag);
        *self.pieces.entry(key).or_default() += 1;
        self.longest = self.longest.max(symbol.len);
    }

    pub(crate) fn remove(&mut self, group: G, symbol: &Symbol, tag: T) {
        let key = (group, symbol.unit, symbol.offset, symbol.len, tag);
        if let Some(count) = self.pieces.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.pieces.remove(&key);
            }
        }
        if self.pieces.is_empty() {
            self.longest = 0;
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Tags of the pieces of the group that bring all of `symbol`; `tags` are the least and the
    /// greatest tag that there can be.
    pub(crate) fn covering(
        &self,
        group: G,
        symbol: &Symbol,
        tags: (T, T),
    ) -> impl Iterator<Item = T> {
        let Symbol { unit, offset, .. } = *symbol;
        // A piece that begins earlier would end before the symbol begins.
        let from = offset.saturating_sub(u64::from(self.longest));
        let range = (group, unit, from, 0, tags.0)..=(group, unit, offset, u32::MAX, tags.1);
        let symbol = *symbol;
        let near = (!self.pieces.is_empty()).then(|| self.pieces.range(range));
        near.into_iter()
            .flatten()
            .filter_map(move |(&(_, unit, offset, len, tag), _)| {
                let piece = Symbol { unit, offset, len };
                piece.covers(&symbol).then_some(tag)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn symbol((unit, offset, len): (u64, u64, u32)) -> Symbol {
        Symbol { unit, offset, len }
    }

    proptest! {
        #[test]
        fn finds_what_a_search_through_all_finds(
            changes in prop::collection::vec((any::<bool>(), (0u64..2, 0u64..12, 0u32..6), 0u64..3), 1..60),
            wanted in (0u64..2, 0u64..12, 0u32..6),
        ) {
            let mut pieces = Pieces::default();
            let mut plain: Vec<(Symbol, u64)> = Vec::new();
            for (remove, piece, tag) in changes {
                let piece = symbol(piece);
                let found = plain.iter().position(|p| *p == (piece, tag));
                if let (true, Some(index)) = (remove, found) {
                    plain.remove(index);
                    pieces.remove(7, &piece, tag);
                } else {
                    plain.push((piece, tag));
                    pieces.insert(7, &piece, tag);
                }
            }
            let wanted = symbol(wanted);
            let mut expected: Vec<u64> = plain
                .iter()
                .filter(|(piece, _)| piece.covers(&wanted))
                .map(|&(_, tag)| tag)
                .collect();
            expected.sort_unstable();
            expected.dedup();
            let mut found: Vec<u64> = pieces.covering(7, &wanted, (0, u64::MAX)).collect();
            found.sort_unstable();
            found.dedup();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(pieces.covering(8, &wanted, (0, u64::MAX)).count(), 0);
        }
    }
}
