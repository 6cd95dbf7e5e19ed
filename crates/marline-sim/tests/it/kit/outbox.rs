//! What an application writes on one flow.

use bytes::{Bytes, BytesMut};
use marline_proto::flow::{BlockTerms, ObjectOptions, SendError};
use marline_proto::wire::FlowId;
use marline_proto::{Session, WriteError};
use marline_sim::{Duration, Instant};

use super::pattern;

/// Messages with a number, a time and a pattern.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages {
    /// Bytes of each; from `size` to `size_max` in turn.
    pub(crate) size: usize,
    pub(crate) size_max: usize,
    pub(crate) count: u64,
    pub(crate) every: Duration,
}

#[derive(Debug)]
enum Work {
    Stream {
        total: u64,
    },
    /// A stream that grows by `chunk` bytes every so often.
    Trickle {
        total: u64,
        chunk: u64,
        every: Duration,
        next_at: Instant,
    },
    Messages {
        plan: Messages,
        next_at: Instant,
    },
    /// Blocks, or objects that are sent whole.
    Units {
        blocks: bool,
        /// Of blocks.
        deadline: Option<Duration>,
        plan: Messages,
        next_at: Instant,
    },
}

#[derive(Debug)]
pub(crate) struct Outbox {
    work: Work,
    /// Bytes or messages written.
    pub(crate) written: u64,
    /// The session had no room; an event will tell.
    blocked: bool,
    /// Finish when all is written.
    pub(crate) finish: bool,
    pub(crate) finished: bool,
    /// Reset here or stopped by the peer: nothing is expected of it.
    pub(crate) cut_short: bool,
    /// Messages that found the buffer full (they are tried again).
    pub(crate) refused: u64,
    /// Units that the session took; the others were too long, or not worth sending.
    taken: u64,
}

impl Outbox {
    fn new(work: Work) -> Self {
        Self {
            work,
            written: 0,
            blocked: false,
            finish: true,
            finished: false,
            cut_short: false,
            refused: 0,
            taken: 0,
        }
    }

    pub(crate) fn stream(total: u64) -> Self {
        Self::new(Work::Stream { total })
    }

    /// A live stream: `chunk` bytes every so often, from `start` on.
    pub(crate) fn trickle(start: Instant, total: u64, chunk: u64, every: Duration) -> Self {
        Self::new(Work::Trickle {
            total,
            chunk,
            every,
            next_at: start,
        })
    }

    pub(crate) fn messages(start: Instant, plan: Messages) -> Self {
        Self::new(Work::Messages {
            plan,
            next_at: start,
        })
    }

    /// Blocks, each worth something for as long as it says.
    pub(crate) fn blocks(start: Instant, plan: Messages, deadline: Option<Duration>) -> Self {
        Self::new(Work::Units {
            blocks: true,
            deadline,
            plan,
            next_at: start,
        })
    }

    /// Objects, each sent whole.
    pub(crate) fn objects(start: Instant, plan: Messages) -> Self {
        Self::new(Work::Units {
            blocks: false,
            deadline: None,
            plan,
            next_at: start,
        })
    }

