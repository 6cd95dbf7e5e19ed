//! What schedulers see of a sender's units.

use alloc::vec::Vec;

use marline_base::Instant;

use super::BlockTerms;
use super::outgoing::Outgoing;
use super::send::{COMMON_URGENCY, UnitsSend};
use crate::flow::Unsettled;
use crate::flow::shown::{Unit, UnitCode};
use crate::wire::{BlockHeading, FlowKind, ObjectHeading};

/// Units of each sort that a scheduler is shown at once: what one decision may cost is bounded
/// by it. A choice, not tuned.
const SHOWN: usize = 64;

impl UnitsSend {
    /// A block of `len` bytes, heading included, that would be written now.
    pub(crate) fn offered(&self, now: Instant, len: u64, terms: BlockTerms) -> Unit {
        Unit {
            deadline: terms.deadline.map(|deadline| now + deadline),
            reliability: terms.reliability,
            urgency: COMMON_URGENCY,
            code: Some(UnitCode {
                spare: self.limits.repairs.min(u64::from(u16::MAX)) as u32,
                ..UnitCode::default()
            }),
            ..Unit::new(self.count, len)
        }
    }

    fn view(&self, number: u64, unit: &Outgoing, max: u32) -> Unit {
        let (symbol, symbols) = unit.code();
        let spare = match unit.has_begun() {
            true => unit.spare(self.limits.repairs, max),
            false => self.limits.repairs.min(u64::from(u16::MAX)) as u32,
        };
        Unit {
            id: number,
            len: unit.uncut(),
            deadline: unit.deadline,
            reliability: unit.reliability,
            urgency: unit.place.urgency,
            code: Some(UnitCode {
                symbol: symbol as u32,
                symbols: symbols as u32,
                acked: unit.symbols_acked(),
                open: unit.open(),
                repairs: u32::from(unit.repairs.emitted),
                spare,
            }),
        }
    }

    /// The unit whose symbol is next.
    pub(crate) fn next_unit(&self, credit: u64) -> Option<Unit> {
        let number = self.next(credit)?;
        Some(self.view(number, self.units.get(&number)?, u32::MAX))
    }

    /// The units under way, the next one first.
    pub(crate) fn views(&self, credit: u64) -> Vec<Unit> {
        let next = self.next(credit);
        let rest = self.order.iter().filter(|number| Some(*number) != next);
        let waiting = next.into_iter().chain(rest.take(SHOWN - 1));
        let emitted = self.emitted.iter().copied().take(SHOWN);
        waiting
            .chain(emitted)
            .filter_map(|number| Some(self.view(number, self.units.get(&number)?, u32::MAX)))
            .collect()
    }

    /// What the application wrote in units that the peer is not known to have and that are not
    /// given up, oldest first, with the number of the block or object.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = Unsettled> {
        let open = self.units.values();
        let open = open.filter(|unit| !unit.is_over() && !unit.has_enough());
        open.filter_map(|unit| {
            let data = unit.data();
            let heading = match self.kind {
                FlowKind::Blocks => BlockHeading::decode(data).ok()?.1,
                _ => ObjectHeading::decode(data).ok()?.1,
            };
            Some(Unsettled {
                number: unit.tag,
                data: data.slice(heading..),
                since: unit.written,
            })
        })
    }

    /// Blocks or objects that were given up here and of whose fate the peer has said nothing yet.
    pub(crate) fn given_up(&self) -> u64 {
        let count = match self.kind {
            FlowKind::Blocks => self.units.values().filter(|unit| unit.is_over()).count(),
            _ => self.objects.ended(),
        };
        count as u64
    }

    /// Blocks or objects whose fate is not known.
    pub(crate) fn open(&self) -> u64 {
        let count = match self.kind {
            FlowKind::Blocks => self.units.len(),
            _ => self.objects.len(),
        };
        count as u64
    }

    /// Bytes that wait to be cut and may be.
    pub(crate) fn unsent(&self) -> u64 {
        self.unsent
    }

    /// Was a unit emitted whole that the peer is not known to have?
    pub(crate) fn has_emitted(&self) -> bool {
        !self.emitted.is_empty()
    }
}
