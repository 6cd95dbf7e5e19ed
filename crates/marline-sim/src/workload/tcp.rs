//! An end-to-end TCP connection inside the session, as users of a tunnel have it: its segments and
//! acknowledgements are messages of one packets flow, and what the flow refuses is lost. The sender
//! may stand some way beyond the tunnel's end.

use std::collections::VecDeque;

use bytes::Bytes;
use marline_base::{Duration, Instant};
use marline_proto::flow::Chunk;
use marline_proto::wire::{FlowId, FlowKind};
use marline_proto::{Event, OpenError};

use super::{Context, Pipe, Workload};
use crate::engine::End;
use crate::measure::Measure;
use crate::scenario::WorkloadPlan;
use crate::tcp::{Ack, Segment, TcpConfig, TcpConfigError, TcpReceiver, TcpSender};

/// Payload of a segment (bytes): with its headers it fills a datagram of a path.
const MSS: u32 = 1_100;

#[derive(Debug)]
pub(super) struct Tcp {
    plan: WorkloadPlan,
    config: TcpConfig,
    ends: Option<Ends>,
    /// From the sender to its end of the tunnel.
    beyond: Duration,
    delivered: u64,
    over: bool,
}

#[derive(Debug)]
struct Ends {
    flow: FlowId,
    sender: TcpSender,
    receiver: TcpReceiver,
    /// On their way from the sender to the tunnel, and when they get there.
    towards: VecDeque<(Instant, Segment)>,
    /// On their way from the tunnel to the sender.
    back: VecDeque<(Instant, Ack)>,
}

/// The first that has arrived.
fn arrived<T>(way: &mut VecDeque<(Instant, T)>, now: Instant) -> Option<T> {
    let (at, _) = way.front()?;
    let is_here = *at <= now;
    let first = is_here.then(|| way.pop_front())??;
    Some(first.1)
}

impl Ends {
    fn acknowledge(&mut self, cx: &mut Context<'_>, end: End) {
        while let Some(ack) = self.receiver.poll_ack(cx.now()) {
            send(cx, end, self.flow, |out| ack.encode(out));
        }
    }
}

/// Hands a message to the session; true if it was refused. A full flow drops, as a network
/// interface does: TCP finds out.
fn send(cx: &mut Context<'_>, end: End, flow: FlowId, encode: impl FnOnce(&mut Vec<u8>)) -> bool {
    let mut message = Vec::with_capacity(MSS as usize + 100);
    encode(&mut message);
    let now = cx.now();
    let session = cx.session(end);
    session.send(now, flow, Bytes::from(message)).is_err()
}

impl Tcp {
    /// # Errors
    /// On a stream, which would hide losses, or without a controller of that name.
    pub(super) fn new(
        plan: &WorkloadPlan,
        congestion: &str,
        bytes: Option<u64>,
        beyond: Duration,
    ) -> Result<Self, String> {
        if plan.flow.kind != FlowKind::Packets {
            return Err("TCP needs a packets flow".to_owned());
        }
        let config = TcpConfig {
            mss: MSS,
            limit: bytes,
            ..TcpConfig::new(congestion)
        };
        let check = TcpSender::new(&config, Instant::ZERO, 0).map(drop);
        check.map_err(|error: TcpConfigError| error.to_string())?;
        Ok(Self {
            plan: plan.clone(),
            config,
            ends: None,
            beyond,
            delivered: 0,
            over: false,
        })
    }

    /// Sends what both ends want to send, and asks to be woken for their timers.
    fn act(&mut self, cx: &mut Context<'_>) {
        let Some(ends) = &mut self.ends else { return };
        let (now, from) = (cx.now(), self.plan.from);
        while let Some(ack) = arrived(&mut ends.back, now) {
            ends.sender.handle_ack(now, &ack);
        }
        ends.sender.handle_timeout(now);
        ends.receiver.handle_timeout(now);
        while let Some(segment) = ends.sender.poll_transmit(now).filter(|_| !self.over) {
            ends.towards.push_back((now + self.beyond, segment));
        }
        while let Some(segment) = arrived(&mut ends.towards, now) {
            let refused = send(cx, from, ends.flow, |out| segment.encode(out));
            cx.meter.trial(Measure::Refused, now, refused);
        }
        ends.acknowledge(cx, from.other());
        let timers = [
            ends.sender.poll_timeout(),
            ends.receiver.poll_timeout(),
            ends.towards.front().map(|(at, _)| *at),
            ends.back.front().map(|(at, _)| *at),
        ];
        if let Some(at) = timers.into_iter().flatten().min()
            && !self.over
        {
            cx.wake_at(at);
        }
    }
}

impl Workload for Tcp {
    fn start(&mut self, cx: &mut Context<'_>) -> Result<(), OpenError> {
        let flow = Pipe::open(cx, self.plan.from, &self.plan.flow)?.flow();
        let (now, seed) = (cx.now(), cx.rng.next_u64());
        let sender = TcpSender::new(&self.config, now, seed);
        let receiver = TcpReceiver::new(&self.config);
        if let (Ok(sender), Ok(receiver)) = (sender, receiver) {
            self.ends = Some(Ends {
                flow,
                sender,
                receiver,
                towards: VecDeque::new(),
                back: VecDeque::new(),
            });
        }
        self.act(cx);
        Ok(())
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        self.act(cx);
    }

    fn on_event(&mut self, cx: &mut Context<'_>, end: End, event: &Event) {
        let (Some(ends), Event::FlowReadable(flow)) = (&mut self.ends, event) else {
            return;
        };
        let now = cx.now();
        while let Chunk::Data(message) = cx.session(end).receive(now, *flow) {
            if end == self.plan.from {
                if let Ok(ack) = Ack::decode(&message) {
                    ends.back.push_back((now + self.beyond, ack));
                }
            } else if let Ok(segment) = Segment::decode(&message) {
                cx.meter.delay(Measure::PacketDelay, segment.stamp, now);
                ends.receiver.handle_segment(now, &segment);
                // Before the next one, so that each that is out of order is answered.
                ends.acknowledge(cx, end);
            }
        }
        let delivered = ends.receiver.delivered();
        cx.meter.delivered(now, delivered - self.delivered);
        self.delivered = delivered;
        self.act(cx);
    }

    fn stop(&mut self, _: &mut Context<'_>) {
        self.over = true;
    }

    fn finish(&mut self, _: &mut Context<'_>) {}

    fn flows(&self) -> Vec<(FlowId, End)> {
        let flow = self.ends.iter().map(|ends| ends.flow);
        let from = self.plan.from;
        flow.flat_map(|f| [(f, from), (f, from.other())]).collect()
    }
}
