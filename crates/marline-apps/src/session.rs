//! Sessions over real carriers as the programs' side uses them: the traits of [`crate::proxy`].

use std::io;
use std::time::Duration;

use bytes::Bytes;
use marline_base::Rate;
use marline_proto::FlowOptions;
use marline_proto::sched::Choice;
use marline_proto::stats::FlowCounters;
use marline_proto::wire::FlowKind;
use tokio::time::sleep;

use marline::endpoint::{
    Accepted, Blocks, Client, GivenUp, Incomings, NoSession, Objects, Packets, RateReport, Server,
    Session,
};
use marline::identity::PublicKey;

use crate::carried::Carried;
use crate::live::LiveName;
use crate::object_stream::ObjectStream;
use crate::proxy::{self, Accept, Incoming, IncomingFlow, Listen, OpenError, PacketFlow, Tunnel};
use crate::tun::room;

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

    fn set_needed_rate(&self, target: Option<Rate>) -> bool {
        Packets::set_needed_rate(self, target);
        true
    }

    async fn rate_report(&self) -> Option<RateReport> {
        Packets::rate_report(self).await
    }

    fn counters(&self) -> Option<FlowCounters> {
        Packets::counters(self)
    }

    fn given_up(&self) -> Option<GivenUp> {
        Packets::given_up(self)
    }

    fn is_session_over(&self) -> bool {
        Packets::is_session_over(self)
    }

    fn unsettled(&self) -> Vec<(Bytes, Duration)> {
        Packets::unsettled(self)
    }
}

/// A session's refusal in the proxies' words.
fn refused(handle: &Session, error: &marline_proto::OpenError) -> proxy::OpenError {
    match error {
        marline_proto::OpenError::TooManyFlows => proxy::OpenError::TooManyFlows,
        marline_proto::OpenError::Closing => {
            let why = handle.is_closed().map(|closed| closed.0.to_string());
            proxy::OpenError::NoSession(why.unwrap_or_else(|| "it is about to end".into()))
        }
        error => proxy::OpenError::Refused(error.to_string()),
    }
}

impl Accept for Incomings {
    type Stream = Carried;
    type Packets = Packets;

    fn peer(&self) -> Option<PublicKey> {
        Some(Incomings::peer(self))
    }

    fn session(&self) -> Option<Session> {
        Some(self.handle().clone())
    }

    async fn next_flow(&mut self) -> Option<Incoming<Carried, Packets>> {
        let (info, flow) = Incomings::accept(self).await.ok()?;
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

/// The session of the moment.
fn current(client: &Client) -> Result<Session, OpenError> {
    client
        .current()
        .map_err(|NoSession(why)| OpenError::NoSession(why))
}

impl Tunnel for Client {
    type Stream = Carried;
    type Packets = Packets;

    async fn session_is_there(&self) {
        Client::session_is_there(self).await;
    }

    fn room(&self) -> Option<usize> {
        room(&self.current().ok()?)
    }

    async fn room_is_found(&self) {
        /// A search tries the next size after a round trip, or after three losses of one (quinn's
        /// search): a size that stays for this time, longer than most round trips, is the last.
        const STILL: Duration = Duration::from_millis(500);
        /// Such times that are waited for at most: four seconds, beyond which an application would
        /// give up. From 1200 to 1472 bytes a search has five steps.
        const MOST: u32 = 8;
        let mut room = self.room();
        for _ in 0..MOST {
            sleep(STILL).await;
            let before = std::mem::replace(&mut room, self.room());
            if before == room {
                break;
            }
        }
    }

    async fn open_stream(&self, options: FlowOptions) -> Result<Carried, OpenError> {
        let handle = current(self)?;
        let opened = match options.kind {
            FlowKind::Objects => handle
                .open_objects(options)
                .map(|objects| Carried::Objects(Box::new(ObjectStream::new(objects)))),
            _ => handle.open_stream(options).map(Carried::Stream),
        };
        opened.map_err(|error| refused(&handle, &error))
    }

    async fn open_packets(&self, options: FlowOptions) -> Result<Packets, OpenError> {
        let handle = current(self)?;
        let packets = handle.open_packets(options);
        packets.map_err(|error| refused(&handle, &error))
    }

    async fn open_blocks(&self, options: FlowOptions) -> Result<Blocks, OpenError> {
        let handle = current(self)?;
        let blocks = handle.open_blocks(options);
        blocks.map_err(|error| refused(&handle, &error))
    }

    async fn open_objects(&self, options: FlowOptions) -> Result<Objects, OpenError> {
        let handle = current(self)?;
        let objects = handle.open_objects(options);
        objects.map_err(|error| refused(&handle, &error))
    }
}

impl Listen for Server {
    type Session = Incomings;

    async fn next_session(&self) -> Option<Incomings> {
        Server::accept(self).await
    }
}
