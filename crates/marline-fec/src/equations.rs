//! Linear equations, kept reduced: Gauss–Jordan elimination, one equation at a time.
//!
//! Only coefficients are eliminated here. An equation's right side, the bytes of its repair symbol
//! and of the known symbols in it, is not touched before a symbol comes out: each row remembers
//! from which repair symbols it was *mixed*, and with what factors, so that a recovered symbol
//! costs one sum over many terms instead of a multiplication for every step of the elimination.
//!
//! Unknown symbols are columns, repair symbols are slots; both are small numbers that are given out
//! again, so that rows are as short as there are losses.

use alloc::vec::Vec;

use crate::gf256::{Kernel, inv};

/// One equation.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The column that only this row has; its coefficient is 1.
    pub(crate) pivot: usize,
    /// Coefficients of the unknown symbols, by column.
    unknowns: Vec<u8>,
    /// Factors of the repair symbols, by slot.
    mix: Vec<u8>,
}

impl Row {
    fn coefficient(&self, column: usize) -> u8 {
        self.unknowns.get(column).copied().unwrap_or(0)
    }

    /// `self += c · other`.
    fn add(&mut self, kernel: &dyn Kernel, other: &Self, c: u8) {
        grow(&mut self.unknowns, other.unknowns.len());
        grow(&mut self.mix, other.mix.len());
        kernel.mad(&mut self.unknowns, &other.unknowns, c);
        kernel.mad(&mut self.mix, &other.mix, c);
    }

    fn scale(&mut self, kernel: &dyn Kernel, c: u8) {
        kernel.scale(&mut self.unknowns, c);
        kernel.scale(&mut self.mix, c);
    }

    /// Factors of the repair symbols, by slot; of those beyond the end they are 0.
    pub(crate) fn factors(&self) -> &[u8] {
        &self.mix
    }

    /// The repair symbols of which the row is a mixture, with their factors.
    pub(crate) fn mixture(&self) -> impl Iterator<Item = (usize, u8)> {
        let factors = self.mix.iter().copied().enumerate();
        factors.filter(|(_, factor)| *factor != 0)
    }
}

fn grow(cells: &mut Vec<u8>, len: usize) {
    if cells.len() < len {
        cells.resize(len, 0);
    }
}

/// The system. Every row's pivot column is zero in all other rows, and no mixture of rows is zero.
#[derive(Clone, Debug)]
pub(crate) struct Equations {
    kernel: &'static dyn Kernel,
    rows: Vec<Row>,
}

impl Equations {
    pub(crate) fn new(kernel: &'static dyn Kernel) -> Self {
        let rows = Vec::new();
        Self { kernel, rows }
    }

    /// How many independent equations there are.
    pub(crate) fn rank(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }

    /// Adds the equation with these coefficients of unknowns, the repair symbol in `slot`.
    ///
    /// Whether it says anything new; if not, nothing changes.
    pub(crate) fn insert(&mut self, unknowns: Vec<u8>, slot: usize) -> bool {
        let mut mix = Vec::new();
        grow(&mut mix, slot + 1);
        mix[slot] = 1;
        let mut row = Row {
            pivot: 0,
            unknowns,
            mix,
        };
        // Pivot columns are zero in other rows, so all factors can be read off at once.
        let used: Vec<(u8, &Row)> = self
            .rows
            .iter()
            .map(|other| (row.coefficient(other.pivot), other))
            .filter(|(factor, _)| *factor != 0)
            .collect();
        grow(
            &mut row.unknowns,
            used.iter()
                .map(|(_, r)| r.unknowns.len())
                .max()
                .unwrap_or(0),
        );
        grow(
            &mut row.mix,
            used.iter().map(|(_, r)| r.mix.len()).max().unwrap_or(0),
        );
        let of = |part: fn(&Row) -> &[u8]| -> Vec<(u8, &[u8])> {
            used.iter()
                .map(|(factor, other)| (*factor, part(other)))
                .collect()
        };
        self.kernel
            .dot(&mut row.unknowns, &of(|other| &other.unknowns));
        self.kernel.dot(&mut row.mix, &of(|other| &other.mix));
        self.install(row)
    }

    /// Gives `row`, whose coefficients in all pivot columns are zero, a pivot of its own, unless
    /// all are zero.
    fn install(&mut self, mut row: Row) -> bool {
        let Some(pivot) = row.unknowns.iter().position(|c| *c != 0) else {
            return false;
        };
        row.pivot = pivot;
        row.scale(self.kernel, inv(row.unknowns[pivot]));
        for other in &mut self.rows {
            let c = other.coefficient(pivot);
            if c != 0 {
                other.add(self.kernel, &row, c);
            }
        }
        self.rows.push(row);
        true
    }

    /// The symbol of `column` became known: it moves to the right side. An equation that is left
    /// without an unknown goes.
    pub(crate) fn know(&mut self, column: usize) {
        let pivoted = self.rows.iter().position(|row| row.pivot == column);
        let orphan = pivoted.map(|index| self.rows.swap_remove(index));
        for row in &mut self.rows {
            if let Some(c) = row.unknowns.get_mut(column) {
                *c = 0;
            }
        }
        if let Some(mut orphan) = orphan {
            orphan.unknowns[column] = 0;
            self.install(orphan);
        }
    }

    /// Gives up the symbol of `column`: no equation shall contain it, which costs one equation if
    /// any does.
    pub(crate) fn forget(&mut self, column: usize) {
        let contains = |row: &Row| row.coefficient(column) != 0;
        let Some(index) = self.rows.iter().position(contains) else {
            return;
        };
        let mut row = self.rows.swap_remove(index);
        row.scale(self.kernel, inv(row.coefficient(column)));
        for other in &mut self.rows {
            let c = other.coefficient(column);
            if c != 0 {
                other.add(self.kernel, &row, c);
            }
        }
    }

    /// Takes out the rows with a single unknown: each says what one symbol is.
    ///
    /// `columns` are those in use.
    pub(crate) fn take_solved(&mut self, columns: impl Iterator<Item = usize>) -> Vec<Row> {
        // A row's unknowns are its pivot and columns that are nobody's pivot.
        let mut free: Vec<usize> = columns.collect();
        if free.len() > self.rows.len() {
            let mut pivots: Vec<usize> = self.rows.iter().map(|row| row.pivot).collect();
            pivots.sort_unstable();
            free.retain(|column| pivots.binary_search(column).is_err());
        } else {
            free.clear();
        }
        let solved = |row: &mut Row| free.iter().all(|column| row.coefficient(*column) == 0);
        self.rows.extract_if(.., solved).collect()
    }

    /// Each row is its own mixture from now on: the first one's repair symbol is in slot 0, and so
    /// on.
    pub(crate) fn renumber(&mut self) {
        for (slot, row) in self.rows.iter_mut().enumerate() {
            row.mix.clear();
            row.mix.resize(slot + 1, 0);
            row.mix[slot] = 1;
        }
    }
}
