//! Is a block refused, and with which offer?

use marline_base::Duration;

use super::unit::{LONGEST, QUANTUM};
use super::{Block, Sender, SenderPath};
use crate::sched::Refusal;

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    Jump,
    Leap,
    Flip,
}

/// A block that is offered.
pub(super) struct Offer {
    pub(super) block: Block,
    /// Packets that leave before it: those of blocks that were taken earlier.
    pub(super) ahead: u32,
    /// Bytes of a packet.
    pub(super) symbol: u32,
}

impl Offer {
    /// The block with all that leaves before it. It is on time only if that is there by its
    /// deadline, too.
    pub(super) fn with_ahead(&self) -> Block {
        self.block.after(self.ahead)
    }

    /// Can the block be on time as surely as asked over these paths? If not, what can be.
    pub(super) fn check(
        &self,
        aim: Aim,
        sender: &Sender,
        seen: &[SenderPath<'_>],
    ) -> Result<(), Refusal> {
        let block = self.with_ahead();
        let surest = || sender.jump(&block, seen);
        let late = |failure: f64| Refusal::Late {
            best: 1.0 - failure,
        };
        match aim {
            Aim::Jump => {
                let surest = surest();
                match surest.feasible {
                    true => Ok(()),
                    false => Err(late(surest.failure)),
                }
            }
            Aim::Leap => {
                let fits = sender.capacity(&block, seen);
                let symbols = fits.map_or(0, |(packets, _)| packets.saturating_sub(self.ahead));
                match symbols < self.block.packets {
                    true => Err(Refusal::Large {
                        fits: u64::from(symbols) * u64::from(self.symbol),
                        symbols,
                    }),
                    false => Ok(()),
                }
            }
            Aim::Flip => {
                if sender.deadline(&block, QUANTUM, seen).is_some() {
                    return Ok(());
                }
                let longest = Block {
                    within: LONGEST,
                    ..block
                };
                let least = sender.deadline(&longest, QUANTUM, seen);
                let least = least.map(Duration::from_secs_f64);
                Err(least.map_or_else(|| late(surest().failure), |least| Refusal::Short { least }))
            }
        }
    }
}
