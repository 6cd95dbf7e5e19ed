//! A set of integers kept as disjoint ranges: packets received, bytes acknowledged.

use alloc::collections::VecDeque;
use core::ops::Range;

/// Disjoint, non-adjacent half-open ranges in ascending order.
///
/// Nearly all changes happen at the upper end, so a deque with a search from the back is both the
/// simplest and the fastest form. The number of ranges is bounded by the caller through
/// [`RangeSet::drop_lowest_above`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: VecDeque<Range<u64>>,
}

impl RangeSet {
    /// Inserts `new` and returns how many of its members were absent before.
    pub fn insert(&mut self, new: Range<u64>) -> u64 {
        if new.start >= new.end {
            return 0;
        }
        if let Some(last) = self.ranges.back_mut() {
            if new.start > last.end {
                let added = new.end - new.start;
                self.ranges.push_back(new);
                return added;
            }
            if new.start == last.end {
                last.end = new.end;
                return new.end - new.start;
            }
        } else {
            let added = new.end - new.start;
            self.ranges.push_back(new);
            return added;
        }
        self.merge(new)
    }

    fn merge(&mut self, new: Range<u64>) -> u64 {
        // Ranges `first..last` overlap `new` or touch it.
        let first = self.ranges.partition_point(|r| r.end < new.start);
        let last = self.ranges.partition_point(|r| r.start <= new.end);
        let mut merged = new.clone();
        let mut present = 0;
        for r in self.ranges.range(first..last) {
            present += r.end.min(new.end).saturating_sub(r.start.max(new.start));
            merged.start = merged.start.min(r.start);
            merged.end = merged.end.max(r.end);
        }
        if first == last {
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            self.ranges.drain(first + 1..last);
        }
        new.end - new.start - present
    }

    /// Members of `range` that are not in the set, ascending.
    pub fn absent_in(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut next = self.first_beyond(range.start);
        let mut start = range.start;
        core::iter::from_fn(move || {
            while start < range.end {
                let gap = start;
                let Some(present) = self.ranges.get(next) else {
                    start = range.end;
                    return Some(gap..range.end);
                };
                next += 1;
                start = present.end;
                if present.start > gap {
                    return Some(gap..present.start.min(range.end));
                }
            }
            None
        })
    }

    /// Whether `value` is a member.
    pub fn contains(&self, value: u64) -> bool {
        self.end_of(value).is_some()
    }

    /// True if every member of `range` is in the set.
    pub fn covers(&self, range: &Range<u64>) -> bool {
        if range.is_empty() {
            return true;
        }
        let i = self.first_beyond(range.start);
        self.ranges
            .get(i)
            .is_some_and(|r| r.start <= range.start && range.end <= r.end)
    }

    /// The end of the range that `value` is in.
    pub fn end_of(&self, value: u64) -> Option<u64> {
        self.range_of(value).map(|r| r.end)
    }

    /// The lowest range.
    pub fn first(&self) -> Option<&Range<u64>> {
        self.ranges.front()
    }

    /// The range that `value` is in.
    pub fn range_of(&self, value: u64) -> Option<&Range<u64>> {
        let i = self.first_beyond(value);
        self.ranges.get(i).filter(|r| r.start <= value)
    }

    /// Index of the first range that ends beyond `value`. Nearly always that is the last.
    #[inline]
    fn first_beyond(&self, value: u64) -> usize {
        match self.ranges.back() {
            Some(last) if last.start <= value => self.ranges.len() - usize::from(value < last.end),
            _ => self.ranges.partition_point(|r| r.end <= value),
        }
    }

    /// Removes `value`; says whether it was a member.
    pub fn remove(&mut self, value: u64) -> bool {
        let at = self.first_beyond(value);
        let Some(range) = self.ranges.get_mut(at).filter(|r| r.start <= value) else {
            return false;
        };
        let above = value + 1..range.end;
        range.end = value;
        let emptied = range.is_empty();
        if !above.is_empty() {
            self.ranges.insert(at + 1, above);
        }
        if emptied {
            self.ranges.remove(at);
        }
        true
    }

    /// Drops the lowest ranges until at most `limit` are left.
    pub fn drop_lowest_above(&mut self, limit: usize) {
        while self.ranges.len() > limit {
            self.ranges.pop_front();
        }
    }

    /// Removes all members below `floor`.
    pub fn drop_below(&mut self, floor: u64) {
        while let Some(first) = self.ranges.front_mut() {
            if first.end <= floor {
                self.ranges.pop_front();
            } else {
                first.start = first.start.max(floor);
                break;
            }
        }
    }

    /// Ranges, not members.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// How many values it holds.
    pub fn total(&self) -> u64 {
        self.ranges.iter().map(|r| r.end - r.start).sum()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// From the highest to the lowest.
    pub fn iter_descending(&self) -> impl Iterator<Item = &Range<u64>> {
        self.ranges.iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_plain_set(inserts in prop::collection::vec((0u64..60, 0u64..9), 1..40), floor in 0u64..60) {
            let mut set = RangeSet::default();
            let mut plain = BTreeSet::new();
            for (start, len) in inserts {
                let before = plain.len();
                plain.extend(start..start + len);
                prop_assert_eq!(set.insert(start..start + len), (plain.len() - before) as u64);
            }
            for pair in set.ranges.iter().zip(set.ranges.iter().skip(1)) {
                prop_assert!(pair.0.end < pair.1.start);
            }
            let absent: Vec<u64> = set.absent_in(floor..floor + 15).flatten().collect();
            let expected: Vec<u64> = (floor..floor + 15).filter(|v| !plain.contains(v)).collect();
            prop_assert_eq!(absent, expected);
            for v in 0..80 {
                prop_assert_eq!(set.contains(v), plain.contains(&v));
                prop_assert_eq!(set.covers(&(v..v + 3)), (v..v + 3).all(|x| plain.contains(&x)));
            }
            let mut less = set.clone();
            prop_assert_eq!(less.remove(floor), plain.contains(&floor));
            for v in 0..80 {
                prop_assert_eq!(less.contains(v), v != floor && plain.contains(&v));
            }
            set.drop_below(floor);
            for v in 0..80 {
                prop_assert_eq!(set.contains(v), v >= floor && plain.contains(&v));
            }
            set.drop_lowest_above(2);
            prop_assert!(set.len() <= 2);
        }
    }
}
