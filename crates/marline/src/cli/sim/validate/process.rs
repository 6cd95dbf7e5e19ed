//! A child process of this program.

use super::{POLL, look};
use crate::cli::CliError;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a process may take to say what it should.
const PATIENCE: Duration = Duration::from_secs(15);
/// Lines that wait to be read; more are dropped.
const LINES: usize = 1_024;
/// Longest line that is kept (bytes).
const LONGEST: u64 = 64 << 10;

/// Killed when it is dropped.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    child: Child,
    /// What it prints and logs.
    lines: Receiver<String>,
    /// The last line that was read.
    last: String,
}

impl Process {
    /// Starts `marline WORDS` in `folder`.
    pub(super) fn start(name: &str, folder: &Path, words: &[String]) -> Result<Self, CliError> {
        let failed = |error| CliError::runtime(format!("cannot start {name}: {error}"));
        let program = std::env::current_exe().map_err(failed)?;
        let mut child = Command::new(program)
            .args(["--log", "info"])
            .args(words)
            .current_dir(folder)
            .env("XDG_CONFIG_HOME", folder)
            .env("XDG_RUNTIME_DIR", folder)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
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
            child,
            lines,
            last: String::new(),
        })
    }

    /// Waits for a line that `find` has an answer to.
    pub(super) fn said<T>(
        &mut self,
        what: &str,
        stop: &AtomicBool,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T, CliError> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            look(stop)?;
            match self.lines.recv_timeout(POLL) {
                Ok(line) => {
                    if let Some(found) = find(&line) {
                        return Ok(found);
                    }
                    self.last = line;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let Self { name, last, .. } = self;
        Err(CliError::runtime(format!(
            "{name} did not tell {what}; its last words: {last}"
        )))
    }

    /// Asks it to end, and returns what it prints from then on.
    pub(super) fn end(mut self, stop: &AtomicBool) -> Result<String, CliError> {
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        let end = Instant::now() + PATIENCE;
        let mut text = String::new();
        while Instant::now() < end {
            look(stop)?;
            match self.lines.recv_timeout(POLL) {
                Ok(line) => text += &(line + "\n"),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let _ = self.child.wait();
        Ok(text)
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
