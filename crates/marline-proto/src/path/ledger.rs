//! Packets sent on one path: what they held, whether they arrived, which are lost (RFC 9002 §6).
//!
//! Packet numbers belong to the path, so a packet that overtakes on another path never looks like
//! a loss here. Reordering within the path is learnt: a packet declared lost that arrives after all
//! switches the packet threshold off and widens the time threshold (RFC 8985 §6.2). A path that
//! has kept order for long is believed at once: there the first packet after a gap suffices.
//!
//! The widened window lasts until 30 s pass without another spurious loss, and reaches at least as
//! far as the packet that came late. Where packets overtake each other by more than a round trip,
//! steps of an eighth of a round trip, as in RFC 8985, would never get there.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use marline_base::{Duration, Instant};
use smallvec::SmallVec;

use super::rtt::{GRANULARITY, Rtt};
use super::sent::{Fate, Rescued, SentFrame, SentPacket, Settled};
use crate::flow::emission::EmissionKind;
use crate::flow::{Pieces, Symbol};
use crate::law::OVERDUE;
use crate::ranges::RangeSet;
use crate::wire::FlowId;

/// Packets after which an older unacknowledged one is lost (RFC 9002 §6.1.1).
const PACKET_THRESHOLD: u64 = 3;
/// The same on a path that delivered [`ORDERLY`] packets in order since it last did not.
const ORDERLY_THRESHOLD: u64 = 1;
const ORDERLY: u64 = 512;
/// The packet threshold returns when no loss was spurious for this time. A choice, not tuned.
const REORDERING_MEMORY: Duration = Duration::from_secs(30);
/// Most eighths of a round-trip time that reordering may add to the time threshold.
const MAX_EXTRA_EIGHTHS: u32 = 8;
/// However late packets came that were taken for lost, no more round-trip times are waited.
const MAX_LATE: u32 = 4;
/// Lost packets are remembered for this number of round-trip times after it was time to take them
/// for lost, to learn that a loss was spurious; but never for less than [`LEAST_MEMORY`], since
/// where packets overtake each other the round trips that are measured are those of the quick ones.
const SPURIOUS_MEMORY: u32 = 3;
const LEAST_MEMORY: Duration = Duration::from_millis(250);
/// One over the weight of a packet in the mean time that packets take. A choice, not tuned.
const TAKEN_MEMORY: u64 = 16;

/// The peer acknowledged a packet that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NeverSent(pub(crate) u64);

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    packets: VecDeque<SentPacket>,
    /// Number of the first packet in `packets`.
    first: u64,
    /// No packet below it is outstanding.
    scan_from: u64,
    acked: RangeSet,
    largest_acked: Option<u64>,
    in_flight: u64,
    /// Ack-eliciting packets whose fate is open.
    outstanding: u64,
    reordering: Option<Reordering>,
    /// Packets acknowledged since the last one that came after later ones.
    in_order: u64,
    /// When a path that had kept order did so no longer.
    misled: Option<Instant>,
    /// Mean time from sending to acknowledgement of all packets. Round trips are those of packets
    /// that come before all later ones: where packets overtake each other, only the quickest do.
    taken: Duration,
    /// Time threshold of the last look for lost packets.
    patience: Duration,
    loss_time: Option<Instant>,
    /// What open packets that were not rescued carry not for the first time, by packet number.
    repeats: Pieces<FlowId, u64>,
}

#[derive(Clone, Copy, Debug)]
struct Reordering {
    seen: Instant,
    extra_eighths: u32,
    /// Longest time from sending to acknowledgement of a packet that had been taken for lost.
    late: Duration,
}

/// The mean of the times that packets take, after another one. In 64 bits, as it is computed for
/// each packet: no packet is under way for decades.
fn mean(taken: Duration, took: Duration) -> Duration {
    let nanos = |duration: Duration| duration.as_nanos() as u64;
    let sum = nanos(taken)
        .saturating_mul(TAKEN_MEMORY - 1)
        .saturating_add(nanos(took));
    Duration::from_nanos(sum / TAKEN_MEMORY)
}

