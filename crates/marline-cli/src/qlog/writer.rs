//! The thread that writes.

use super::Over;
use super::event::Event;
use super::files::Folder;
use super::header::Trace;
use marline_base::Instant;
use marline_proto::wire::PathId;
use serde_json::{Value, json};
use std::collections::BTreeMap;
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

/// What the queue carries.
#[derive(Debug)]
pub(super) enum Message {
    /// A session begins.
    Begin(u64, Box<Trace>),
    /// A session did something.
    Event(u64, Instant, Event),
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
    /// What its paths are called, for the next file; a session has a few.
    names: BTreeMap<PathId, Box<str>>,
    /// Events that could not be written.
    lost: u64,
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
                        last: Instant::ZERO,
                    };
                    self.sessions.insert(id, session);
                }
                Ok(Message::Event(id, at, event)) => self.event(id, at, &event),
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => self.end_sessions(),
            }
            if self.flushed.elapsed() >= FLUSH {
                self.flush();
            }
        }
        self.end_sessions();
        self.flush();
    }

    fn event(&mut self, id: u64, at: Instant, event: &Event) {
        self.attempt(id, at, event);
        // From now on each file of the session begins with it.
        if let Event::PathNamed { path, name } = event
            && let Some(session) = self.sessions.get_mut(&id)
        {
            session.names.insert(*path, name.clone());
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
        let (zero, lost) = (session.trace.zero(), std::mem::take(&mut session.lost));
        let Some(file) = &mut session.file else {
            return Ok(());
        };
        let before = file.bytes;
        if lost > 0 {
            file.line(&Event::Dropped(lost).line(zero, at))?;
        }
        file.line(&event.line(zero, at))?;
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
            file.line(&Event::PathNamed { path, name }.line(zero, at))?;
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

    /// Ends the files of sessions that are over.
    fn end_sessions(&mut self) {
        let over = self.over.lock();
        let over = std::mem::take(&mut *over.unwrap_or_else(PoisonError::into_inner));
        for Over {
            session: id,
            dropped,
        } in over
        {
            let last = self.sessions.get_mut(&id).map(|session| {
                session.lost += dropped;
                (session.last, std::mem::take(&mut session.lost))
            });
            if let Some((at, missing)) = last
                && missing > 0
            {
                self.event(id, at, &Event::Dropped(missing));
            }
            self.sessions.remove(&id);
        }
    }

    fn flush(&mut self) {
        self.flushed = std::time::Instant::now();
        for session in self.sessions.values_mut() {
            if let Some(file) = &mut session.file
                && let Err(error) = file.out.flush()
            {
                tracing::warn!("qlog: {}: {error}", file.path.display());
                session.file = None;
                self.rests_until = Some(std::time::Instant::now() + REST);
            }
        }
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
