//! The thread that writes.

use super::Over;
use super::event::Event;
use super::files::Folder;
use super::header::Trace;
use marline_base::Instant;
use marline_proto::observe::Record;
use marline_proto::wire::PathId;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What is written stands in the file after this time at the latest.
const FLUSH: Duration = Duration::from_secs(1);
/// After a disk that is full or fails, this long nothing is tried.
const REST: Duration = Duration::from_secs(10);

/// Most names of paths that a file begins with: a session has 16 paths at a time, and an address
/// that is dialled again is another path.
const NAMES: usize = 64;

/// What the queue carries.
#[derive(Debug)]
pub(super) enum Message {
    /// A session begins.
    Begin(u64, Box<Trace>),
    /// A session did something.
    Event(u64, Instant, Event),
    /// A session is over.
    End(Over),
    /// The program ends.
    Stop,
}

/// A session that is written.
#[derive(Debug)]
struct Session {
    trace: Trace,
    /// The number of its next file.
    number: u32,
    /// `None` before the first event, and after a failure.
    file: Option<Open>,
    /// What its newest paths are called, for the next file.
    names: BTreeMap<PathId, Cow<'static, str>>,
    /// Events that could not be written.
    lost: u64,
    /// Events that are not yet with the system.
    buffered: u64,
    /// When it was written last.
    last: Instant,
}

#[derive(Debug)]
struct Open {
    out: BufWriter<File>,
    path: PathBuf,
    bytes: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Writer {
    folder: Folder,
    sessions: BTreeMap<u64, Session>,
    over: Arc<Mutex<Vec<Over>>>,
    /// Sessions that were over when the queue was full, and since when that is known.
    waiting: VecDeque<(std::time::Instant, Over)>,
    /// Nothing is tried before.
    rests_until: Option<std::time::Instant>,
    flushed: std::time::Instant,
    /// Bytes written since the folder was looked at.
    unseen: u64,
}

impl Writer {
    pub(super) fn new(folder: Folder, over: Arc<Mutex<Vec<Over>>>) -> Self {
        Self {
            folder,
            sessions: BTreeMap::new(),
            over,
            waiting: VecDeque::new(),
            rests_until: None,
            flushed: std::time::Instant::now(),
            unseen: 0,
        }
    }

    /// Writes until it is told to stop, or nobody is left.
    pub(super) fn run(mut self, events: &Receiver<Message>) {
        loop {
            match events.recv_timeout(FLUSH) {
                Ok(Message::Begin(id, trace)) => {
                    let session = Session {
                        trace: *trace,
                        number: 0,
                        file: None,
                        names: BTreeMap::new(),
                        lost: 0,
                        buffered: 0,
                        last: Instant::ZERO,
                    };
                    self.sessions.insert(id, session);
                }
                Ok(Message::Event(id, at, event)) => self.event(id, at, &event),
                Ok(Message::End(over)) => self.end(over),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                // Nothing of anybody is in the queue any more.
                Err(RecvTimeoutError::Timeout) => self.end_all(),
            }
            if self.flushed.elapsed() >= FLUSH {
                self.flush();
            }
        }
        self.end_all();
        self.flush();
    }

    fn event(&mut self, id: u64, at: Instant, event: &Event) {
        self.attempt(id, at, event);
        // From now on each file of the session begins with it.
        if let Event::Record(Record::PathNamed { path, name }) = event
            && let Some(session) = self.sessions.get_mut(&id)
        {
            session.names.insert(*path, name.clone());
            if session.names.len() > NAMES {
                session.names.pop_first();
            }
        }
    }

    /// Writes the event, or counts it among those that are missing.
    fn attempt(&mut self, id: u64, at: Instant, event: &Event) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        session.last = at;
        let count = match event {
            Event::Dropped(count) => *count,
            _ => 1,
        };
        if self
            .rests_until
            .is_some_and(|until| std::time::Instant::now() < until)
        {
            session.lost += count;
            return;
        }
        if let Err(error) = self.write(id, at, event) {
            let folder_is = "qlog: nothing is written for 10 s";
            tracing::warn!("{folder_is}: {error}; what is missing is counted in the files");
            self.rests_until = Some(std::time::Instant::now() + REST);
            if let Some(session) = self.sessions.get_mut(&id) {
                session.file = None;
                session.lost += count;
            }
        }
    }