impl Ledger {
    pub(crate) fn next_number(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Packets remembered.
    pub(crate) fn tracked(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(crate) fn has_outstanding(&self) -> bool {
        self.outstanding > 0
    }

    /// Ack-eliciting packets whose fate is open.
    pub(crate) fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// When the oldest outstanding packet is lost for certain, if later ones were acknowledged.
    pub(crate) fn loss_time(&self) -> Option<Instant> {
        self.loss_time
    }

    #[inline]
    pub(crate) fn on_sent(&mut self, packet: SentPacket) {
        let number = self.next_number();
        for (flow, symbol) in packet.repeats() {
            self.repeats.insert(flow, &symbol, number);
        }
        if packet.eliciting {
            self.in_flight += u64::from(packet.size);
            self.outstanding += 1;
        }
        self.packets.push_back(packet);
        while let Some(front) = self.packets.front()
            && !front.eliciting
            && self.packets.len() > 1
        {
            self.packets.pop_front();
            self.first += 1;
        }
    }

    /// Settles the packets of `ranges` (descending), newest range first.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        ranges: &[RangeInclusive<u64>],
    ) -> Result<Vec<Settled>, NeverSent> {
        let mut settled = Vec::new();
        let next = self.next_number();
        let before = self.largest_acked;
        if let Some(largest) = ranges.first().map(|r| *r.end()) {
            if largest >= next {
                return Err(NeverSent(largest));
            }
            self.largest_acked = self.largest_acked.max(Some(largest));
        }
        let mut in_order = self.in_order;
        for range in ranges {
            let wanted = (*range.start()).max(self.first)..(range.end() + 1).max(self.first);
            let new: SmallVec<[_; 4]> = self.acked.absent_in(wanted).collect();
            for part in new {
                settled.reserve((part.end - part.start) as usize);
                for number in part.clone() {
                    self.settle_acked(now, number, &mut settled);
                }
                in_order = match before {
                    Some(before) if part.start < before => 0,
                    _ => in_order + (part.end - part.start),
                };
                self.acked.insert(part);
            }
        }
        self.in_order = in_order;
        Ok(settled)
    }

    fn settle_acked(&mut self, now: Instant, number: u64, settled: &mut Vec<Settled>) {
        let packet = &mut self.packets[(number - self.first) as usize];
        let spurious = packet.fate == Fate::Lost;
        let sent = packet.sent;
        let took = now.since(packet.sent);
        if packet.eliciting {
            self.taken = match self.taken {
                Duration::ZERO => took,
                taken => mean(taken, took),
            };
        }
        if packet.fate == Fate::Outstanding && packet.eliciting {
            self.in_flight -= u64::from(packet.size);
            self.outstanding -= 1;
            packet.unlist(number, &mut self.repeats);
        }
        packet.fate = Fate::Acked;
        settled.push(Settled {
            number,
            sent: packet.sent,
            size: packet.size,
            eliciting: packet.eliciting,
            rescued: packet.rescued,
            delivery: packet.delivery,
            left: packet.left,
            frames: core::mem::take(&mut packet.frames),
            spurious,
            arrived_us: None,
        });
        if spurious && self.keeps_order() {
            self.misled = Some(now);
        }
        // What was believed too soon does not say that three packets are not enough.
        if spurious && Some(sent) > self.misled {
            let extra = self.reordering.map_or(1, |r| r.extra_eighths + 1);
            let late = self.reordering.map_or(took, |r| r.late.max(took));
            self.reordering = Some(Reordering {
                seen: now,
                extra_eighths: extra.min(MAX_EXTRA_EIGHTHS),
                late,
            });
        }
    }

    /// Has the path kept order long enough that a gap is a loss?
    fn keeps_order(&self) -> bool {
        self.in_order >= ORDERLY
    }

    /// Declares packets lost by packet and time threshold, and sets the timer for the next.
    pub(crate) fn detect_lost(&mut self, now: Instant, rtt: &Rtt) -> Vec<Settled> {
        let mut lost = Vec::new();
        self.loss_time = None;
        let Some(largest) = self.largest_acked else {
            return lost;
        };
        if self
            .reordering
            .is_some_and(|r| now.since(r.seen) > REORDERING_MEMORY)
        {
            self.reordering = None;
        }
        let eighths = 9 + self.reordering.map_or(0, |r| r.extra_eighths);
        let base = rtt.smoothed().max(rtt.latest());
        let late = self.reordering.map_or(Duration::ZERO, |r| r.late);
        let latest = base.max(self.taken) * MAX_LATE;
        let delay = (base * eighths / 8).max(late.min(latest));
        let delay = delay.max(GRANULARITY);
        self.patience = delay;
        let threshold = if self.keeps_order() {
            ORDERLY_THRESHOLD
        } else {
            PACKET_THRESHOLD
        };
        let mut number = self.scan_from.max(self.first);
        let mut scan_from = None;
        while number < largest {
            let index = (number - self.first) as usize;
            let packet = &self.packets[index];
            if packet.fate == Fate::Outstanding {
                let by_count = self.reordering.is_none() && largest - number >= threshold;
                let deadline = packet.sent + delay;
                if by_count || deadline <= now {
                    lost.push(self.declare_lost(number));
                } else {
                    scan_from = scan_from.or(Some(number));
                    if packet.eliciting {
                        self.loss_time = Some(deadline);
                        break;
                    }
                }
            }
            number += 1;
        }
        self.scan_from = scan_from.unwrap_or(number);
        self.forget(now, rtt);
        lost
    }

    fn declare_lost(&mut self, number: u64) -> Settled {
        let packet = &mut self.packets[(number - self.first) as usize];
        packet.fate = Fate::Lost;
        if packet.eliciting {
            self.in_flight -= u64::from(packet.size);
            self.outstanding -= 1;
            packet.unlist(number, &mut self.repeats);
        }
        Settled {
            number,
            sent: packet.sent,
            size: packet.size,
            eliciting: packet.eliciting,
            rescued: packet.rescued,
            delivery: packet.delivery,
            left: packet.left,
            frames: packet.frames.clone(),
            spurious: false,
            arrived_us: None,
        }
    }

    /// Gives up everything in flight: the path is dead or gone.
    pub(crate) fn abandon(&mut self, now: Instant, rtt: &Rtt) -> Vec<Settled> {
        self.loss_time = None;
        let open: Vec<u64> = (self.first..self.next_number())
            .filter(|n| self.packets[(n - self.first) as usize].fate == Fate::Outstanding)
            .collect();
        self.scan_from = self.next_number();
        let lost = open.into_iter().map(|n| self.declare_lost(n)).collect();
        self.forget(now, rtt);
        lost
    }

    /// Drops settled packets at the front; lost ones stay a while, to notice that they arrive.
    fn forget(&mut self, now: Instant, rtt: &Rtt) {
        let memory = self.patience + (rtt.smoothed() * SPURIOUS_MEMORY).max(LEAST_MEMORY);
        while let Some(packet) = self.packets.front() {
            let keep = match packet.fate {
                // A packet that only acknowledges is not acknowledged.
                Fate::Outstanding => packet.eliciting,
                Fate::Lost => now.since(packet.sent) < memory,
                Fate::Acked => false,
            };
            if keep {
                break;
            }
            self.packets.pop_front();
            self.first += 1;
        }
        self.acked.drop_below(self.first);
        self.scan_from = self.scan_from.max(self.first);
    }

    /// When the oldest packet was sent whose fate is open.
    pub(crate) fn oldest_open(&self) -> Option<Instant> {
        let open = self.has_outstanding().then(|| self.open_packets().next());
        open.flatten().map(|p| p.sent)
    }

    /// The oldest packet whose fate is open and that was not rescued.
    pub(crate) fn oldest_unrescued(&self) -> Option<&SentPacket> {
        // Timers ask this for every datagram, and nearly always it is the first that they find.
        if !self.has_outstanding() {
            return None;
        }
        let mut index = self.scan_from.saturating_sub(self.first) as usize;
        while let Some(packet) = self.packets.get(index) {
            if packet.is_open() && !packet.rescued {
                return Some(packet);
            }
            index += 1;
        }
        None
    }

    /// Ack-eliciting packets whose fate is open, oldest first.
    pub(crate) fn open_packets(&self) -> impl Iterator<Item = &SentPacket> {
        self.open_from(0)
    }

    /// Those from number `from` on.
    pub(crate) fn open_from(&self, from: u64) -> impl Iterator<Item = &SentPacket> {
        self.packets
            .iter()
            .skip(self.place(from))
            .filter(|p| p.is_open())
    }

    /// Does `range` hold only packets that were sent, and none that is open come before it?
    pub(crate) fn leaves_no_gap(&self, range: &RangeInclusive<u64>) -> bool {
        let skip = self.place(0);
        let open = self.packets.iter().skip(skip).position(SentPacket::is_open);
        let starts_before = |at| *range.start() <= self.first + (skip + at) as u64;
        *range.end() < self.next_number() && open.is_none_or(starts_before)
    }

    /// How many of the packets that are kept come before number `from` or are settled.
    fn place(&self, from: u64) -> usize {
        self.scan_from.max(from).saturating_sub(self.first) as usize
    }

    /// The first packets after the newest acknowledged one that are still open.
    pub(crate) fn unheard_packets(&self) -> impl Iterator<Item = &SentPacket> {
        let after = self.largest_acked.map_or(0, |largest| largest + 1);
        let skip = after.saturating_sub(self.first) as usize;
        let open = |p: &&SentPacket| p.fate == Fate::Outstanding && p.eliciting;
        self.packets
            .iter()
            .skip(skip)
            .filter(open)
            .take(1 + OVERDUE)
    }

    /// Symbols in the oldest `limit` open packets, from number `from` on, that were not rescued
    /// yet, marking them rescued. Packets that carry anything of a flow that does not want it stay
    /// as they are.
    pub(crate) fn rescue(
        &mut self,
        from: u64,
        limit: usize,
        wants: impl Fn(FlowId) -> bool,
    ) -> Vec<Rescued> {
        let wanted = |p: &SentPacket| {
            p.frames.iter().all(|frame| match frame {
                SentFrame::Data { flow, .. } | SentFrame::Repair { flow, .. } => wants(*flow),
                SentFrame::Forward { .. } | SentFrame::Control(_) => true,
            })
        };
        self.rescue_if(from, limit, |p| !p.rescued, wanted)
    }

    /// The same of packets that are `wanted`, asked of every open one, oldest first.
    pub(crate) fn rescue_where(
        &mut self,
        limit: usize,
        wanted: impl FnMut(&SentPacket) -> bool,
    ) -> Vec<Rescued> {
        self.rescue_if(0, limit, |_| true, wanted)
    }

    /// The same of all open packets, those included that were rescued before.
    pub(crate) fn rescue_all(&mut self, limit: usize) -> Vec<Rescued> {
        self.rescue_if(0, limit, |_| true, |_| true)
    }

    /// Rescues the packets that are `wanted` among the oldest `limit` open ones that `counts`.
    fn rescue_if(
        &mut self,
        from: u64,
        limit: usize,
        counts: impl Fn(&SentPacket) -> bool,
        mut wanted: impl FnMut(&SentPacket) -> bool,
    ) -> Vec<Rescued> {
        let skip = self.place(from);
        let mut found = Vec::new();
        let numbers = self.first + skip as u64..;
        let packets = numbers.zip(self.packets.iter_mut().skip(skip));
        let oldest = packets
            .filter(|(_, p)| p.is_open() && counts(p))
            .take(limit);
        for (number, packet) in oldest.filter(|(_, p)| wanted(p)) {
            packet.unlist(number, &mut self.repeats);
            let again = core::mem::replace(&mut packet.rescued, true);
            let symbols = packet.frames.iter().filter_map(|frame| match *frame {
                SentFrame::Data {
                    flow, symbol, kind, ..
                } => Some((flow, symbol, kind)),
                SentFrame::Repair { .. } | SentFrame::Forward { .. } | SentFrame::Control(_) => {
                    None
                }
            });
            // Repair symbols are not sent again.
            let symbols = symbols.filter(|(_, _, kind)| *kind != EmissionKind::Repair);
            found.extend(symbols.map(|(flow, symbol, kind)| Rescued {
                flow,
                symbol,
                source: kind == EmissionKind::Source,
                again,
            }));
        }
        found
    }

    /// When the oldest packet was sent that holds all of a symbol, whose fate is open and that
    /// was not rescued. `source`: the symbol was lost as it was sent for the first time.
    pub(crate) fn first_sent(
        &self,
        flow: FlowId,
        symbol: &Symbol,
        source: bool,
    ) -> Option<Instant> {
        if source {
            // Only what was not sent for the first time holds the same bytes.
            let numbers = self.repeats.covering(flow, symbol, (0, u64::MAX));
            let oldest = numbers.min()?;
            return Some(self.packets[(oldest - self.first) as usize].sent);
        }
        let holds = |p: &&SentPacket| {
            !p.rescued
                && p.frames.iter().any(|frame| {
                    matches!(frame, SentFrame::Data { flow: f, symbol: s, .. }
                        if *f == flow && s.covers(symbol))
                })
        };
        self.open_packets().find(holds).map(|p| p.sent)
    }
}

#[cfg(test)]
mod tests;
