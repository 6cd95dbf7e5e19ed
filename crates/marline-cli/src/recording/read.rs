//! From a file to what happened on each path.

use super::clock;
use super::draft::Draft;
use super::format::{FORMAT, Header, Line, Way};
use std::fmt;

/// Longest recording (windows): a day in windows of 100 ms, or five hours of ours.
const MOST_WINDOWS: u64 = 900_000;
/// Most paths: as many as a session has.
const MOST_PATHS: usize = marline_proto::MAX_PATHS;
/// Shortest and longest window (ms).
const STEPS: std::ops::RangeInclusive<u64> = 1..=1_000;
/// No packet takes longer (ms), whatever the clocks say.
const LONGEST_MS: f64 = 60_000.0;

/// What happened on the paths.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Length of a window (ms).
    pub step_ms: u64,
    /// Number of windows.
    pub windows: usize,
    /// The paths in the order in which they came.
    pub paths: Vec<PathRecord>,
}

/// One path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathRecord {
    /// Its name.
    pub name: String,
    /// From the client to the server.
    pub up: WayRecord,
    /// Back.
    pub down: WayRecord,
}

/// One direction of a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WayRecord {
    /// One entry a window.
    pub windows: Vec<Window>,
    /// When packets were sent, and how long they took (ms), in the order of time.
    pub delays: Vec<(f64, f64)>,
}

/// A window of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Window {
    /// Packets sent.
    pub sent: u64,
    /// Packets lost.
    pub lost: u64,
    /// Bytes that arrived.
    pub arrived: u64,
    /// Of these, bytes of long streams.
    pub bulk: u64,
}

/// A recording that cannot be used: the file, the line if there is one, what is wrong and how to
/// correct it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingError {
    file: String,
    line: Option<usize>,
    problem: String,
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}, line {line}: {}", self.file, self.problem),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for RecordingError {}

impl Recording {
    /// Reads the text of a file, which errors call `file`.
    ///
    /// # Errors
    /// No recording, another version, a line that is none, windows that are out of order or too
    /// many, and a recording of nothing.
    pub fn parse(file: &str, text: &str) -> Result<Self, RecordingError> {
        let fail = |line: Option<usize>, problem: String| RecordingError {
            file: file.to_owned(),
            line,
            problem,
        };
        let mut lines = (1..).zip(text.lines());
        let (_, first) = lines.next().unwrap_or((1, ""));
        let header: Header = serde_json::from_str(first).map_err(|_| {
            let what = "no recording: it must begin with {\"marline_recording\":1,...}";
            fail(Some(1), format!("{what}; `marline record FILE` makes one"))
        })?;
        if header.marline_recording != FORMAT {
            let version = header.marline_recording;
            let problem =
                format!("a recording of version {version}, and this program reads {FORMAT}");
            return Err(fail(Some(1), problem));
        }
        if !STEPS.contains(&header.step_ms) {
            let problem = format!("step_ms is {}, and must be from 1 to 1000", header.step_ms);
            return Err(fail(Some(1), problem));
        }
        let mut drafts: Vec<Draft> = Vec::new();
        let (mut last, mut end) = (0, 0);
        for (number, text) in lines {
            if text.trim().is_empty() {
                continue;
            }
            let wrong = |problem: String| fail(Some(number), problem);
            let line: Line = serde_json::from_str(text).map_err(|error| {
                // Where serde_json says line 1 it means this one.
                let why = error.to_string();
                let why = why.split(" at line 1 column ").next().unwrap_or_default();
                let column = error.column();
                wrong(format!("no window of a path (column {column}): {why}"))
            })?;
            if !line.ms.is_multiple_of(header.step_ms) || line.ms < last {
                let step = header.step_ms;
                let problem = format!(
                    "ms is {}, and must be a multiple of {step} that does not decrease",
                    line.ms
                );
                return Err(wrong(problem));
            }
            last = line.ms;
            end = (line.ms / header.step_ms).saturating_add(1);
            if end > MOST_WINDOWS {
                return Err(wrong(format!(
                    "longer than {MOST_WINDOWS} windows: cut it here"
                )));
            }
            for way in [&line.up, &line.down] {
                check(way).map_err(wrong)?;
            }
            let index = match drafts.iter().position(|draft| draft.name == line.path) {
                Some(index) => index,
                None if drafts.len() < MOST_PATHS => {
                    drafts.push(Draft {
                        name: line.path.clone(),
                        ways: Default::default(),
                        delays: Default::default(),
                    });
                    drafts.len() - 1
                }
                None => return Err(wrong(format!("more than {MOST_PATHS} paths"))),
            };
            let draft = &mut drafts[index];
            for (way, read) in [line.up, line.down].into_iter().enumerate() {
                let delays = read
                    .delays
                    .iter()
                    .map(|&(at, delay)| (line.session, at, delay));
                draft.delays[way].extend(delays);
                draft.ways[way].push((line.ms / header.step_ms, read));
            }
        }
        if end * drafts.len() as u64 > 2 * MOST_WINDOWS {
            let problem = format!("too long for {} paths: cut it", drafts.len());
            return Err(fail(None, problem));
        }
        clock::agree(&mut drafts);
        let windows = end as usize;
        let paths: Vec<PathRecord> = drafts
            .into_iter()
            .filter(|draft| draft.delays.iter().any(|delays| !delays.is_empty()))
            .map(|draft| finished(draft, windows, header.step_ms))
            .collect();
        if paths.is_empty() {
            let problem = "no packet was acknowledged while it was recorded: record a session that carries something";
            return Err(fail(None, problem.to_owned()));
        }
        Ok(Self {
            step_ms: header.step_ms,
            windows,
            paths,
        })
    }

