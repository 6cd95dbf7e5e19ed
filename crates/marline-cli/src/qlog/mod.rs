//! qlog: what sessions do, as files that tools for QUIC read (draft-ietf-quic-qlog-main-schema-13,
//! in the form for streams: a header and then events, as a JSON text sequence, RFC 7464).
//!
//! ```text
//!  session ─ observer ─▶ bounded queue ─▶ one thread ─▶ DIR/marline-….000.sqlog, ….001.sqlog, …
//! ```
//!
//! The observer copies a record and never waits: what finds the queue full is counted, and the file
//! says how much is missing (`marline:events_dropped`). Files have a bound, and so have all files
//! of the folder together: the oldest go first. Only their owner reads them. They hold sizes,
//! numbers, times and the names of paths, as `marline status` shows them; no content, no keys, no
//! targets.
//!
//! The simulator writes through the same thread, in virtual time, and waits where the queue is
//! full.
//!
//! | file | what |
//! | --- | --- |
//! | `event.rs` | the events, and what they are called in the file |
//! | `header.rs` | what a file begins with |
//! | `files.rs` | names, sizes, and the bound of a folder |
//! | `writer.rs` | the thread |

mod event;
mod files;
mod header;
mod writer;

pub use files::{DEFAULT_SIZE, LEAST_SIZE};
pub use header::{Clock, Trace};

use event::Event;
use marline_base::Instant;
use marline_proto::Side;
use marline_proto::observe::{Observer, Observers, Record};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use writer::{Message, Writer};

/// Events that wait for the thread (some 100 bytes each): a second of a session at 100 Mb/s.
const QUEUE: usize = 32_768;
/// How long the end waits for what is queued to be written.
const LAST: Duration = Duration::from_secs(2);

/// What is done where the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The event is dropped and counted: a session never waits for a disk.
    Drop,
    /// The observer waits: virtual time has no hurry.
    Wait,
}

/// A folder that sessions are written to. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Qlog {
    queue: SyncSender<Message>,
    shared: Arc<Shared>,
    when_full: WhenFull,
}

#[derive(Debug)]
struct Shared {
    sessions: AtomicU64,
    /// Sessions that were over when the queue was full.
    over: Arc<Mutex<Vec<Over>>>,
    /// Ends with the thread.
    done: Mutex<Option<Receiver<()>>>,
}

/// A session's last word.
#[derive(Clone, Copy, Debug)]
struct Over {
    session: u64,
    /// Events dropped that no line says yet.
    dropped: u64,
}

impl Qlog {
    /// Starts the thread for a folder, which is made where there is none, and whose files may have
    /// `size` bytes together, at least [`LEAST_SIZE`].
    ///
    /// # Errors
    /// A folder that cannot be made or written, no thread.
    pub fn start(folder: &Path, size: u64, when_full: WhenFull) -> io::Result<Self> {
        let folder = files::Folder::open(folder, size)?;
        let (queue, events) = sync_channel(QUEUE);
        let (ended, done) = sync_channel::<()>(0);
        let over = Arc::new(Mutex::new(Vec::new()));
        let writer = Writer::new(folder, Arc::clone(&over));
        std::thread::Builder::new()
            .name("qlog".to_owned())
            .spawn(move || {
                writer.run(&events);
                drop(ended);
            })?;
        let shared = Shared {
            sessions: AtomicU64::new(0),
            over,
            done: Mutex::new(Some(done)),
        };
        Ok(Self {
            queue,
            shared: Arc::new(shared),
            when_full,
        })
    }

    /// An observer for one session, whose trace is described so.
    pub fn observer(&self, trace: Trace) -> Box<dyn Observer> {
        let session = self.shared.sessions.fetch_add(1, Ordering::Relaxed);
        self.tap(session, trace)
    }

    fn tap(&self, session: u64, trace: Trace) -> Box<dyn Observer> {
        let mut tap = Tap {
            session,
            qlog: self.clone(),
            begins: Some(Box::new(trace)),
            dropped: 0,
        };
        tap.begin();
        Box::new(tap)
    }

    /// The observers of a program's sessions.
    pub fn observers(&self) -> Observers {
        let qlog = self.clone();
        let started = SystemTime::now();
        Observers::new(move |now, side| {
            let session = qlog.shared.sessions.fetch_add(1, Ordering::Relaxed);
            let trace = Trace::of_session(side, now, started, session);
            Some(qlog.tap(session, trace))
        })
    }

    /// Has everything written that is queued, for at most two seconds. Nothing is written after it.
    pub fn finish(&self) {
        let done = self.shared.done.lock();
        let done = done.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(done) = done {
            let deadline = std::time::Instant::now() + LAST;
            // The thread empties the queue; a disk that hangs does not keep the program.
            while let Err(TrySendError::Full(_)) = self.queue.try_send(Message::Stop) {
                if std::time::Instant::now() > deadline {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            let left = match self.when_full {
                WhenFull::Drop => left,
                // Nobody waits for a simulation to stop but those who want its files.
                WhenFull::Wait => Duration::MAX,
            };
            // Nothing is ever sent: the thread has ended, or takes too long.
            let _ = done.recv_timeout(left);
        }
    }
}

/// A session's observer.
#[derive(Debug)]
struct Tap {
    session: u64,
    qlog: Qlog,
    /// Its trace, until the thread has it: without that nothing of the session is written.
    begins: Option<Box<Trace>>,
    /// Events dropped since the last that was queued.
    dropped: u64,
}

impl Tap {
    /// Queues it; what does not fit comes back.
    fn send(&self, message: Message) -> Result<(), Message> {
        match self.qlog.when_full {
            // Fails only after the end.
            WhenFull::Wait => self.qlog.queue.send(message).map_err(|error| error.0),
            WhenFull::Drop => self
                .qlog
                .queue
                .try_send(message)
                .map_err(|error| match error {
                    TrySendError::Full(message) | TrySendError::Disconnected(message) => message,
                }),
        }
    }

    /// Does the thread know the session?
    fn begin(&mut self) -> bool {
        let Some(trace) = self.begins.take() else {
            return true;
        };
        match self.send(Message::Begin(self.session, trace)) {
            Err(Message::Begin(_, trace)) => {
                self.begins = Some(trace);
                false
            }
            _ => true,
        }
    }
}

impl Observer for Tap {
    fn on(&mut self, now: Instant, record: &Record) {
        if !self.begin() {
            self.dropped += 1;
            return;
        }
        if self.dropped > 0 {
            let missing = Event::Dropped(self.dropped);
            let message = Message::Event(self.session, now, missing);
            if self.qlog.queue.try_send(message).is_err() {
                self.dropped += 1;
                return;
            }
            self.dropped = 0;
        }
        let sent = self.send(Message::Event(
            self.session,
            now,
            Event::Record(record.clone()),
        ));
        self.dropped += u64::from(sent.is_err());
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        let over = Over {
            session: self.session,
            dropped: self.dropped,
        };
        // Behind all of its events; where there is no room for it, the thread finds it elsewhere.
        if self.begins.is_none() && self.send(Message::End(over)).is_err() {
            let lock = self.qlog.shared.over.lock();
            lock.unwrap_or_else(PoisonError::into_inner).push(over);
        }
    }
}

/// Which side of a session writes, in qlog's words (section 6).
const fn vantage(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

#[cfg(test)]
mod tests;