    /// Everything was handed to the session.
    pub(crate) fn is_written(&self) -> bool {
        match &self.work {
            Work::Stream { total } | Work::Trickle { total, .. } => self.written == *total,
            Work::Messages { plan, .. } | Work::Units { plan, .. } => self.written == plan.count,
        }
    }

    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.work, Work::Stream { .. } | Work::Trickle { .. })
    }

    pub(crate) fn unblock(&mut self) {
        self.blocked = false;
    }

    /// When it wants to write next, if not as soon as there is room.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        match &self.work {
            Work::Messages { next_at, .. }
            | Work::Units { next_at, .. }
            | Work::Trickle { next_at, .. } => {
                let writes = !self.blocked && !self.cut_short && !self.is_written();
                writes.then_some(*next_at)
            }
            Work::Stream { .. } => None,
        }
    }

    pub(crate) fn pump(&mut self, now: Instant, session: &mut Session, flow: FlowId) {
        if self.cut_short || self.finished {
            return;
        }
        while !self.blocked && !self.is_written() {
            let more = match self.work {
                Work::Stream { total } => self.write(now, session, flow, total),
                Work::Trickle { chunk, next_at, .. } => {
                    next_at <= now && self.trickle_on(now, session, flow, chunk)
                }
                Work::Messages { plan, next_at } => {
                    next_at <= now && self.send(now, session, flow, plan, next_at)
                }
                Work::Units {
                    blocks,
                    deadline,
                    plan,
                    next_at,
                } => {
                    let kind = blocks.then_some(deadline);
                    next_at <= now && self.send_unit(now, session, flow, plan, kind)
                }
            };
            if !more {
                break;
            }
        }
        if self.is_written() && self.finish && !self.finished {
            session.finish(flow);
            self.finished = true;
        }
    }

    fn trickle_on(&mut self, now: Instant, session: &mut Session, flow: FlowId, n: u64) -> bool {
        // A piece that found no room is finished before the next is due.
        let end = (self.written / n + 1) * n;
        let more = self.write(now, session, flow, end);
        if self.written == end
            && let Work::Trickle { every, next_at, .. } = &mut self.work
        {
            *next_at += *every;
        }
        more
    }

    fn write(&mut self, now: Instant, session: &mut Session, flow: FlowId, total: u64) -> bool {
        let len = (total - self.written).min(16_384);
        let chunk: Bytes = (self.written..self.written + len)
            .map(|offset| pattern(flow.0, offset))
            .collect();
        match session.write(now, flow, &chunk) {
            Ok(taken) => self.written += taken as u64,
            Err(WriteError::Blocked) => self.blocked = true,
            Err(WriteError::Closed) => self.cut_short = true,
        }
        !self.cut_short
    }

    fn send(
        &mut self,
        now: Instant,
        session: &mut Session,
        flow: FlowId,
        plan: Messages,
        due: Instant,
    ) -> bool {
        let span = (plan.size_max - plan.size) as u64 + 1;
        let size = plan.size + (self.written.wrapping_mul(7_919) % span) as usize;
        match session.send(now, flow, message(self.written, now, size)) {
            Ok(sequence) => {
                assert_eq!(sequence, self.written, "sequence numbers count messages");
                self.written += 1;
                if let Work::Messages { next_at, .. } = &mut self.work {
                    *next_at = due.max(now - plan.every) + plan.every;
                }
            }
            Err(SendError::Full) => {
                self.refused += 1;
                self.blocked = true;
            }
            Err(SendError::Closed) => self.cut_short = true,
            Err(error) => panic!("a message of {size} bytes: {error}"),
        }
        !self.cut_short
    }
}

impl Outbox {
    /// Sends a block with this deadline, or an object.
    fn send_unit(
        &mut self,
        now: Instant,
        session: &mut Session,
        flow: FlowId,
        plan: Messages,
        block: Option<Option<Duration>>,
    ) -> bool {
        let span = (plan.size_max - plan.size) as u64 + 1;
        let size = plan.size as u64 + self.written.wrapping_mul(7_919) % span;
        let data: Bytes = (0..size)
            .map(|offset| pattern(self.taken, offset))
            .collect();
        let sent = match block {
            Some(deadline) => {
                let terms = BlockTerms {
                    deadline,
                    reliability: None,
                };
                session
                    .write_block(now, flow, &data, terms)
                    .map(|accepted| accepted.number)
            }
            None => session.send_object(now, flow, &data, &ObjectOptions::default()),
        };
        match sent {
            Ok(number) => {
                assert_eq!(number, self.taken, "numbers count units");
                self.taken += 1;
                self.written += 1;
            }
            // Longer than the peer takes, or not to be had in time.
            Err(SendError::TooLong(..) | SendError::Refused(_)) => self.written += 1,
            Err(SendError::Full) => {
                self.refused += 1;
                self.blocked = true;
            }
            Err(SendError::Closed) => self.cut_short = true,
            Err(error) => panic!("a unit of {size} bytes: {error}"),
        }
        if let Work::Units { next_at, .. } = &mut self.work
            && !self.blocked
        {
            *next_at = now + plan.every;
        }
        !self.cut_short
    }
}

/// Header of a message: its number and when it was written. Shorter messages have none.
pub(crate) const HEADER: usize = 16;

fn message(number: u64, now: Instant, size: usize) -> Bytes {
    let mut out = BytesMut::with_capacity(size);
    if size >= HEADER {
        out.extend_from_slice(&number.to_be_bytes());
        out.extend_from_slice(&now.as_nanos().to_be_bytes());
    }
    out.extend((out.len()..size).map(|offset| pattern(number, offset as u64)));
    out.freeze()
}
