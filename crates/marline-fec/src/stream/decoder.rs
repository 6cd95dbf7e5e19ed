//! The receiving side: what is known, what is missing, and what repair symbols say about it.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::mem;

use super::framed::{Framed, HEADER};
use super::{Limits, Repair};
use crate::coefficients::coefficients;
use crate::equations::{Equations, Row};
use crate::gf256::{self, Kernel};

/// Marks a symbol that is in no equation.
const NO_COLUMN: u16 = u16::MAX;
/// Repair symbols that may be kept beyond two for each equation.
const SPARE_REPAIRS: usize = 8;
/// Buffers of forgotten symbols that wait for new ones: symbols are forgotten some at a time, and
/// more buffers would be memory that nobody uses. Without any, a receiver takes 4 % more
/// instructions a packet (`cargo bench -p marline-sim --bench cost -- check coded-live-1`).
const SPARE_BUFFERS: usize = 16;

/// Recovers source symbols.
///
/// It is fed with what arrives, in any order, and names what it recovered by
/// [`poll_recovered`](Decoder::poll_recovered). It remembers the last 2 × [`Limits::window`]
/// symbols (rounded up to a power of two), because late repair symbols combine old ones, and at
/// most [`Limits::window`] equations with about two repair symbols for each: with the default
/// limits 2 MiB at worst, 1 MiB when full of symbols and without a loss.
///
/// Symbols that were received leave by themselves when room is needed, or before that by
/// [`forget_before`](Decoder::forget_before). Missing ones leave by the latter alone: it gives them
/// up, and until then symbols too far ahead are refused. [`held`](Decoder::held) says what all of
/// that takes.
#[derive(Debug)]
pub struct Decoder {
    kernel: &'static dyn Kernel,
    limits: Limits,
    /// The oldest symbol that is remembered.
    base: u64,
    /// One more than the newest symbol that any input named.
    end: u64,
    /// A ring of a power of two of places. Those before `base` have no buffer.
    places: Vec<Place>,
    /// Buffers of symbols that were forgotten.
    spare: Vec<Framed>,
    /// Symbols between `base` and `end` that are not known, ascending.
    missing: Vec<u64>,
    equations: Equations,
    /// The symbol of each column.
    columns: Vec<Option<u64>>,
    repairs: Vec<Kept>,
    recovered: VecDeque<u64>,
}

#[derive(Clone, Debug)]
struct Place {
    framed: Framed,
    known: bool,
    column: u16,
}

/// A repair symbol that equations are made of.
#[derive(Clone, Debug)]
struct Kept {
    /// Coefficients of known and unknown symbols, by place.
    coefficients: Vec<u8>,
    payload: Vec<u8>,
}

/// Why a symbol was not taken. Nothing changed, except after a contradiction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// It is, or combines, a symbol that is not remembered any more.
    Stale {
        /// That symbol.
        symbol: u64,
        /// The oldest that is remembered.
        oldest: u64,
    },
    /// It is, or combines, a symbol for which missing ones would have to be given up.
    Beyond {
        /// One more than that symbol.
        end: u64,
        /// The oldest missing one.
        missing: u64,
    },
    /// A repair symbol combines more symbols than agreed, or none.
    Window {
        /// How many it combines.
        count: u16,
        /// The most that was agreed.
        limit: u16,
    },
    /// It has more bytes than agreed, or a repair symbol too few for a length.
    Length {
        /// Its length in bytes.
        len: usize,
        /// The longest that was agreed.
        limit: usize,
    },
    /// As many equations wait as are allowed.
    Full,
    /// This symbol would have two values, or one without meaning: the peer's symbols contradict
    /// each other. All equations were dropped.
    Contradiction {
        /// That symbol.
        symbol: u64,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { symbol, oldest } => {
                write!(
                    f,
                    "symbol {symbol} is older than {oldest}, the oldest remembered"
                )
            }
            Self::Beyond { end, missing } => {
                write!(
                    f,
                    "symbol {end} is too far ahead while {missing} is missing"
                )
            }
            Self::Window { count, limit } => {
                write!(
                    f,
                    "a repair symbol over {count} symbols; 1 to {limit} are agreed"
                )
            }
            Self::Length { len, limit } => {
                write!(f, "a symbol of {len} bytes; {limit} are agreed")
            }
            Self::Full => write!(f, "too many repair symbols wait for others"),
            Self::Contradiction { symbol } => {
                write!(
                    f,
                    "received symbols contradict each other about symbol {symbol}"
                )
            }
        }
    }
}

