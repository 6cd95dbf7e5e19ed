//! What strangers and peers can have written to the log: each place in the program that logs has a
//! bucket of lines.

use marline::support::lock;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Context, Layer};

/// Lines that one place may log at once: a client has up to 16 paths, and says of each that it is
/// dialled.
const BURST: u32 = 16;
/// How long it takes until it may log one more: a place that is flooded writes half a megabyte an
/// hour.
const REFILL: Duration = Duration::from_secs(1);
/// Modules whose lines only the operator causes, by starting, reloading and stopping the program. A
/// list of commands or of forwards may be longer than a burst, and must be whole.
const OPERATOR: [&str; 3] = [
    "marline_cli::commands",
    "marline_apps::proxy::front",
    "marline_apps::tun::setup",
];

/// What one place may still log.
#[derive(Debug)]
struct Bucket {
    lines: u32,
    /// When the last line was added to `lines`.
    filled: Instant,
    left_out: u64,
}

impl Bucket {
    fn new(now: Instant) -> Self {
        Bucket {
            lines: BURST,
            filled: now,
            left_out: 0,
        }
    }

    /// Takes a line out, if there is one.
    fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.filled).as_nanos() / REFILL.as_nanos();
        let more = u32::try_from(passed).unwrap_or(BURST).min(BURST);
        self.lines = self.lines.saturating_add(more).min(BURST);
        self.filled = match self.lines {
            BURST => now,
            _ => self.filled + REFILL * more,
        };
        match self.lines.checked_sub(1) {
            Some(left) => self.lines = left,
            None => {
                self.left_out = self.left_out.saturating_add(1);
                return false;
            }
        }
        true
    }
}

/// Lets each place log [`BURST`] lines of the levels `error`, `warn` and `info` at once and then
/// one every [`REFILL`], and writes behind that one how many were left out before it. Memory is
/// bounded by the number of places in the program. Clones share their buckets.
#[derive(Clone)]
pub(super) struct Limiter {
    buckets: Arc<Mutex<HashMap<Identifier, Bucket>>>,
    now: fn() -> Instant,
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").finish_non_exhaustive()
    }
}

impl Limiter {
    /// By the clock `now`.
    pub(super) fn new(now: fn() -> Instant) -> Self {
        Limiter {
            buckets: Arc::default(),
            now,
        }
    }

    fn admits(&self, place: &Metadata<'_>) -> bool {
        // A user who asks for lower levels than those of the default wants everything.
        let asked_for = *place.level() > Level::INFO;
        if asked_for || OPERATOR.iter().any(|module| within(place.target(), module)) {
            return true;
        }
        let now = (self.now)();
        let mut buckets = lock(&self.buckets);
        let bucket = buckets.entry(place.callsite());
        bucket.or_insert_with(|| Bucket::new(now)).take(now)
    }

    /// Lines of this place that were left out and have not been spoken of.
    fn left_out(&self, place: &Metadata<'_>) -> u64 {
        let mut buckets = lock(&self.buckets);
        let bucket = buckets.get_mut(&place.callsite());
        bucket.map_or(0, |bucket| std::mem::take(&mut bucket.left_out))
    }

    /// Writes lines to `inner`, with the number of those left out.
    pub(super) fn writing_to<M>(&self, inner: M) -> Counting<M> {
        Counting {
            limiter: self.clone(),
            inner,
        }
    }
}

/// Whether `target` is `module`, or within it.
fn within(target: &str, module: &str) -> bool {
    let rest = target.strip_prefix(module);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

impl<S: Subscriber> Layer<S> for Limiter {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        self.admits(event.metadata())
    }
}

/// Adds to a line how many like it were left out. See [`Limiter::writing_to`].
#[derive(Debug)]
pub(super) struct Counting<M> {
    limiter: Limiter,
    inner: M,
}

/// Writes one line, which comes whole.
#[derive(Debug)]
pub(super) struct Line<W> {
    inner: W,
    left_out: u64,
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Counting<M> {
    type Writer = Line<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Line {
            inner: self.inner.make_writer(),
            left_out: 0,
        }
    }

