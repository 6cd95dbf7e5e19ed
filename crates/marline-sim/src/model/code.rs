//! The streaming code between the sender and the receiver of a model run.

use std::collections::{BTreeMap, VecDeque};

use marline_fec::stream::{Decoder, Encoder, Limits, Repair};

/// What matters of a symbol is whether it is known; its bytes are few.
const LIMITS: Limits = Limits {
    window: Limits::MAX_WINDOW,
    symbol: 8,
};

/// A packet that left for the first time, as its sender sees it.
#[derive(Clone, Copy, Debug)]
struct Left {
    packet: u64,
    known: bool,
}

/// Both ends of the code. Packets are numbered again in the order in which they leave, because they
/// leave paths out of order.
#[derive(Debug)]
pub(super) struct Code {
    encoder: Encoder,
    decoder: Decoder,
    /// From the oldest packet that the sender does not know to have been received.
    left: VecDeque<Left>,
    first: u64,
    unknown: u32,
    /// Code number of each packet of `left`.
    numbers: BTreeMap<u64, u64>,
    /// Packets by code number, for the receiver; as far back as the decoder may recover.
    packets: VecDeque<u64>,
    packets_first: u64,
}

impl Code {
    pub(super) fn new() -> Self {
        Self {
            encoder: Encoder::new(0, LIMITS),
            decoder: Decoder::new(0, LIMITS),
            left: VecDeque::new(),
            first: 0,
            unknown: 0,
            numbers: BTreeMap::new(),
            packets: VecDeque::new(),
            packets_first: 0,
        }
    }

    /// Packets that the sender does not know to be known, and the span of their code numbers.
    pub(super) fn unknown(&self) -> (u32, u32) {
        (self.unknown, self.left.len() as u32)
    }

    /// A packet leaves for the first time; its code number.
    pub(super) fn on_departure(&mut self, packet: u64) -> u64 {
        let number = self.encoder.push(&packet.to_be_bytes());
        let number = number.unwrap_or_else(|error| unreachable!("8 bytes are allowed: {error}"));
        self.left.push_back(Left {
            packet,
            known: false,
        });
        self.unknown += 1;
        self.numbers.insert(packet, number);
        self.packets.push_back(packet);
        while self.packets.len() > 4 * usize::from(Limits::MAX_WINDOW) {
            self.packets.pop_front();
            self.packets_first += 1;
        }
        number
    }

    /// The code number of a packet, while the sender does not know it to be known.
    pub(super) fn number(&self, packet: u64) -> Option<u64> {
        let number = *self.numbers.get(&packet)?;
        let left = self.left.get((number - self.first) as usize)?;
        (!left.known).then_some(number)
    }

    /// The sender learns that a packet is known.
    pub(super) fn on_known(&mut self, packet: u64) {
        if let Some(number) = self.numbers.get(&packet)
            && let Some(left) = self.left.get_mut((number - self.first) as usize)
            && !left.known
        {
            left.known = true;
            self.unknown -= 1;
        }
        while let Some(left) = self.left.front().filter(|left| left.known) {
            self.numbers.remove(&left.packet);
            self.left.pop_front();
            self.first += 1;
        }
        self.encoder.release_before(self.first);
    }

    /// A repair symbol over all that is unknown; `None` if nothing is.
    pub(super) fn repair(&mut self) -> Option<(Repair, Vec<u8>)> {
        let mut payload = Vec::new();
        let repair = self.encoder.repair(&mut payload)?;
        Some((repair, payload))
    }

    /// A source packet arrives: the packets that became known by it.
    pub(super) fn on_source(&mut self, packet: u64, number: u64, known: &mut Vec<u64>) {
        // Refused when too old or too far ahead: it is known all the same.
        let _ = self.decoder.source(number, &packet.to_be_bytes());
        known.push(packet);
        self.collect(known);
    }

    /// A repair symbol arrives.
    pub(super) fn on_repair(&mut self, repair: Repair, payload: &[u8], known: &mut Vec<u64>) {
        // The sender knows that what is before `start` is known, even what this decoder refused:
        // that is given up, and with it all before it. While nothing before `start` is missing,
        // what is known there is kept: repair symbols that others overtook combine it, too.
        while self.decoder.status().first_missing < repair.start.min(self.decoder.status().end) {
            let missing = self.decoder.status().first_missing;
            self.decoder.forget_before(missing + 1);
        }
        let _ = self.decoder.repair(repair, payload);
        self.collect(known);
    }

    fn collect(&mut self, known: &mut Vec<u64>) {
        while let Some(number) = self.decoder.poll_recovered() {
            let place = number.checked_sub(self.packets_first);
            if let Some(packet) = place.and_then(|place| self.packets.get(place as usize)) {
                assert_eq!(
                    self.decoder.symbol(number),
                    Some(&packet.to_be_bytes()[..]),
                    "what is recovered is what was sent"
                );
                known.push(*packet);
            }
        }
    }

    /// Independent equations that the receiver holds about what it misses.
    pub(super) fn rank(&self) -> u32 {
        self.decoder.status().rank as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repair_symbols_that_others_overtook_still_repair() {
        let mut code = Code::new();
        let numbers: Vec<u64> = (0..4).map(|packet| code.on_departure(packet)).collect();
        let (early, early_bytes) = code.repair().expect("four packets");
        code.on_known(0);
        let (late, late_bytes) = code.repair().expect("three packets");
        assert!(early.start < late.start);
        let mut known = Vec::new();
        code.on_source(0, numbers[0], &mut known);
        code.on_source(2, numbers[2], &mut known);
        code.on_repair(late, &late_bytes, &mut known);
        assert_eq!(known, [0, 2], "one equation, two unknown packets");
        code.on_repair(early, &early_bytes, &mut known);
        assert_eq!(known, [0, 2, 1, 3]);
    }

    #[test]
    fn what_the_sender_knows_to_be_known_is_not_waited_for() {
        let mut code = Code::new();
        let numbers: Vec<u64> = (0..4).map(|packet| code.on_departure(packet)).collect();
        let (early, early_bytes) = code.repair().expect("four packets");
        let (later, later_bytes) = code.repair().expect("four packets");
        let mut known = Vec::new();
        code.on_source(2, numbers[2], &mut known);
        code.on_repair(early, &early_bytes, &mut known);
        // As if the decoder had refused packet 0.
        code.on_known(0);
        let (late, late_bytes) = code.repair().expect("three packets");
        assert_eq!((early.start, late.start), (0, 1));
        code.on_repair(late, &late_bytes, &mut known);
        let status = code.decoder.status();
        assert_eq!((status.first_missing, status.missing), (1, 2));
        assert_eq!(code.rank(), 1, "nothing is known of what was given up");
        // It combines what was given up.
        code.on_repair(later, &later_bytes, &mut known);
        assert_eq!(known, [2]);
        code.on_source(1, numbers[1], &mut known);
        assert_eq!(known, [2, 1, 3]);
    }
}
