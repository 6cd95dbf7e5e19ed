//! How flows end: each half by itself, and the whole when both have.

use super::Session;
use super::share::Scope;
use crate::event::Event;
use crate::flow::{RecvHalf, SendHalf};
use crate::observe::Record;
use crate::path::Control;
use crate::wire::FlowId;

impl Session {
    /// Ends the sending half: what was written is still delivered, nothing more can be written.
    pub fn finish(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        if flow.reset.is_some() || !flow.send.is_open() {
            return;
        }
        match &mut flow.send {
            SendHalf::Stream(stream) => stream.finish(),
            SendHalf::Packets(packets) => {
                packets.finish();
                self.egress.control.insert(Control::Finish(id));
            }
            SendHalf::Units(units) => {
                units.finish();
                if units.is_finish_due() {
                    self.egress.control.insert(Control::Finish(id));
                }
                for unit in units.take_cancels() {
                    flow.queues.drop_unit(unit);
                    self.egress.control.insert(Control::CancelUnit(id, unit));
                }
                self.waiting.account(flow);
            }
        }
        self.activate(id);
    }

    /// Gives the sending half up: nothing more is sent, the peer reads a reset with this code.
    pub fn reset(&mut self, id: FlowId, code: u64) {
        if self.ending.is_none() {
            self.reset_send(id, code);
        }
    }

    pub(super) fn reset_send(&mut self, id: FlowId, code: u64) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        if flow.reset.is_some() || flow.send.is_done() {
            return;
        }
        self.timers.wake();
        flow.reset = Some(code);
        flow.final_size = flow.send.final_size();
        if let SendHalf::Units(units) = &flow.send {
            flow.counters.units.cancelled += units.open();
        }
        flow.send.abandon();
        if let SendHalf::Packets(packets) = &flow.send {
            flow.counters.expired_messages = packets.expired();
        }
        flow.queues.clear();
        self.memory.account(flow);
        self.waiting.account(flow);
        self.planning.wish(flow);
        flow.lost.clear();
        flow.returned.clear();
        flow.coder = None;
        self.share.note_change(flow);
        // Nothing of it waits before others any more.
        self.planning.widen(Scope::Concerned);
        self.egress.control.insert(Control::ResetFlow(id));
        self.egress.control.remove(&Control::Finish(id));
        self.egress.control.remove(&Control::Forward(id));
        self.retime(id);
        self.reap(id);
    }

    /// The application will read no more: the peer is asked to stop sending.
    pub fn stop(&mut self, id: FlowId, code: u64) {
        let closing = self.ending.is_some();
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        flow.end_read = true;
        // Also of a flow that was given up before: its application keeps nothing any more.
        flow.retained = 0;
        self.memory.account(flow);
        if !closing && flow.stopped.is_none() {
            if !flow.recv.is_complete() {
                flow.stopped = Some(code);
                self.egress.control.insert(Control::StopSending(id));
                self.timers.wake();
            }
            self.discard(id);
        }
        self.reap(id);
    }

    /// Drops what a stopped flow received; it no longer holds the session's credit.
    pub(super) fn discard(&mut self, id: FlowId) {
        if let Some(flow) = self.flows.get_mut(&id) {
            match &mut flow.recv {
                RecvHalf::Stream(recv) => self.credit.on_read(recv.discard()),
                RecvHalf::Packets(recv) => recv.discard(),
                RecvHalf::Units(recv) => {
                    recv.discard();
                    self.credit.on_read(recv.take_freed());
                }
            }
            flow.unread_since = None;
            flow.retained = 0;
            self.memory.account(flow);
        }
        self.renew_credit(id);
    }

    /// Removes the flow if both halves are over and the application has read its end.
    pub(super) fn reap(&mut self, id: FlowId) {
        let Some(flow) = self.flows.get_mut(&id) else {
            return;
        };
        if !flow.end_read || !flow.is_over() || flow.retained > 0 {
            return;
        }
        self.timers.wake();
        flow.queues.clear();
        self.memory.release(flow);
        self.waiting.account(flow);
        if flow.turn.is_some() {
            self.share.remove(flow);
            self.planning.wish(flow);
            self.ageing.on_idle(flow);
        }
        if let Some(coder) = &mut flow.coder {
            coder.leave(&mut self.advance);
        }
        if let Some(flow) = self.flows.remove(&id) {
            let counters = self.counters_of(&flow);
            if self.numbers.on_closed(self.is_ours(id), &counters) {
                self.egress.control.insert(Control::MaxFlows);
            }
            self.bequeath(&flow);
            self.observer.soon(Record::FlowClosed { flow: id });
        }
        self.flow_timers.change(None, &self.flows);
        self.planning.forget(id);
        self.starts.on_read(id);
        self.unwatch(id);
        for control in [
            Control::OpenFlow(id),
            Control::StopSending(id),
            Control::Forward(id),
            Control::MaxFlowData(id),
            Control::CodeStatus(id),
            Control::FlowReport(id),
        ] {
            self.egress.control.remove(&control);
            self.egress.asides.remove(&control);
        }
        self.events.push_back(Event::FlowClosed(id));
    }
}