    fn write(&mut self, id: u64, at: Instant, event: &Event) -> io::Result<()> {
        let limit = self.folder.file_size();
        let full = |session: &Session| session.file.as_ref().is_none_or(|f| f.bytes >= limit);
        if self.sessions.get(&id).is_some_and(full) {
            self.turn_over(id, at)?;
        }
        let Some(session) = self.sessions.get_mut(&id) else {
            return Ok(());
        };
        let zero = session.trace.zero();
        let Some(file) = &mut session.file else {
            return Ok(());
        };
        let before = file.bytes;
        if session.lost > 0 {
            file.line(&Event::Dropped(session.lost).line(zero, at))?;
            session.buffered += std::mem::take(&mut session.lost);
        }
        file.line(&event.line(zero, at))?;
        session.buffered += 1;
        self.unseen += file.bytes - before;
        if self.unseen >= self.folder.step() {
            self.make_room();
        }
        Ok(())
    }

    /// Ends a session's file and begins the next, which can be read alone.
    fn turn_over(&mut self, id: u64, at: Instant) -> io::Result<()> {
        if let Some(session) = self.sessions.get_mut(&id)
            && let Some(mut file) = session.file.take()
        {
            file.out.flush()?;
        }
        self.make_room();
        let Some(session) = self.sessions.get_mut(&id) else {
            return Ok(());
        };
        let (file, path) = self.folder.create(&session.trace.name, session.number)?;
        session.number += 1;
        let mut file = Open {
            out: BufWriter::new(file),
            path,
            bytes: 0,
        };
        let zero = session.trace.zero();
        file.line(&session.trace.header())?;
        if let Some((name, details)) = &session.trace.scenario {
            let data = json!({ "name": name, "details": details });
            let time = at.since(zero).as_micros() as f64 / 1e3;
            file.line(&json!({ "time": time, "name": "simulation:scenario", "data": data }))?;
        }
        for (path, name) in &session.names {
            let (path, name) = (*path, name.clone());
            let named = Event::Record(Record::PathNamed { path, name });
            file.line(&named.line(zero, at))?;
        }
        session.file = Some(file);
        Ok(())
    }

    /// Deletes old files until there is room for what is written before the next look. Where the
    /// open ones alone are too large, the largest ends, and is an old file then.
    fn make_room(&mut self) {
        self.unseen = 0;
        loop {
            let open = self.sessions.values().filter_map(|s| s.file.as_ref());
            // What is buffered is not in the folder yet.
            let buffered: u64 = open.clone().map(|f| f.out.buffer().len() as u64).sum();
            let paths: Vec<&Path> = open.map(|file| file.path.as_path()).collect();
            if self.folder.make_room(self.folder.step() + buffered, &paths) {
                return;
            }
            let bytes = |session: &&mut Session| session.file.as_ref().map(|file| file.bytes);
            let Some(session) = self.sessions.values_mut().max_by_key(bytes) else {
                return;
            };
            if session.file.take().is_none() {
                return;
            }
        }
    }

    /// Ends the files of a session that is over.
    fn end(&mut self, over: Over) {
        let id = over.session;
        let last = self.sessions.get_mut(&id).map(|session| {
            session.lost += over.dropped;
            (session.last, std::mem::take(&mut session.lost))
        });
        if let Some((at, missing)) = last
            && missing > 0
        {
            self.event(id, at, &Event::Dropped(missing));
        }
        self.sessions.remove(&id);
    }

    /// Ends those that were over when there was no room to say so.
    fn end_all(&mut self) {
        let over = self.over.lock();
        let over = std::mem::take(&mut *over.unwrap_or_else(PoisonError::into_inner));
        for over in over {
            self.end(over);
        }
    }

    /// The same, of those that have waited for so long that nothing of them is in the queue.
    fn end_waiting(&mut self) {
        let over = self.over.lock();
        let over = std::mem::take(&mut *over.unwrap_or_else(PoisonError::into_inner));
        let now = std::time::Instant::now();
        self.waiting
            .extend(over.into_iter().map(|over| (now, over)));
        while let Some((since, over)) = self.waiting.front().copied()
            && now.duration_since(since) >= REST
        {
            self.waiting.pop_front();
            self.end(over);
        }
    }

    fn flush(&mut self) {
        self.flushed = std::time::Instant::now();
        for session in self.sessions.values_mut() {
            let Some(file) = &mut session.file else {
                continue;
            };
            if let Err(error) = file.out.flush() {
                tracing::warn!("qlog: {}: {error}", file.path.display());
                session.file = None;
                session.lost += session.buffered;
                self.rests_until = Some(std::time::Instant::now() + REST);
            }
            session.buffered = 0;
        }
        self.end_waiting();
    }
}

impl Open {
    /// One text of the sequence (RFC 7464 section 2.2).
    fn line(&mut self, value: &Value) -> io::Result<()> {
        let mut text = vec![0x1e];
        serde_json::to_writer(&mut text, value)?;
        text.push(b'\n');
        self.bytes += text.len() as u64;
        self.out.write_all(&text)
    }
}