impl core::error::Error for Refusal {}

/// How much is known, for the sender's benefit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Status {
    /// The oldest missing symbol; all before it are known, or were given up. Equal to `end` if
    /// none is missing.
    pub first_missing: u64,
    /// One more than the newest symbol that any input named, be it in a repair symbol.
    pub end: u64,
    /// How many symbols before `end` are missing.
    pub missing: usize,
    /// How many independent equations about them are known: that many repair symbols less are
    /// needed. `missing − rank` further ones that cover all of them would do, most likely.
    pub rank: usize,
}

impl Decoder {
    /// A decoder for symbols from the number `first` on.
    pub fn new(first: u64, limits: Limits) -> Self {
        let kernel = gf256::best();
        let place = Place {
            framed: Framed::default(),
            known: false,
            column: NO_COLUMN,
        };
        Self {
            kernel,
            limits,
            base: first,
            end: first,
            places: vec![place; (2 * limits.clamped_window()).next_power_of_two()],
            spare: Vec::new(),
            missing: Vec::new(),
            equations: Equations::new(kernel),
            columns: Vec::new(),
            repairs: Vec::new(),
            recovered: VecDeque::new(),
        }
    }

    /// A source symbol arrived. Whether it was missing, or new.
    pub fn source(&mut self, number: u64, symbol: &[u8]) -> Result<bool, Refusal> {
        self.check_length(symbol.len(), 0)?;
        self.make_room(number, number.saturating_add(1))?;
        let place = self.place(number);
        if self.places[place].known {
            if self.places[place].framed.symbol() == symbol {
                return Ok(false);
            }
            self.drop_equations();
            return Err(Refusal::Contradiction { symbol: number });
        }
        let mut framed = self.buffer(place);
        framed.set(symbol);
        self.places[place].framed = framed;
        if let Some(column) = self.know(number) {
            self.equations.know(column);
            self.settle()?;
        }
        Ok(true)
    }

    /// A repair symbol arrived. Whether it said anything new.
    ///
    /// One whose symbols are all known is not looked at any further.
    pub fn repair(&mut self, repair: Repair, payload: &[u8]) -> Result<bool, Refusal> {
        let limit = self.limits.clamped_window();
        if repair.count == 0 || usize::from(repair.count) > limit {
            return Err(Refusal::Window {
                count: repair.count,
                limit: limit as u16,
            });
        }
        self.check_length(payload.len(), HEADER)?;
        let symbols = repair.symbols();
        self.make_room(symbols.start, symbols.end)?;
        let from = self
            .missing
            .partition_point(|number| *number < symbols.start);
        let to = self.missing.partition_point(|number| *number < symbols.end);
        if from == to {
            return Ok(false);
        }
        if self.equations.rank() >= limit {
            return Err(Refusal::Full);
        }

        let mut drawn = vec![0; (symbols.end - symbols.start) as usize];
        coefficients(repair.key, &mut drawn);
        let mut unknowns = Vec::new();
        for index in from..to {
            let number = self.missing[index];
            let column = self.column(number);
            if unknowns.len() <= column {
                unknowns.resize(column + 1, 0);
            }
            unknowns[column] = drawn[(number - symbols.start) as usize];
        }
        if !self.equations.insert(unknowns, self.repairs.len()) {
            return Ok(false);
        }
        let mut by_place = vec![0; self.places.len()];
        for (number, c) in symbols.zip(drawn) {
            by_place[self.place(number)] = c;
        }
        self.repairs.push(Kept {
            coefficients: by_place,
            payload: payload.to_vec(),
        });
        self.settle()?;
        Ok(true)
    }

    /// The next symbol that was recovered, in ascending order of those that came out at once.
    pub fn poll_recovered(&mut self) -> Option<u64> {
        self.recovered.pop_front()
    }

    /// The bytes of a symbol that is known and remembered.
    pub fn symbol(&self, number: u64) -> Option<&[u8]> {
        let remembered = (self.base..self.end).contains(&number);
        let place = &self.places[self.place(number)];
        (remembered && place.known).then(|| place.framed.symbol())
    }

