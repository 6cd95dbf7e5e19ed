//! What the sender misses, and sends again unless repair symbols replace it.

use marline_proto::path::EmissionKind;

use super::super::backlog::Queued;
use super::{ModelRun, PathRun};

impl ModelRun<'_> {
    /// Does the sender know that the receiver knows the lost packet, or will know it?
    pub(super) fn is_replaced(&mut self, number: u64) -> bool {
        if let Some(block) = self.model.block {
            let length = u64::from(block.source + block.coded);
            let lost = self.blocks.entry(number / length).or_default();
            *lost += 1;
            return *lost <= block.coded;
        }
        match &self.code {
            Some(code) => code.number(number).is_none(),
            // A copy may have arrived.
            None => self.receiver.knows(number),
        }
    }

    /// Repair symbols that still have to arrive before the receiver can recover all that the
    /// sender misses. Of what is on its way, source and repair symbols, a share will be lost, too.
    pub(super) fn missing(&self) -> u32 {
        let (mut will_arrive, mut will_be_lost) = (0.0, 0.0);
        let packet = u64::from(self.model.packet);
        for path in &self.paths {
            let waiting = |kind| path.queue.iter().filter(|q| q.kind == kind).count() as f64;
            will_arrive += waiting(EmissionKind::Repair) * (1.0 - path.loss);
            let flying = (path.unheard / packet) as f64 - f64::from(path.repairs);
            will_arrive += f64::from(path.repairs) * (1.0 - path.loss);
            will_be_lost += flying * path.loss;
        }
        let lacking = self.missed.len() as f64 + will_be_lost - f64::from(self.rank) - will_arrive;
        (lacking.ceil().max(0.0) as u32).min(self.missed.len() as u32)
    }

    /// Sends again what is lost and not replaced by repair symbols, where it arrives first.
    pub(super) fn resend(&mut self) {
        while let Some(&number) = self.missed.first() {
            if self.code.is_some() && self.missing() == 0 {
                return;
            }
            self.missed.remove(&number);
            let arrival = |path: &PathRun| {
                let again = path.queue.iter();
                let again = again.take_while(|q| q.kind == EmissionKind::Retransmission);
                let ahead = again.count() as u64 * u64::from(self.model.packet);
                path.delay + path.rate.time_for(ahead + path.link.queued_bytes(self.now))
            };
            let first = self.paths.iter().enumerate();
            let Some((index, _)) = first.min_by_key(|(_, path)| arrival(path)) else {
                return;
            };
            let queue = &mut self.paths[index].queue;
            let place = queue
                .iter()
                .take_while(|q| q.kind == EmissionKind::Retransmission)
                .count();
            queue.insert(
                place,
                Queued {
                    symbol: self.backlog.symbol(number),
                    kind: EmissionKind::Retransmission,
                },
            );
        }
    }
}
