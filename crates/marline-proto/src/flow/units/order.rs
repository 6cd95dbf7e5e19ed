//! Whose symbol is next.
//!
//! Units go by urgency, and among equals in their turn: a unit keeps its turn until it was cut
//! whole, unless it is incremental; then it goes behind its equals after every symbol (RFC 9218
//! §10). So that urgent ones never starve the others, the oldest unit that waits gets at least one
//! symbol in every [`ROUND`]: a unit which waits with n symbols, its own and those of older units,
//! has left after at most `ROUND` · n symbols of its flow.

use alloc::collections::BTreeSet;

/// Of this number of symbols in a row at least one is of the oldest unit that waits: it costs
/// the more urgent ones a sixteenth of the rate. A choice, not tuned.
pub(super) const ROUND: u32 = 16;

/// Units that have not begun and that are looked at, to find one that credit suffices for.
const LOOK_AHEAD: usize = 64;

/// Where a unit stands in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) urgency: u8,
    pub(super) turn: u64,
    pub(super) unit: u64,
}

#[derive(Debug, Default)]
pub(super) struct Order {
    /// Units of which symbols were cut, and units of which none was.
    begun: BTreeSet<Place>,
    fresh: BTreeSet<Place>,
    /// Both, the oldest first.
    ages: BTreeSet<u64>,
    turns: u64,
    /// Symbols of others that were cut since the oldest had one.
    cut: u32,
    /// The unit that was the oldest when symbols were last taken back: it counts as waiting until
    /// then, though all of it was cut, because that may be taken back again.
    watched: Option<u64>,
    /// Symbols of others that left since the watched one had one.
    left: u32,
}

impl Order {
    /// The turn of a unit that comes now.
    pub(super) fn turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    pub(super) fn insert(&mut self, place: Place, begun: bool) {
        self.watched.get_or_insert(place.unit);
        self.class(begun).insert(place);
        self.ages.insert(place.unit);
    }

    pub(super) fn remove(&mut self, place: Place) {
        self.begun.remove(&place);
        self.fresh.remove(&place);
        self.ages.remove(&place.unit);
    }

    pub(super) fn contains(&self, unit: u64) -> bool {
        self.ages.contains(&unit)
    }

    fn class(&mut self, begun: bool) -> &mut BTreeSet<Place> {
        if begun {
            &mut self.begun
        } else {
            &mut self.fresh
        }
    }

    /// The unit whose symbol is next, one that `may` have it: has begun, or credit suffices.
    pub(super) fn next(&self, may: impl Fn(u64) -> bool) -> Option<u64> {
        let begun = self.begun.first();
        let oldest = *self.ages.first()?;
        if self.cut + 1 >= ROUND {
            // Credit is kept for it; only what has begun may go before.
            let begun = begun.map(|place| place.unit);
            return if may(oldest) { Some(oldest) } else { begun };
        }
        let mut ahead = self.fresh.iter().take(LOOK_AHEAD);
        let fresh = ahead.find(|place| may(place.unit));
        let first = match (begun, fresh) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        first
            .map(|place| place.unit)
            .or_else(|| may(oldest).then_some(oldest))
    }

    /// Units in their order, as far as urgency and turns make it.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let (mut begun, mut fresh) = (self.begun.iter().peekable(), self.fresh.iter().peekable());
        core::iter::from_fn(move || match (begun.peek(), fresh.peek()) {
            (Some(a), Some(b)) if b < a => fresh.next(),
            (Some(_), _) => begun.next(),
            (None, _) => fresh.next(),
        })
        .map(|place| place.unit)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ages.is_empty()
    }

    /// A symbol of the unit was cut.
    pub(super) fn on_cut(&mut self, unit: u64) {
        self.cut = match self.ages.first() {
            Some(oldest) if *oldest < unit => self.cut + 1,
            _ => 0,
        };
    }

    /// A symbol of the unit left for the first time.
    pub(super) fn on_left(&mut self, unit: u64) {
        match self.watched {
            Some(watched) if watched < unit => self.left = self.left.saturating_add(1),
            Some(watched) if watched == unit => self.left = 0,
            _ => {}
        }
    }

    /// What was cut and has not left was taken back.
    pub(super) fn on_taken_back(&mut self) {
        let oldest = self.ages.first().copied();
        if self.watched != oldest {
            self.watched = oldest;
            self.left = 0;
        }
        self.cut = self.left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::{BTreeMap, VecDeque};

    /// All that waits is cut at once, six symbols leave, something urgent comes, and what has not
    /// left is taken back: over and over.
    #[test]
    fn nobody_starves_whose_symbols_are_taken_back() {
        const MINE: u32 = 20;
        let mut order = Order::default();
        let mut waiting: BTreeMap<u64, u32> = BTreeMap::new();
        let place = |unit: u64| Place {
            urgency: if unit == 0 { 7 } else { 0 },
            turn: unit,
            unit,
        };
        let (mut left, mut mine) = (0, 0);
        for unit in 0..200 {
            waiting.insert(unit, if unit == 0 { MINE } else { 8 });
            order.insert(place(unit), false);
            let mut cut = VecDeque::new();
            while let Some(unit) = order.next(|_| true) {
                order.remove(place(unit));
                let symbols = waiting.entry(unit).or_default();
                *symbols -= 1;
                if *symbols > 0 {
                    order.insert(place(unit), true);
                }
                order.on_cut(unit);
                cut.push_back(unit);
            }
            for unit in cut.drain(..cut.len().min(6)) {
                order.on_left(unit);
                left += 1;
                mine += u32::from(unit == 0);
                if mine == MINE {
                    assert!(left <= ROUND * MINE, "{left}");
                    return;
                }
            }
            for unit in cut {
                order.remove(place(unit));
                *waiting.entry(unit).or_default() += 1;
                order.insert(place(unit), true);
            }
            order.on_taken_back();
        }
        panic!("{mine} of {MINE} symbols left among {left}");
    }
}
