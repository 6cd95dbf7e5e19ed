//! The receiving side of a coded flow: what is missing, and what comes out of repair symbols.
//!
//! # What is remembered
//!
//! A repair symbol combines what its sender does not know to have arrived, so a decoder needs old
//! symbols until the sender has heard of them, and until what left before that has arrived too: a
//! probe timeout of the slowest path covers the way there and back. It remembers for two, because
//! an acknowledgement may be lost. A flow of 20 symbols a second then holds some ten of them, where
//! the code's window has room for hundreds.
//!
//! Time counts only while symbols arrive: over a path that was dark nobody heard of anything.

use alloc::collections::VecDeque;

use bytes::Bytes;
use marline_base::{Duration, Instant};
use marline_fec::stream::{Decoder, Limits, Refusal, Repair};

use crate::wire::{CodeStatus, FlowId, RepairSymbol};

/// Steps in which the age of symbols is known: with eight, what is remembered is an eighth more
/// than what is needed.
const STEPS: u32 = 8;
/// Probe timeouts of the slowest path for which known symbols are remembered: one for the
/// acknowledgement, one more for its loss.
const REMEMBERED: u32 = 2;

#[derive(Debug)]
pub(crate) struct CodeRecv {
    /// Gone once everything has arrived.
    decoder: Option<Decoder>,
    limits: Limits,
    /// The newest beginning of a repair symbol: the sender combines nothing older any more.
    from: u64,
    ages: Ages,
    repairs: u64,
    recovered: u64,
    /// What was reported last.
    reported: CodeStatus,
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
            ages: Ages::new(),
            repairs: 0,
            recovered: 0,
            reported: CodeStatus::default(),
        }
    }

    /// Something is about to be taken. What arrived long ago, measured by the probe timeout of the
    /// slowest path, is forgotten up to the first symbol that is missing.
    pub(crate) fn on_time(&mut self, now: Instant, probe_timeout: Duration) {
        if let Some(decoder) = &mut self.decoder {
            let status = decoder.status();
            let age = probe_timeout * REMEMBERED;
            let old = self.ages.older(now, age, status.end);
            decoder.forget_before(old.min(status.first_missing));
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

    /// Everything has arrived: only the last status is left to be reported.
    pub(crate) fn close(&mut self) {
        if let Some(decoder) = self.decoder.take() {
            self.reported.next = decoder.status().end;
        }
    }

    /// How things stand.
    pub(crate) fn status(&self, flow: FlowId) -> CodeStatus {
        let status = self.decoder.as_ref().map(Decoder::status);
        CodeStatus {
            flow,
            next: status.map_or(self.reported.next, |s| s.first_missing),
            equations: status.map_or(0, |s| s.rank as u64),
            repairs: self.repairs,
            recovered: self.recovered,
        }
    }

    /// Has the peer not heard of something that it could use?
    pub(crate) fn has_changed(&self) -> bool {
        let status = self.status(self.reported.flow);
        let now = (status.equations, status.repairs, status.recovered);
        now != (
            self.reported.equations,
            self.reported.repairs,
            self.reported.recovered,
        )
    }

    /// The status was written.
    pub(crate) fn on_reported(&mut self, status: CodeStatus) {
        self.reported = status;
    }

    /// Bytes that it holds, at most.
    pub(crate) fn held(&self) -> u64 {
        self.decoder.as_ref().map_or(0, Decoder::held)
    }

    /// Repair symbols that arrived, and symbols that came out of them before they arrived.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.repairs, self.recovered)
    }
}

/// How long ago the newest symbol was which one.
#[derive(Debug)]
struct Ages {
    /// Time in which symbols arrived, without the silences.
    time: Duration,
    last: Instant,
    /// One more than the newest symbol at a time, one for each step.
    ends: VecDeque<(Duration, u64)>,
}

impl Ages {
    fn new() -> Self {
        Self {
            time: Duration::ZERO,
            last: Instant::ZERO,
            ends: VecDeque::new(),
        }
    }

    /// `end` is one more than the newest symbol before what arrives now. The number before which
    /// all symbols are older than `age`.
    fn older(&mut self, now: Instant, age: Duration, end: u64) -> u64 {
        let step = age / STEPS;
        self.time += now.since(self.last).min(step);
        self.last = now;
        let (last, _) = self.ends.back().copied().unwrap_or_default();
        // Round trips that shrink leave marks that are closer than a step of now.
        let room = self.ends.len() < 2 * STEPS as usize;
        if self.ends.is_empty() || room && last + step <= self.time {
            self.ends.push_back((self.time, end));
        }
        let mut older = 0;
        while let Some((at, end)) = self.ends.front().copied()
            && at + age <= self.time
        {
            older = end;
            self.ends.pop_front();
        }
        older
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

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Duration = Duration::from_millis(100);

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn decoder() -> CodeRecv {
        CodeRecv::new(Limits {
            window: 256,
            symbol: 1_200,
        })
    }

    /// Symbols that arrive every 20 ms from `from` on, without those of `lost`.
    fn arrive(code: &mut CodeRecv, from: u64, numbers: core::ops::Range<u64>, lost: &[u64]) {
        for (index, number) in numbers.enumerate() {
            if !lost.contains(&number) {
                code.on_time(at(from + 20 * index as u64), ROUND);
                code.source(number, &[7; 1_000]).expect("one after another");
            }
        }
    }

    fn oldest(code: &CodeRecv) -> u64 {
        let decoder = code.decoder.as_ref().expect("it is open");
        let end = decoder.status().end;
        (0..end)
            .find(|n| decoder.symbol(*n).is_some())
            .unwrap_or(end)
    }

    #[test]
    fn symbols_of_two_probe_timeouts_are_remembered() {
        let mut code = decoder();
        arrive(&mut code, 0, 0..100, &[]);
        // Ten symbols arrive in 200 ms.
        assert!((87..=90).contains(&oldest(&code)), "{}", oldest(&code));
        let empty = decoder().held();
        assert!(code.held() < empty + 40_000, "{} {empty}", code.held());
    }

    #[test]
    fn a_silence_makes_nothing_older() {
        let mut code = decoder();
        arrive(&mut code, 0, 0..100, &[]);
        let before = oldest(&code);
        arrive(&mut code, 60_000, 100..101, &[]);
        assert!(oldest(&code) <= before + 2, "{} {before}", oldest(&code));
    }

    #[test]
    fn nothing_after_a_missing_symbol_is_forgotten() {
        let mut code = decoder();
        arrive(&mut code, 0, 0..100, &[40]);
        assert_eq!(code.status(FlowId(0)).next, 40);
        let decoder = code.decoder.as_ref().expect("it is open");
        assert!((41..100).all(|number| decoder.symbol(number).is_some()));
        // It comes, and what waited for it is forgotten as time goes on.
        arrive(&mut code, 2_000, 40..41, &[]);
        arrive(&mut code, 2_020, 100..120, &[]);
        assert!(oldest(&code) > 100, "{}", oldest(&code));
    }

    #[test]
    fn rates_that_change_leave_few_marks() {
        let mut ages = Ages::new();
        for step in 0..10_000_u64 {
            let round = Duration::from_millis(1 + step % 1_000);
            ages.older(at(step), round, step);
            assert!(ages.ends.len() <= 16, "{}", ages.ends.len());
        }
    }
}
