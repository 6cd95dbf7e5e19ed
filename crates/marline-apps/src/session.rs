//! Sessions over real carriers as the programs' side uses them: the traits of [`crate::proxy`].

use std::io;
use std::time::Duration;

use bytes::Bytes;
use marline_base::Rate;
use marline_proto::sched::Choice;
use marline_proto::stats::{Delays, FlowCounters};
use marline_proto::wire::FlowKind;
use marline_proto::{FlowInfo, FlowOptions};
use tokio::time::sleep;

use marline::endpoint::{
    Accepted, Blocks, Client, GivenUp, Incomings, NoSession, Objects, Packets, RateReport, Server,
    Session,
};
use marline::identity::PublicKey;

use crate::carried::Carried;
use crate::live::LiveName;
use crate::object_stream::ObjectStream;
use crate::proxy::associations::AGAIN;
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

    fn delays(&self) -> Option<Delays> {
        Packets::delays(self)
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
    type Towards = Session;

    fn towards(&self) -> Session {
        self.handle().clone()
    }

    fn peer(&self) -> Option<PublicKey> {
        Some(Incomings::peer(self))
    }

    fn session(&self) -> Option<Session> {
        Some(self.handle().clone())
    }

    async fn next_flow(&mut self) -> Option<Incoming<Carried, Packets>> {
        let (info, flow) = Incomings::accept(self).await.ok()?;
        Some(incoming(info, flow))
    }
}

/// An accepted flow in the proxies' words.
fn incoming(info: FlowInfo, flow: Accepted) -> Incoming<Carried, Packets> {
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
    Incoming { target, flow }
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

    fn take_flows(&self, takes: bool) {
        Client::take_flows(self, takes);
    }

    async fn next_flow(&self) -> Incoming<Carried, Packets> {
        loop {
            Client::session_is_there(self).await;
            let Ok(session) = self.current() else {
                continue;
            };
            // Nothing comes of one that is over; the next one may not be there yet.
            if let Ok((info, flow)) = session.accept().await {
                return incoming(info, flow);
            }
            sleep(AGAIN).await;
        }
    }

    async fn open_stream(&self, options: FlowOptions) -> Result<Carried, OpenError> {
        Tunnel::open_stream(&current(self)?, options).await
    }

    async fn open_packets(&self, options: FlowOptions) -> Result<Packets, OpenError> {
        Tunnel::open_packets(&current(self)?, options).await
    }

    async fn open_blocks(&self, options: FlowOptions) -> Result<Blocks, OpenError> {
        Tunnel::open_blocks(&current(self)?, options).await
    }

    async fn open_objects(&self, options: FlowOptions) -> Result<Objects, OpenError> {
        Tunnel::open_objects(&current(self)?, options).await
    }
}

/// One session, at either end; there is no other after it.
impl Tunnel for Session {
    type Stream = Carried;
    type Packets = Packets;

    async fn session_is_there(&self) {
        if self.is_closed().is_some() {
            std::future::pending::<()>().await;
        }
    }

    fn room(&self) -> Option<usize> {
        room(self)
    }

    async fn open_stream(&self, options: FlowOptions) -> Result<Carried, OpenError> {
        let opened = match options.kind {
            FlowKind::Objects => Session::open_objects(self, options)
                .map(|objects| Carried::Objects(Box::new(ObjectStream::new(objects)))),
            _ => Session::open_stream(self, options).map(Carried::Stream),
        };
        opened.map_err(|error| refused(self, &error))
    }

    async fn open_packets(&self, options: FlowOptions) -> Result<Packets, OpenError> {
        let packets = Session::open_packets(self, options);
        packets.map_err(|error| refused(self, &error))
    }

    async fn open_blocks(&self, options: FlowOptions) -> Result<Blocks, OpenError> {
        let blocks = Session::open_blocks(self, options);
        blocks.map_err(|error| refused(self, &error))
    }

    async fn open_objects(&self, options: FlowOptions) -> Result<Objects, OpenError> {
        let objects = Session::open_objects(self, options);
        objects.map_err(|error| refused(self, &error))
    }
}

impl Listen for Server {
    type Session = Incomings;

    async fn next_session(&self) -> Option<Incomings> {
        Server::accept(self).await
    }
}