    /// Gives up what is missing before `number`, and lets go of what is known there: no further
    /// repair symbol will combine it. The start of the newest repair symbol is such a number.
    pub fn forget_before(&mut self, number: u64) {
        while self.base < number.min(self.end) {
            let leaving = self.base;
            let place = self.place(leaving);
            if self.places[place].known {
                self.fold(place);
            } else {
                self.give_up(leaving);
            }
            let framed = mem::take(&mut self.places[place].framed);
            if self.spare.len() < SPARE_BUFFERS {
                self.spare.push(framed);
            }
            self.places[place].known = false;
            self.base += 1;
        }
        let gone = self.missing.partition_point(|missing| *missing < self.base);
        self.missing.drain(..gone);
        let base = self.base;
        self.recovered.retain(|recovered| *recovered >= base);
        self.base = self.base.max(number);
        self.end = self.end.max(number);
        self.tidy();
    }

    /// Bytes that it takes, at most: its places, the symbols that it remembers, and the repair
    /// symbols of its equations.
    pub fn held(&self) -> u64 {
        let frame = Framed::most(self.limits.symbol.into()) as u64;
        let remembered = self.end - self.base - self.missing.len() as u64;
        let places = self.places.len() as u64;
        places * mem::size_of::<Place>() as u64
            + (remembered + self.spare.len() as u64) * frame
            + self.repairs.len() as u64 * (places + frame)
    }

    /// How much is known.
    pub fn status(&self) -> Status {
        Status {
            first_missing: self.first_missing(),
            end: self.end,
            missing: self.missing.len(),
            rank: self.equations.rank(),
        }
    }

    fn first_missing(&self) -> u64 {
        self.missing.first().copied().unwrap_or(self.end)
    }

    fn check_length(&self, len: usize, header: usize) -> Result<(), Refusal> {
        let limit = header + usize::from(self.limits.symbol);
        if (header..=limit).contains(&len) {
            Ok(())
        } else {
            Err(Refusal::Length { len, limit })
        }
    }

    fn place(&self, number: u64) -> usize {
        (number & (self.places.len() as u64 - 1)) as usize
    }

    /// The buffer of a place, or one that nobody uses.
    fn buffer(&mut self, place: usize) -> Framed {
        let framed = mem::take(&mut self.places[place].framed);
        if framed.is_empty() {
            self.spare.pop().unwrap_or_default()
        } else {
            framed
        }
    }

    /// Makes the symbols from `start` to `end` remembered ones, if that costs no missing one.
    fn make_room(&mut self, start: u64, end: u64) -> Result<(), Refusal> {
        if start < self.base {
            return Err(Refusal::Stale {
                symbol: start,
                oldest: self.base,
            });
        }
        let base = end.saturating_sub(self.places.len() as u64);
        let missing = self.first_missing();
        if base > missing || start == u64::MAX {
            return Err(Refusal::Beyond { end, missing });
        }
        if base > self.base {
            self.forget_before(base);
        }
        self.missing.extend(self.end..end);
        self.end = self.end.max(end);
        Ok(())
    }

    /// The column of a missing symbol, which it gets if it has none.
    fn column(&mut self, number: u64) -> usize {
        let place = self.place(number);
        if self.places[place].column == NO_COLUMN {
            let column = self.columns.iter().position(Option::is_none);
            let column = column.unwrap_or_else(|| {
                self.columns.push(None);
                self.columns.len() - 1
            });
            self.columns[column] = Some(number);
            // There are at most as many columns as places, which are at most 2048.
            self.places[place].column = column as u16;
        }
        self.places[place].column.into()
    }

    /// Takes its column from the symbol at `place`.
    fn free_column(&mut self, place: usize) -> Option<usize> {
        let column = mem::replace(&mut self.places[place].column, NO_COLUMN);
        let column = (column != NO_COLUMN).then_some(usize::from(column))?;
        self.columns[column] = None;
        Some(column)
    }

    /// A missing symbol's bytes are in its place. Its column, if it had one.
    fn know(&mut self, number: u64) -> Option<usize> {
        let place = self.place(number);
        self.places[place].known = true;
        if let Ok(index) = self.missing.binary_search(&number) {
            self.missing.remove(index);
        }
        self.free_column(place)
    }

    /// Takes a known symbol out of the repair symbols' left sides: it leaves.
    fn fold(&mut self, place: usize) {
        for kept in &mut self.repairs {
            let c = mem::take(&mut kept.coefficients[place]);
            if c != 0 {
                let frame = self.places[place].framed.frame();
                self.kernel.mad(&mut kept.payload, frame, c);
            }
        }
    }

    /// Takes a missing symbol out of the equations: it leaves.
    fn give_up(&mut self, number: u64) {
        let place = self.place(number);
        if let Some(column) = self.free_column(place) {
            self.equations.forget(column);
            // What mixtures still contain of it adds up to nothing.
            for kept in &mut self.repairs {
                kept.coefficients[place] = 0;
            }
        }
    }

