//! Is a block refused, and with which offer?

use marline_base::Duration;

use super::scheduler::{Aim, QUANTUM};
use super::unit::LONGEST;
use super::{Block, Sender, SenderPath};
use crate::sched::Refusal;

/// Can the block be on time as surely as asked over these paths, whose symbols have so many bytes?
/// If not, what can be.
pub(super) fn check(
    aim: Aim,
    sender: &Sender,
    block: &Block,
    seen: &[SenderPath<'_>],
    symbol: u32,
) -> Result<(), Refusal> {
    let surest = || sender.jump(block, seen);
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
            let fits = sender.capacity(block, seen);
            let symbols = fits.map_or(0, |(packets, _)| packets);
            match symbols < block.packets {
                true => Err(Refusal::Large {
                    fits: u64::from(symbols) * u64::from(symbol),
                    symbols,
                }),
                false => Ok(()),
            }
        }
        Aim::Flip => {
            if sender.deadline(block, QUANTUM, seen).is_some() {
                return Ok(());
            }
            let longest = Block {
                within: LONGEST,
                ..*block
            };
            let least = sender.deadline(&longest, QUANTUM, seen);
            let least = least.map(Duration::from_secs_f64);
            Err(least.map_or_else(|| late(surest().failure), |least| Refusal::Short { least }))
        }
    }
}
