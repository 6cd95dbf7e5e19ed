//! Control frames that must arrive: what is due is remembered by name and written from the state
//! of the moment when it is sent, so that a retransmission never carries what is outdated.

use marline_base::Duration;

use super::Session;
use crate::flow::{RecvHalf, SendHalf};
use crate::path::Control;
use crate::wire::{
    Availability, Finish, FlowId, Forward, Frame, MAX_QUIET_MS, MaxData, MaxFlowData, MaxFlows,
    OpenFlow, PathAbandon, PathCost, PathQuiet, PathStatus, ResetFlow, StopSending, UnitFate,
    Verdict, close_code, varint,
};

impl Session {
    /// The frame that says how things stand now; `None` if there is nothing left to say.
    pub(super) fn control_frame(&self, control: Control) -> Option<Frame<'_>> {
        Some(match control {
            Control::OpenFlow(id) => Frame::OpenFlow(self.open_frame(id)?),
            Control::ResetFlow(flow) => {
                let state = self.flows.get(&flow)?;
                Frame::ResetFlow(ResetFlow {
                    flow,
                    code: state.reset?,
                    final_size: state.final_size,
                })
            }
            Control::StopSending(flow) => Frame::StopSending(StopSending {
                flow,
                code: self.flows.get(&flow)?.stopped?,
            }),
            Control::Forward(flow) => match &self.flows.get(&flow)?.send {
                SendHalf::Packets(packets) => Frame::Forward(Forward {
                    flow,
                    sequence: packets.base(),
                }),
                SendHalf::Stream(_) | SendHalf::Units(_) => return None,
            },
            Control::CancelUnit(flow, unit) => match &self.flows.get(&flow)?.send {
                SendHalf::Units(units) => Frame::UnitCancel(units.cancel_frame(flow, unit)?),
                _ => return None,
            },
            Control::UnitFate(flow, unit) | Control::UnitShort(flow, unit) => {
                let RecvHalf::Units(units) = &self.flows.get(&flow)?.recv else {
                    return None;
                };
                let short = units.is_short(unit).then_some(Verdict::Short);
                let verdict = match control {
                    Control::UnitShort(..) => short?,
                    _ => units.verdict(unit)?,
                };
                Frame::UnitFate(UnitFate {
                    flow,
                    unit,
                    verdict,
                })
            }
            Control::Finish(flow) => match &self.flows.get(&flow)?.send {
                SendHalf::Packets(packets) => Frame::Finish(Finish {
                    flow,
                    sequence: packets.count(),
                }),
                SendHalf::Units(units) => Frame::Finish(Finish {
                    flow,
                    sequence: units.count(),
                }),
                SendHalf::Stream(_) => return None,
            },
            Control::FlowReport(flow) => match &self.flows.get(&flow)?.recv {
                RecvHalf::Packets(packets) => Frame::FlowReport(packets.report(flow)),
                RecvHalf::Stream(_) | RecvHalf::Units(_) => return None,
            },
            Control::MaxData => Frame::MaxData(MaxData {
                max: self.credit.granted(),
            }),
            Control::MaxFlowData(flow) if !self.flows.contains_key(&flow) => {
                let granted = self.starts.granted(flow.index());
                let max = granted.filter(|_| !self.is_ours(flow))?;
                Frame::MaxFlowData(MaxFlowData { flow, max })
            }
            Control::MaxFlowData(flow) => match &self.flows.get(&flow)?.recv {
                RecvHalf::Stream(stream) => Frame::MaxFlowData(MaxFlowData {
                    flow,
                    max: stream.credit(),
                }),
                RecvHalf::Units(units) => Frame::MaxFlowData(MaxFlowData {
                    flow,
                    max: units.credit(),
                }),
                RecvHalf::Packets(_) => return None,
            },
            Control::MaxFlows => Frame::MaxFlows(MaxFlows {
                max: self.numbers.peer_may_open(),
            }),
            Control::PathStatus(id) => {
                let path = self.paths.iter().find(|p| p.id == id)?;
                Frame::PathStatus(PathStatus {
                    path: id,
                    sequence: path.status_sent,
                    status: match path.standby_local {
                        true => Availability::Standby,
                        false => Availability::Available,
                    },
                })
            }
            Control::PathCost(id) => {
                let path = self.paths.iter().find(|p| p.id == id)?;
                Frame::PathCost(PathCost {
                    path: id,
                    sequence: path.cost.sent,
                    cost: u64::from(path.cost.local),
                })
            }
            Control::PathQuiet(id) => {
                let path = self.paths.iter().find(|p| p.id == id)?;
                let wanted = path.quiet.wanted(self.timers.patience.quiet).as_millis();
                Frame::PathQuiet(PathQuiet {
                    path: id,
                    sequence: path.quiet.sent,
                    quiet_ms: wanted.min(u128::from(MAX_QUIET_MS)) as u64,
                })
            }
            Control::CodeStatus(id) => {
                Frame::CodeStatus(self.flows.get(&id)?.decoder.as_ref()?.status(id))
            }
            Control::PathAbandon(path) => Frame::PathAbandon(PathAbandon {
                path,
                code: close_code::NONE,
            }),
        })
    }

    pub(super) fn open_frame(&self, id: FlowId) -> Option<OpenFlow<'_>> {
        let flow = self.flows.get(&id)?;
        Some(OpenFlow {
            flow: id,
            kind: flow.kind,
            order: flow.order,
            priority: flow.priority,
            lifetime_us: flow.lifetime.map_or(0, lifetime_us),
            target: &flow.target,
        })
    }
}

/// A lifetime as the wire has it: at least 1 µs (0 would be for ever), at most what a varint takes.
fn lifetime_us(lifetime: Duration) -> u64 {
    lifetime.as_micros().clamp(1, u128::from(varint::MAX)) as u64
}
