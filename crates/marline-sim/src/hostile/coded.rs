//! What a hostile peer sends of coded flows.

use marline_proto::wire::{self, frame_type as ty, varint};

use super::{FLOW_WINDOW, Tape};

impl Tape<'_> {
    /// SYMBOL, REPAIR or CODE_STATUS, nearly always well-formed.
    pub(super) fn coded_frame(&mut self, out: &mut Vec<u8>) {
        match self.byte() & 3 {
            0 | 1 => self.symbol(out),
            2 if self.misbehaves() => self.repair(out),
            _ => {
                let said = u64::from(self.misbehaves()) * self.number(300);
                put(out, &[ty::CODE_STATUS, self.flow(None), said, 0, said, 0]);
            }
        }
    }

    /// What a number stands for never changes, unless the peer misbehaves.
    fn symbol(&mut self, out: &mut Vec<u8>) {
        let number = u64::from(self.byte());
        let offset = match self.misbehaves() {
            true => self.number(FLOW_WINDOW).min(varint::MAX - 64),
            false => number * 60,
        };
        let mut content = Vec::new();
        put(&mut content, &[ty::STREAM, offset]);
        content.resize(content.len() + 40, 0xaa);
        let len = content.len() as u64;
        put(out, &[ty::SYMBOL, self.flow(Some(0)), number, len]);
        out.extend(content);
    }

    fn repair(&mut self, out: &mut Vec<u8>) {
        let (flow, first) = (self.flow(Some(0)), self.number(300));
        let count = self.number(256).clamp(1, wire::MAX_CODE_WINDOW);
        let first = first.min(varint::MAX - count);
        let (key, len) = (u64::from(self.byte()), 2 + u64::from(self.byte() % 64));
        put(out, &[ty::REPAIR, flow, first, count, key, len]);
        out.extend((0..len).map(|_| self.byte()));
    }
}

fn put(out: &mut Vec<u8>, fields: &[u64]) {
    fields.iter().for_each(|f| varint::encode(*f, out));
}
