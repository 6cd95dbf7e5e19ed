//! `marline record`: how the paths of a running client behave, as a file.

use super::signals::Signals;
use super::{CliError, output, runtime, status};
use crate::control::client::ask;
use crate::control::protocol::{Outcome, Request};
use crate::control::status::Role;
use crate::recording::{Header, Line, Part};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Time between two questions.
const EVERY: Duration = Duration::from_secs(1);
/// Bytes at which a recording ends: `marline sim run --links` reads 64 MiB, and the last answer has
/// some ten seconds of windows.
const MOST: u64 = 56 << 20;

const AFTER: &str = "\
The file says for each path and direction, every 20 ms, how many packets were sent and lost, how many
bytes arrived, and how long some packets took: lines of JSON, some 1 MB a minute for two busy paths. It
holds no content and no addresses, but the paths' names.

A recording shows what was sent over the paths while it ran. Where nothing was sent nothing is known,
and how much a path carries is known only from when it was filled: have traffic on it meanwhile, such
as a download.

Examples:
  marline record afternoon.jsonl --seconds 600
  marline sim run examples/demo --links afternoon.jsonl
  marline sim run examples/demo --links afternoon.jsonl --scheduler auto,redundant,min-rtt";

/// Record how the paths of a running client behave, for `marline sim run --links`.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct Args {
    /// The file, which is replaced if it is there.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How long, 1 to 3600. Ctrl-C ends it earlier, and the file is whole all the same.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Control socket of the client to ask.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let begin = Request::Record {
        since_ms: None,
        all: false,
    };
    let roles = [Role::Client, Role::Server];
    let (socket, first) = status::answered_of(&roles, args.control.as_ref(), &begin)??;
    let first = part(first)?;
    let mut recording = Writer::create(&args.file, first.next_ms)?;
    let ended = runtime()?.block_on(follow(args, &socket, first.next_ms, &mut recording));
    let written = recording.finish();
    let complete = ended?;
    let windows = written?;
    let file = args.file.display();
    let early = if complete { "" } else { ", stopped early" };
    if windows == 0 {
        return Err(CliError::runtime(format!(
            "{file}: nothing was sent or received meanwhile{early}"
        ))
        .hint("record while the client has a session, and programs use it"));
    }
    output::line(&format!("{file}: {windows} windows of 20 ms{early}"))
}

/// Asks until the time is over; false if it was stopped before.
async fn follow(
    args: &Args,
    socket: &Path,
    mut since_ms: u64,
    recording: &mut Writer,
) -> Result<bool, CliError> {
    let mut signals = Signals::new()?;
    let end = Instant::now() + Duration::from_secs(args.seconds);
    let mut complete = true;
    let mut over = false;
    while !over {
        let next = (Instant::now() + EVERY).min(end);
        tokio::select! {
            () = sleep_until(next) => {}
            () = signals.stop() => {
                complete = false;
                over = true;
            }
        }
        over |= Instant::now() >= end;
        if recording.bytes >= MOST {
            tracing::warn!("the file has 56 MiB, and ends here");
            (complete, over) = (false, true);
        }
        let request = Request::Record {
            since_ms: Some(since_ms),
            all: over,
        };
        let answer = ask(socket, request).await.map_err(|error| {
            CliError::runtime(format!("the recording ends early: {error}"))
                .hint("what was recorded before is in the file")
        })?;
        let Part { lines, next_ms } = part(answer)?;
        recording.add(lines)?;
        since_ms = next_ms;
    }
    Ok(complete)
}

fn part(outcome: Outcome) -> Result<Part, CliError> {
    match outcome {
        Outcome::Recorded { part } => Ok(part),
        Outcome::Error { message, hint } => {
            let error = CliError::runtime(message);
            Err(match hint {
                Some(hint) => error.hint(hint),
                None => error,
            })
        }
        other => Err(CliError::runtime(format!("unexpected answer: {other:?}"))),
    }
}

/// The file.
#[derive(Debug)]
struct Writer {
    path: PathBuf,
    out: BufWriter<File>,
    /// When it begins, on the running client's time (ms).
    began_ms: u64,
    windows: u64,
    bytes: u64,
}

impl Writer {
    fn create(path: &Path, began_ms: u64) -> Result<Self, CliError> {
        let file = File::create(path).map_err(|error| {
            CliError::usage(format!("cannot write {}: {error}", path.display()))
                .hint("name a file in a folder that is there")
        })?;
        let mut writer = Self {
            path: path.to_owned(),
            out: BufWriter::new(file),
            began_ms,
            windows: 0,
            bytes: 0,
        };
        writer.line(&Header::now())?;
        Ok(writer)
    }

    fn add(&mut self, lines: Vec<Line>) -> Result<(), CliError> {
        for line in lines {
            if let Some(line) = line.from(self.began_ms) {
                self.line(&line)?;
                self.windows += 1;
            }
        }
        self.out.flush().map_err(|error| self.failed(&error))
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), CliError> {
        let text = serde_json::to_string(value).map_err(CliError::runtime)?;
        self.bytes += text.len() as u64 + 1;
        writeln!(self.out, "{text}").map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> CliError {
        CliError::runtime(format!("cannot write {}: {error}", self.path.display()))
    }

    fn finish(mut self) -> Result<u64, CliError> {
        self.out.flush().map_err(|error| self.failed(&error))?;
        Ok(self.windows)
    }
}