    /// Its length (ms).
    pub fn length_ms(&self) -> u64 {
        self.windows as u64 * self.step_ms
    }
}

fn check(way: &Way) -> Result<(), String> {
    let Way {
        sent,
        lost,
        arrived,
        bulk,
        ..
    } = *way;
    let most_lost = sent.saturating_mul(2).max(sent.saturating_add(100_000));
    if lost > most_lost || sent > 1_000_000 || arrived.max(bulk) > 1 << 40 {
        return Err(format!(
            "{sent} packets sent, {lost} lost and {arrived} bytes in one window"
        ));
    }
    let wrong = |(at, delay): &&(f64, f64)| {
        let longest = |ms: f64, most: f64| ms.is_finite() && ms.abs() <= most;
        !longest(*at, 1e12) || !longest(*delay, 1e12)
    };
    match way.delays.iter().find(wrong) {
        Some((at, delay)) => Err(format!("a delay of {delay} ms at {at} ms")),
        None => Ok(()),
    }
}

/// All of a path, once its lines are read.
fn finished(draft: Draft, count: usize, step_ms: u64) -> PathRecord {
    let [up, down] = draft.delays;
    let [up_ways, down_ways] = draft.ways;
    let [up, down] = [(up, up_ways), (down, down_ways)].map(|(delays, ways)| {
        let mut windows = vec![Window::default(); count];
        for (number, way) in ways {
            if let Some(window) = windows.get_mut(number as usize) {
                window.sent += way.sent;
                window.lost += way.lost;
                window.arrived += way.arrived;
                window.bulk += way.bulk;
            }
        }
        let right = |&(at, delay): &(f64, f64)| at >= 0.0 && (0.0..LONGEST_MS).contains(&delay);
        let delays = delays
            .into_iter()
            .map(|(_, at, delay)| (at, delay.max(0.0)));
        let mut delays: Vec<(f64, f64)> = delays.filter(right).collect();
        delays.sort_by(|a, b| a.0.total_cmp(&b.0));
        WayRecord { windows, delays }
    });
    let mut down = down;
    // Of what the peer sent, it is known when it arrived, or should have: it was sent before.
    let late = (middle(&down.delays) / step_ms as f64).round() as usize;
    let late = late.min(down.windows.len());
    down.windows.rotate_left(late);
    PathRecord {
        name: draft.name,
        up,
        down,
    }
}

/// The middle delay (ms).
fn middle(delays: &[(f64, f64)]) -> f64 {
    let mut all: Vec<f64> = delays.iter().map(|(_, delay)| *delay).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests;
