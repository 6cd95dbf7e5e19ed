//! What is remembered of a packet from when it left until its fate is known.

use marline_base::{Duration, Instant};
use smallvec::SmallVec;

use super::control::Control;
use super::delivery::DeliverySnapshot;
use crate::flow::emission::EmissionKind;
use crate::flow::{Pieces, Symbol};
use crate::law::Left;
use crate::wire::FlowId;

/// One frame that a packet carried and that has to be acted on when its fate is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SentFrame {
    /// `fin`: the symbol was sent as the end of its stream. `kind`: no two symbols that were sent
    /// as sources hold the same byte. A repair symbol is one of a unit.
    Data {
        flow: FlowId,
        symbol: Symbol,
        fin: bool,
        kind: EmissionKind,
    },
    /// A repair symbol, as the flow's scheduler knows it.
    Repair {
        flow: FlowId,
        symbol: Symbol,
    },
    /// FORWARD with what it said: only its newest word settles the matter.
    Forward {
        flow: FlowId,
        sequence: u64,
    },
    Control(Control),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Outstanding,
    Acked,
    Lost,
}

#[derive(Debug)]
pub(crate) struct SentPacket {
    pub(crate) sent: Instant,
    pub(crate) size: u32,
    /// Counts towards bytes in flight, is acknowledged and can be lost.
    pub(crate) eliciting: bool,
    pub(crate) fate: Fate,
    /// Its symbols were sent again elsewhere because the path came under suspicion.
    pub(crate) rescued: bool,
    pub(crate) delivery: DeliverySnapshot,
    /// What the path's law was when it left.
    pub(crate) left: Left,
    /// How long its acknowledgement would take at most, as far as was known when it left.
    pub(crate) patience: Duration,
    pub(crate) frames: SmallVec<[SentFrame; 1]>,
}

impl SentPacket {
    pub(crate) fn new(
        sent: Instant,
        size: u32,
        eliciting: bool,
        delivery: DeliverySnapshot,
        frames: SmallVec<[SentFrame; 1]>,
    ) -> Self {
        Self {
            sent,
            size,
            eliciting,
            fate: Fate::Outstanding,
            rescued: false,
            delivery,
            left: Left::default(),
            patience: Duration::ZERO,
            frames,
        }
    }

    /// Does the peer owe an acknowledgement?
    pub(super) fn is_open(&self) -> bool {
        self.fate == Fate::Outstanding && self.eliciting
    }

    /// What it carries not for the first time.
    pub(super) fn repeats(&self) -> impl Iterator<Item = (FlowId, Symbol)> + '_ {
        self.frames.iter().filter_map(|frame| match frame {
            SentFrame::Data {
                flow,
                symbol,
                kind: EmissionKind::Copy | EmissionKind::Retransmission,
                ..
            } => Some((*flow, *symbol)),
            _ => None,
        })
    }

    /// The packet, which was open, is not to be counted on any more.
    pub(super) fn unlist(&self, number: u64, repeats: &mut Pieces<FlowId, u64>) {
        if !self.rescued {
            for (flow, symbol) in self.repeats() {
                repeats.remove(flow, &symbol, number);
            }
        }
    }
}

/// A packet whose fate became known.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) number: u64,
    pub(crate) sent: Instant,
    pub(crate) size: u32,
    pub(crate) eliciting: bool,
    pub(crate) rescued: bool,
    pub(crate) delivery: DeliverySnapshot,
    pub(crate) left: Left,
    pub(crate) frames: SmallVec<[SentFrame; 1]>,
    /// It had been declared lost and arrived after all.
    pub(crate) spurious: bool,
    /// When it arrived by the peer's clock (microseconds), if the acknowledgement says so.
    pub(crate) arrived_us: Option<u64>,
}

/// A symbol of a packet that is not waited for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rescued {
    pub(crate) flow: FlowId,
    pub(crate) symbol: Symbol,
    /// It was sent for the first time.
    pub(crate) source: bool,
    /// The packet had been rescued before.
    pub(crate) again: bool,
}
