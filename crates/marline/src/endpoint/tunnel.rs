//! How the proxies use flows: the traits of [`crate::proxy`] for sessions over real carriers.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use marline_base::Rate;
use marline_proto::FlowOptions;
use marline_proto::sched::Choice;
use marline_proto::stats::FlowCounters;
use marline_proto::wire::FlowKind;

use super::{Accepted, Carried, Handle, ObjectStream, Packets, TargetNews};
use crate::identity::PublicKey;
use crate::live::LiveName;
use crate::proxy::{self, Accept, Incoming, IncomingFlow, OpenOptions, PacketFlow};

impl PacketFlow for Packets {
    async fn send(&self, message: Bytes) -> io::Result<()> {
        Packets::send(self, message).await
    }

    async fn send_waited(&self, message: Bytes, waited: Duration) -> io::Result<()> {
        Packets::send_waited(self, message, waited).await
    }

    async fn recv(&self) -> Option<Bytes> {
        Packets::recv(self).await
    }

    fn set_queue(&self, queue: Option<u64>) {
        Packets::set_queue(self, queue);
    }

    fn set_scheduler(&self, scheduler: Choice) {
        Packets::set_scheduler(self, scheduler);
    }

    fn set_target(&self, target: Option<Rate>) -> bool {
        Packets::set_target(self, target);
        true
    }

    async fn target_news(&self) -> Option<TargetNews> {
        Packets::target_news(self).await
    }

    fn counters(&self) -> Option<FlowCounters> {
        Packets::counters(self)
    }

    fn is_session_over(&self) -> bool {
        Packets::is_session_over(self)
    }

    fn unsettled(&self) -> Vec<(Bytes, Duration)> {
        Packets::unsettled(self)
    }
}

/// What a session is asked for a proxy's flow.
pub(super) fn flow_options(kind: FlowKind, options: OpenOptions) -> FlowOptions {
    FlowOptions {
        kind,
        ordered: options.ordered || kind == FlowKind::Stream,
        priority: options.priority,
        lifetime: options.lifetime,
        queue: options.queue,
        scheduler: options.scheduler,
        target: options.target,
    }
}

/// A session's refusal in the proxies' words.
pub(super) fn refused(handle: &Handle, error: &marline_proto::OpenError) -> proxy::OpenError {
    match error {
        marline_proto::OpenError::TooManyFlows => proxy::OpenError::TooManyFlows,
        marline_proto::OpenError::Closing => {
            let why = handle.is_closed().map(|closed| closed.0.to_string());
            proxy::OpenError::NoSession(why.unwrap_or_else(|| "it is about to end".into()))
        }
        error => proxy::OpenError::Refused(error.to_string()),
    }
}

/// The accepting end of a session, for the server's proxy.
#[derive(Debug)]
pub struct Incomings {
    handle: Handle,
    peer: PublicKey,
}

impl Incomings {
    /// Of this session with `peer`; nobody else should accept its flows.
    pub fn new(handle: Handle, peer: PublicKey) -> Self {
        Self { handle, peer }
    }

    /// The session.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Accept for Incomings {
    type Stream = Carried;
    type Packets = Packets;

    fn peer(&self) -> Option<PublicKey> {
        Some(self.peer)
    }

    fn session(&self) -> Option<Handle> {
        Some(self.handle.clone())
    }

    async fn accept(&mut self) -> Option<Incoming<Carried, Packets>> {
        let (info, flow) = self.handle.accept().await.ok()?;
        let flow = match flow {
            Accepted::Stream(stream) => IncomingFlow::Stream(Carried::Stream(stream)),
            Accepted::Packets(packets) => IncomingFlow::Packets(packets),
            // The objects of a live entry are datagrams; all others are a connection's bytes.
            Accepted::Objects(objects) if LiveName::decode(&info.target).is_some() => {
                IncomingFlow::Objects(objects)
            }
            Accepted::Objects(objects) => {
                let stream = ObjectStream::new(objects);
                IncomingFlow::Stream(Carried::Objects(Box::new(stream)))
            }
            Accepted::Blocks(blocks) => IncomingFlow::Blocks(blocks),
        };
        let target = info.target;
        Some(Incoming { target, flow })
    }
}

impl Drop for Incomings {
    fn drop(&mut self) {
        self.handle.refuse_flows();
    }
}