    /// Recovers what the equations determine.
    fn settle(&mut self) -> Result<(), Refusal> {
        let columns = self.columns.iter().enumerate();
        let used = columns.filter_map(|(column, symbol)| symbol.map(|_| column));
        let mut solved: Vec<(u64, Row)> = self
            .equations
            .take_solved(used)
            .into_iter()
            .filter_map(|row| Some((self.columns[row.pivot]?, row)))
            .collect();
        solved.sort_unstable_by_key(|(number, _)| *number);
        if let Err(number) = self.recover(&solved) {
            self.drop_equations();
            return Err(Refusal::Contradiction { symbol: number });
        }
        for (number, _) in solved {
            self.know(number);
            self.recovered.push_back(number);
        }
        self.tidy();
        Ok(())
    }

    /// Computes the bytes of symbols from the rows that determine them, all at once: what one says
    /// does not depend on the others, and they have most terms in common. An error names a symbol
    /// whose bytes have no meaning.
    fn recover(&mut self, solved: &[(u64, Row)]) -> Result<(), u64> {
        let sums: Vec<(Vec<u8>, usize)> =
            solved.iter().map(|(_, row)| self.left_side(row)).collect();
        let len = sums.iter().map(|(_, len)| *len).max().unwrap_or(0);
        let known: Vec<usize> = (0..self.places.len())
            .filter(|place| self.places[*place].known)
            .filter(|place| sums.iter().any(|(sum, _)| sum[*place] != 0))
            .collect();
        let rows: Vec<Vec<u8>> = sums
            .iter()
            .zip(solved)
            .map(|((sum, _), (_, row))| {
                let coefficients = known.iter().map(|place| sum[*place]);
                coefficients.chain(row.factors().iter().copied()).collect()
            })
            .collect();
        let mut recovered: Vec<Framed> = solved
            .iter()
            .map(|(number, _)| {
                let place = self.place(*number);
                self.buffer(place)
            })
            .collect();
        let sources: Vec<&[u8]> = known
            .iter()
            .map(|place| self.places[*place].framed.frame())
            .chain(self.repairs.iter().map(|kept| &kept.payload[..]))
            .collect();
        let rows: Vec<&[u8]> = rows.iter().map(|row| &row[..]).collect();
        let mut dsts: Vec<&mut [u8]> = recovered.iter_mut().map(|one| one.reset(len)).collect();
        self.kernel.dots(&mut dsts, &rows, &sources);
        let limit = self.limits.symbol.into();
        let mut outcome = Ok(());
        for ((number, _), mut framed) in solved.iter().zip(recovered) {
            if !framed.accept(limit) {
                outcome = Err(*number);
            }
            let place = self.place(*number);
            self.places[place].framed = framed;
        }
        outcome
    }

    /// A row's coefficients of all symbols, by place, and the bytes of its right side's length.
    fn left_side(&self, row: &Row) -> (Vec<u8>, usize) {
        let kept = || row.mixture().map(|(slot, c)| (c, &self.repairs[slot]));
        let mut sum = vec![0; self.places.len()];
        let terms: Vec<(u8, &[u8])> = kept()
            .map(|(c, kept)| (c, &kept.coefficients[..]))
            .collect();
        self.kernel.dot(&mut sum, &terms);
        (
            sum,
            kept()
                .map(|(_, kept)| kept.payload.len())
                .max()
                .unwrap_or(0),
        )
    }

    /// Lets go of repair symbols that no equation needs.
    fn tidy(&mut self) {
        let rank = self.equations.rank();
        if rank == 0 {
            self.drop_equations();
        } else if self.repairs.len() > 2 * rank + SPARE_REPAIRS {
            // As many mixtures as equations say the same.
            let mixed = self.equations.rows().iter().map(|row| {
                let (coefficients, len) = self.left_side(row);
                let mut payload = vec![0; len];
                let terms: Vec<(u8, &[u8])> = row
                    .mixture()
                    .map(|(slot, c)| (c, &self.repairs[slot].payload[..]))
                    .collect();
                self.kernel.dot(&mut payload, &terms);
                Kept {
                    coefficients,
                    payload,
                }
            });
            self.repairs = mixed.collect();
            self.equations.renumber();
        }
    }

    fn drop_equations(&mut self) {
        self.equations.clear();
        self.repairs.clear();
        for number in mem::take(&mut self.columns).into_iter().flatten() {
            let place = self.place(number);
            self.places[place].column = NO_COLUMN;
        }
    }
}
