//! This program as a child process, for measurements by real processes on loopback.

mod relay;

pub use relay::{Relay, link_flags};

use rustix::process::{Pid, Signal, getpid, kill_process};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often waiting threads look whether they should stop.
pub const POLL: Duration = Duration::from_millis(50);
/// How long a process may take to say what it should.
const PATIENCE: Duration = Duration::from_secs(15);
/// Lines that wait to be read; more are dropped.
const LINES: usize = 1_024;
/// Longest line that is kept (bytes).
const LONGEST: u64 = 64 << 10;

/// A child process does not do what it should.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It was not started.
    #[error("cannot start {name}: {error}")]
    Start {
        /// Which.
        name: String,
        /// What the system said.
        error: io::Error,
    },
    /// It reads its input no more.
    #[error("{name} takes no word: {error}")]
    Deaf {
        /// Which.
        name: String,
        /// What the system said.
        error: io::Error,
    },
    /// It did not say in time what it should.
    #[error("{name} did not tell {what}; its last words: {last}")]
    Silent {
        /// Which.
        name: String,
        /// What was waited for.
        what: String,
        /// What it said last.
        last: String,
    },
    /// It has ended by itself.
    #[error("{name} has ended; its last words: {last}")]
    Gone {
        /// Which.
        name: String,
        /// What it said last.
        last: String,
    },
    /// It was killed, because it did not end when it was asked to.
    #[error("{name} did not end when it was asked to, and was killed")]
    Stays {
        /// Which.
        name: String,
    },
    /// A relay's statistics are not what they should be.
    #[error("a relay's statistics: {0}")]
    Statistics(#[from] serde_json::Error),
    /// The person at the keyboard has had enough.
    #[error("stopped before the end")]
    Stopped,
}

/// The flag of a child that must not outlive the process that started it: [`end_with_stdin`].
pub const END_WITH_STDIN: &str = "--end-with-stdin";

/// Ends this process, as SIGTERM does, when its standard input ends. The holder of the other end
/// need not ask for it: it may have been killed.
pub fn end_with_stdin() {
    thread::spawn(|| {
        // Nobody listens to what comes; where nothing can be read, nobody is there.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = kill_process(getpid(), Signal::TERM);
    });
}

/// Fails when it is time to stop: the owner of the processes drops, and so ends, them.
pub fn look(stop: &AtomicBool) -> Result<(), ProcessError> {
    match stop.load(Ordering::Relaxed) {
        true => Err(ProcessError::Stopped),
        false => Ok(()),
    }
}

/// Killed when it is dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    /// What it prints and logs.
    lines: Receiver<String>,
    /// The last line that was read.
    last: String,
}

impl Process {
    /// Starts `marline WORDS` in `folder`. Its standard input ends when this does.
    pub fn start(name: &str, folder: &Path, words: &[String]) -> Result<Self, ProcessError> {
        let failed = |error| ProcessError::Start {
            name: name.to_owned(),
            error,
        };
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .args(["--log", "info"])
            .args(words)
            .current_dir(folder)
            .env("XDG_CONFIG_HOME", folder)
            .env("XDG_RUNTIME_DIR", folder)
            .env("XDG_STATE_HOME", folder)
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (tell, lines) = sync_channel(LINES);
        if let Some(stdout) = child.stdout.take() {
            follow(stdout, tell.clone());
        }
        if let Some(stderr) = child.stderr.take() {
            follow(stderr, tell);
        }
        Ok(Self {
            name: name.to_owned(),
            input: child.stdin.take(),
            child,
            lines,
            last: String::new(),
        })
    }

    /// Writes a line to its standard input.
    pub fn tell(&mut self, line: &str) -> Result<(), ProcessError> {
        let Some(input) = &mut self.input else {
            return Ok(());
        };
        let told = writeln!(input, "{line}").and_then(|()| input.flush());
        told.map_err(|error| ProcessError::Deaf {
            name: self.name.clone(),
            error,
        })
    }

    /// The next line that it says; `None` if it says none within `patience`.
    pub fn line(&mut self, patience: Duration) -> Result<Option<String>, ProcessError> {
        match self.lines.recv_timeout(patience) {
            Ok(line) => {
                self.last.clone_from(&line);
                Ok(Some(line))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(ProcessError::Gone {
                name: self.name.clone(),
                last: self.last.clone(),
            }),
        }
    }

    /// Waits for a line that `find` has an answer to.
    pub fn said<T>(
        &mut self,
        what: &str,
        stop: &AtomicBool,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T, ProcessError> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            look(stop)?;
            if let Some(found) = self.line(POLL)?.as_deref().and_then(&find) {
                return Ok(found);
            }
        }
        Err(ProcessError::Silent {
            name: self.name.clone(),
            what: what.to_owned(),
            last: self.last.clone(),
        })
    }

    /// Asks it to end, and returns what it prints from then on.
    ///
    /// # Errors
    /// It has not ended in time, and is killed; it was stopped.
    pub fn end(mut self, stop: &AtomicBool) -> Result<String, ProcessError> {
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        let end = Instant::now() + PATIENCE;
        let mut text = String::new();
        while Instant::now() < end {
            look(stop)?;
            match self.line(POLL) {
                Ok(Some(line)) => text += &(line + "\n"),
                Ok(None) => {}
                Err(_) => match self.child.try_wait() {
                    // It has said everything, and is about to end.
                    Ok(None) => thread::sleep(POLL),
                    _ => return Ok(text),
                },
            }
        }
        Err(ProcessError::Stays {
            name: self.name.clone(),
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Errors say that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn follow(pipe: impl Read + Send + 'static, tell: SyncSender<String>) {
    thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut line = String::new();
        loop {
            line.clear();
            match reader.by_ref().take(LONGEST).read_line(&mut line) {
                Ok(0) | Err(_) => return,
                // Nobody may be listening; the pipe must not fill all the same.
                Ok(_) => drop(tell.try_send(line.trim_end().to_owned())),
            }
        }
    });
}
