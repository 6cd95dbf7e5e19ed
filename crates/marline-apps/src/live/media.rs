//! A flow of objects as a flow of datagrams: frames and PES packets go as objects and come out as
//! the datagrams that they were made of, in order.

use super::alarm::{act_in_time, before};
use super::arriving::Arriving;
use super::composing::{Composer, Part};
use super::grouping::cut_all;
use super::writing::{keep, write_all};
use crate::proxy::PacketFlow;
use bytes::Bytes;
use marline::endpoint::{Incoming, Objects};
use marline::support::lock;
use marline_proto::flow::{ObjectOptions, SendError};
use marline_proto::stats::{Delays, FlowCounters};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// An object that does not end by itself does after this part of its lifetime, and without one
/// after that time.
const PATIENCE: u32 = 4;
const NO_LIFETIME: Duration = Duration::from_millis(100);
/// Objects whose lifetime is watched at a time: as many as a session lets be under way.
const WATCHED: usize = 1 << 15;
/// Codes with which the other end learns that an object was given up at the end of its lifetime or
/// for lack of room, and that one is not waited for any more.
const EXPIRED: u64 = 1;
const UNWANTED: u64 = 2;

/// A medium over all paths of a session.
///
/// An object is given up by its sender when its lifetime is over; the other end, which hands
/// datagrams over in the order in which they were sent, goes on without it as soon as it learns
/// that.
#[derive(Debug)]
pub struct Media {
    flow: Objects,
    lifetime: Option<Duration>,
    leaving: Mutex<Leaving>,
    /// Something changed in `leaving`.
    changed: Notify,
    arriving: Mutex<Arriving>,
}

#[derive(Debug)]
struct Leaving {
    composer: Composer,
    /// The object that is being written.
    object: Option<u64>,
    /// Objects that may be under way, and when they are given up; the oldest first.
    ends: VecDeque<(u64, Instant)>,
    /// Objects for which there was no room when they had gathered.
    untaken: u64,
    /// Parts that left when the session was over.
    unwritten: Vec<Part>,
}

impl Media {
    /// Objects that are worth something for this long from their first datagram.
    pub fn new(flow: Objects, lifetime: Option<Duration>) -> Self {
        flow.ignore_settled();
        let patience = lifetime.map_or(NO_LIFETIME, |lifetime| lifetime / PATIENCE);
        Media {
            flow,
            lifetime,
            leaving: Mutex::new(Leaving {
                composer: Composer::new(patience),
                object: None,
                ends: VecDeque::new(),
                untaken: 0,
                unwritten: Vec::new(),
            }),
            changed: Notify::new(),
            arriving: Mutex::default(),
        }
    }

    fn write(&self, leaving: &mut Leaving, part: &Part) -> Result<(), SendError> {
        match self.try_write(leaving, part) {
            Err(SendError::Closed) => keep(&mut leaving.unwritten, part),
            written => written,
        }
    }

    fn try_write(&self, leaving: &mut Leaving, part: &Part) -> Result<(), SendError> {
        let number = match leaving.object {
            Some(number) => number,
            // Its beginning found no room, and nothing is left of it.
            None if part.data.is_empty() => return Ok(()),
            None => {
                let options = ObjectOptions {
                    urgency: part.urgency,
                    ..ObjectOptions::default()
                };
                let number = match part.last {
                    true => self.flow.try_send(&part.data, &options)?,
                    false => self.flow.try_open(&options)?,
                };
                if let Some(lifetime) = self.lifetime {
                    leaving.ends.push_back((number, part.since + lifetime));
                }
                if leaving.ends.len() > WATCHED
                    && let Some((oldest, _)) = leaving.ends.pop_front()
                {
                    self.flow.cancel(oldest, EXPIRED);
                }
                if part.last {
                    return Ok(());
                }
                number
            }
        };
        leaving.object = (!part.last).then_some(number);
        let written = self.flow.try_write(number, &part.data, part.last);
        if written.is_err_and(|error| error != SendError::Closed) {
            // With a hole in it, it is of no use.
            self.flow.cancel(number, EXPIRED);
            leaving.object = None;
        }
        written
    }