    fn make_writer_for(&'a self, place: &Metadata<'_>) -> Self::Writer {
        Line {
            inner: self.inner.make_writer_for(place),
            left_out: self.limiter.left_out(place),
        }
    }
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.write_all(text)?;
        Ok(text.len())
    }

    fn write_all(&mut self, text: &[u8]) -> io::Result<()> {
        let left_out = std::mem::take(&mut self.left_out);
        let line = text.strip_suffix(b"\n").unwrap_or(text);
        let breaks = |byte: &u8| matches!(byte, b'\n' | b'\r');
        if left_out == 0 && !line.iter().any(breaks) {
            return self.inner.write_all(text);
        }
        // A peer's words must not look like lines of this program.
        let mut line: Vec<u8> = line
            .iter()
            .map(|b| if breaks(b) { b' ' } else { *b })
            .collect();
        if left_out > 0 {
            line.extend(format!(" ({left_out} more like it before were left out)").into_bytes());
        }
        line.push(b'\n');
        self.inner.write_all(&line)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use tracing_subscriber::layer::SubscriberExt;

    /// A module whose lines peers cause.
    const PEERS: &str = "marline::endpoint";

    thread_local! {
        /// The clock of a test, which has its thread for itself.
        static NOW: Cell<Instant> = Cell::new(Instant::now());
    }

    fn pass(time: Duration) {
        NOW.set(NOW.get() + time);
    }

    /// What was written.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Lines that `logging` writes.
    fn lines(logging: impl FnOnce()) -> Vec<String> {
        let (log, limiter) = (Log::default(), Limiter::new(|| NOW.get()));
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(limiter.writing_to(move || writer.clone()))
            .with_max_level(Level::TRACE)
            .with_ansi(false)
            .with_target(false)
            .without_time()
            .finish()
            .with(limiter);
        tracing::subscriber::with_default(subscriber, logging);
        let text = log.0.lock().unwrap().clone();
        let text = String::from_utf8(text).unwrap();
        text.lines().map(|line| line.trim().to_owned()).collect()
    }

    #[test]
    fn a_place_that_is_flooded_logs_a_burst_and_then_a_line_a_second_with_what_was_left_out() {
        let lines = lines(|| {
            for number in 0..1_000 {
                if number == 500 {
                    pass(REFILL * 2);
                }
                tracing::error!(target: PEERS, "a client did that: {number}");
            }
            pass(REFILL / 2);
            tracing::info!(target: PEERS, "another place");
        });
        let burst = BURST as usize;
        assert_eq!(lines.len(), burst + 3);
        let (last, left_out) = (burst - 1, 500 - burst);
        assert_eq!(lines[last], format!("ERROR a client did that: {last}"));
        assert_eq!(
            lines[burst],
            format!("ERROR a client did that: 500 ({left_out} more like it before were left out)")
        );
        assert_eq!(lines[burst + 1], "ERROR a client did that: 501");
        assert_eq!(lines[burst + 2], "INFO another place");
    }

    #[test]
    fn a_place_that_was_quiet_has_its_burst_again_and_no_more() {
        let log = || {
            for _ in 0..3 * BURST {
                tracing::warn!(target: PEERS, "again");
            }
        };
        // The same place, so that the same bucket.
        let lines = lines(|| {
            for _ in 0..2 {
                log();
                pass(REFILL * 100 * BURST);
            }
        });
        assert_eq!(lines.len(), 2 * BURST as usize);
    }

    #[test]
    fn what_only_the_operator_causes_or_asked_for_is_whole() {
        let lines = lines(|| {
            for step in 0..200 {
                tracing::debug!(target: PEERS, "a packet: {step}");
                tracing::info!(target: "marline_apps::tun::setup", "  ip route add {step}");
                tracing::info!(target: "marline_apps::tun::setups", "  ip route add {step}");
            }
        });
        assert_eq!(lines.len(), 2 * 200 + BURST as usize);
    }

    #[test]
    fn a_peers_words_are_one_line() {
        let lines = lines(|| {
            let reason = "gone\r\n2026-01-01T00:00:00Z ERROR the disk is full\n";
            tracing::info!(target: PEERS, "session 3 is over: {reason}");
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
    }

    #[test]
    fn no_clock_and_no_count_overflows() {
        let now = Instant::now();
        let mut bucket = Bucket::new(now + Duration::from_secs(1 << 30));
        bucket.left_out = u64::MAX;
        let taken = (0..100).filter(|_| bucket.take(now)).count();
        assert_eq!((taken, bucket.left_out), (BURST as usize, u64::MAX));
        assert!(bucket.take(now + Duration::from_secs(1 << 32)));
    }
}
