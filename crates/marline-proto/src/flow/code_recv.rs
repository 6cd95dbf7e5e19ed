//! The receiving side of a coded flow: what is missing, and what comes out of repair symbols.

use bytes::Bytes;
use marline_fec::stream::{Decoder, Limits, Refusal, Repair};

use crate::wire::{CodeStatus, FlowId, RepairSymbol};

/// What a decoder keeps of a symbol besides its bytes, known or not.
const PLACE: u64 = 48;

#[derive(Debug)]
pub(crate) struct CodeRecv {
    /// Gone once everything has arrived.
    decoder: Option<Decoder>,
    limits: Limits,
    /// The newest beginning of a repair symbol: the sender combines nothing older any more.
    from: u64,
    repairs: u64,
    recovered: u64,
    /// What was told last.
    told: CodeStatus,
}

/// The peer's symbols contradict each other, or exceed what was agreed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken(pub(crate) Refusal);

impl CodeRecv {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            decoder: Some(Decoder::new(0, limits)),
            limits,
            from: 0,
            repairs: 0,
            recovered: 0,
            told: CodeStatus::default(),
        }
    }

    /// A source symbol arrived.
    pub(crate) fn source(&mut self, number: u64, content: &[u8]) -> Result<(), Broken> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(());
        };
        let mut taken = decoder.source(number, content);
        if let Err(Refusal::Beyond { end, .. }) = taken {
            decoder.forget_before(self.limits.horizon(end));
            taken = decoder.source(number, content);
        }
        excuse(taken)
    }

    /// A repair symbol arrived.
    pub(crate) fn repair(&mut self, repair: &RepairSymbol<'_>) -> Result<(), Broken> {
        self.repairs += 1;
        let Some(decoder) = &mut self.decoder else {
            return Ok(());
        };
        let combined = Repair {
            start: repair.first,
            count: repair.count,
            key: repair.key,
        };
        // What the sender combines no more it has given up, or knows that it came another way.
        self.from = self.from.max(repair.first);
        while decoder.status().first_missing < self.from.min(decoder.status().end) {
            decoder.forget_before(decoder.status().first_missing + 1);
        }
        let mut taken = decoder.repair(combined, repair.payload);
        if let Err(Refusal::Beyond { end, .. }) = taken {
            decoder.forget_before(self.limits.horizon(end));
            taken = decoder.repair(combined, repair.payload);
        }
        excuse(taken)
    }

    /// The content of the next symbol that came out.
    pub(crate) fn poll(&mut self) -> Option<Bytes> {
        let decoder = self.decoder.as_mut()?;
        let number = decoder.poll_recovered()?;
        self.recovered += 1;
        decoder.symbol(number).map(Bytes::copy_from_slice)
    }

    /// Everything has arrived: only the last status is left to be told.
    pub(crate) fn close(&mut self) {
        if let Some(decoder) = self.decoder.take() {
            self.told.next = decoder.status().end;
        }
    }

    /// How things stand.
    pub(crate) fn status(&self, flow: FlowId) -> CodeStatus {
        let status = self.decoder.as_ref().map(Decoder::status);
        CodeStatus {
            flow,
            next: status.map_or(self.told.next, |s| s.first_missing),
            equations: status.map_or(0, |s| s.rank as u64),
            repairs: self.repairs,
            recovered: self.recovered,
        }
    }

    /// Has the peer not heard of something that it could use?
    pub(crate) fn has_news(&self) -> bool {
        let status = self.status(self.told.flow);
        let now = (status.equations, status.repairs, status.recovered);
        now != (self.told.equations, self.told.repairs, self.told.recovered)
    }

    /// The status was written.
    pub(crate) fn on_told(&mut self, status: CodeStatus) {
        self.told = status;
    }

    /// Bytes that it holds, at most: a place for each symbol that it may remember, those that it
    /// has heard of, and two repair symbols for each equation.
    pub(crate) fn held(&self) -> u64 {
        let Some(decoder) = &self.decoder else {
            return 0;
        };
        let status = decoder.status();
        let places = 2 * u64::from(self.limits.window);
        let symbols = status.end.min(places) + 2 * status.rank as u64;
        places * PLACE + symbols * u64::from(self.limits.symbol)
    }

    /// Repair symbols that arrived, and symbols that came out of them before they arrived.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.repairs, self.recovered)
    }
}

/// What is too old, too far ahead or too much is as good as lost; the rest is not.
fn excuse(taken: Result<bool, Refusal>) -> Result<(), Broken> {
    match taken {
        Ok(_) | Err(Refusal::Stale { .. } | Refusal::Beyond { .. } | Refusal::Full) => Ok(()),
        Err(refusal) => Err(Broken(refusal)),
    }
}

/// What a decoder may forget.
trait Horizon {
    /// The oldest symbol that matters once symbols up to `end` left.
    fn horizon(&self, end: u64) -> u64;
}

impl Horizon for Limits {
    fn horizon(&self, end: u64) -> u64 {
        end.saturating_sub(2 * u64::from(self.window.clamp(1, Self::MAX_WINDOW)))
    }
}