    /// Sends what waits no longer, and gives up what is too old. Never completes.
    async fn keep_time(&self) {
        let due = || {
            let leaving = lock(&self.leaving);
            let expiry = leaving.ends.front().map(|(_, at)| *at);
            let part = leaving.composer.due();
            expiry.into_iter().chain(part).min()
        };
        act_in_time(&self.changed, due, |now| {
            let leaving = &mut *lock(&self.leaving);
            if let Some(part) = leaving.composer.flush(now) {
                // One that has begun is cancelled, which is counted.
                let begins = leaving.object.is_none();
                if let Err(error) = self.write(leaving, &part) {
                    tracing::debug!(%error, "a part of an object was not taken");
                    leaving.untaken += u64::from(begins);
                }
            }
            while let Some((object, at)) = leaving.ends.front().copied()
                && at <= now
            {
                leaving.ends.pop_front();
                self.flow.cancel(object, EXPIRED);
            }
        })
        .await;
    }
}

impl PacketFlow for Media {
    async fn send(&self, message: Bytes) -> io::Result<()> {
        self.send_waited(message, Duration::ZERO).await
    }

    async fn send_waited(&self, message: Bytes, waited: Duration) -> io::Result<()> {
        let came = before(waited);
        // After an outage much may come at once.
        self.flow.room().await;
        let written = {
            let leaving = &mut *lock(&self.leaving);
            let parts = leaving.composer.push(came, &message);
            write_all(parts, |part| self.write(leaving, &part))
        };
        self.changed.notify_one();
        written
    }

    /// While it waits, what is due leaves and what is too old is given up.
    async fn recv(&self) -> Option<Bytes> {
        loop {
            if let Some(datagram) = lock(&self.arriving).pop() {
                return Some(datagram);
            }
            let incoming = tokio::select! {
                incoming = self.flow.recv_piece() => incoming,
                () = self.keep_time() => return None,
            };
            let Some(incoming) = incoming else {
                let arriving = &mut *lock(&self.arriving);
                arriving.let_go();
                return arriving.pop();
            };
            let given_up = match incoming {
                Incoming::Piece(piece) => {
                    lock(&self.arriving).push(piece.number, piece.data, piece.last)
                }
                Incoming::Gone { number, .. } => lock(&self.arriving).gone(number),
            };
            for missing in given_up {
                self.flow.refuse(missing, UNWANTED);
            }
        }
    }

    fn counters(&self) -> Option<FlowCounters> {
        let mut counters = self.flow.counters()?;
        counters.units.cancelled += lock(&self.leaving).untaken;
        Some(counters)
    }

    fn delays(&self) -> Option<Delays> {
        self.flow.delays()
    }

    fn is_session_over(&self) -> bool {
        self.flow.is_session_over()
    }

    fn unsettled(&self) -> Vec<(Bytes, Duration)> {
        let written = self.flow.unsettled().into_iter();
        let leaving = &mut *lock(&self.leaving);
        let lifetime = self.lifetime.unwrap_or_default();
        let ends: HashMap<u64, Instant> = leaving.ends.iter().copied().collect();
        let age = |object| {
            let left = ends
                .get(&object)
                .map(|end| end.duration_since(Instant::now()));
            left.map(|left| lifetime.saturating_sub(left))
        };
        // Those that nobody remembers are too old.
        let written = written.filter_map(|(object, data)| Some((data, age(object)?)));
        let mut parts = std::mem::take(&mut leaving.unwritten);
        parts.extend(leaving.composer.end());
        let parts = parts.into_iter();
        let parts = parts.map(|part| (part.data, part.since.elapsed()));
        let all = written.chain(parts);
        all.flat_map(|(data, age)| cut_all(data, age)).collect()
    }
}
