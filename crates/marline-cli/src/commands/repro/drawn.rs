//! What benches over drawn links have in common: their seed, and how their runs are made.

use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use marline_sim::field::MOST_SEED;

use super::{Args, runs, stop};
use crate::commands::CliError;

/// The seed of `--fixed`: any would do, as long as it stays.
const FIXED: u64 = 46;

/// The seed of what is drawn.
pub(super) fn seed(args: &Args) -> u64 {
    match (args.fixed, args.seed) {
        (true, _) => FIXED,
        (false, Some(seed)) => seed,
        (false, None) => fresh(),
    }
}

/// A seed that nobody chose: of the clock's smallest parts.
fn fresh() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let nanos = now.map_or(0, |time| time.as_nanos() as u64);
    // The last digits of clocks are often zeros.
    1 + (nanos / 1_000).wrapping_mul(0x9e37_79b9_7f4a_7c15) % MOST_SEED
}

/// A bench that was drawn.
pub(super) struct Drawn<'a> {
    pub(super) name: &'a str,
    pub(super) seed: u64,
    pub(super) missing: &'a [String],
    pub(super) runs: usize,
    /// Flags by which fewer runs are made.
    pub(super) fewer: &'a str,
}

impl Drawn<'_> {
    /// Says what is left out and how to repeat the rest; then `make` makes the runs, on this number
    /// of threads, until it is to stop, and reports how many are over.
    ///
    /// # Errors
    /// It was stopped.
    pub(super) fn make<T>(
        &self,
        args: &Args,
        make: impl FnOnce(usize, &AtomicBool, &(dyn Fn(usize) + Sync)) -> Option<T>,
    ) -> Result<T, CliError> {
        let seed = self.seed;
        // Without standard error nobody reads it.
        let mut stderr = std::io::stderr().lock();
        for missing in self.missing {
            let _ = writeln!(stderr, "LEFT OUT {missing}");
        }
        let _ = writeln!(
            stderr,
            "seed {seed}: {} runs; --seed {seed} repeats them",
            self.runs
        );
        drop(stderr);
        let stop = stop::on_signals()?;
        let bar = runs::bar(self.name);
        bar.set_length(self.runs as u64);
        let progress = |over: usize| bar.set_position(over as u64);
        let report = make(runs::threads(args.jobs), &stop, &progress);
        bar.finish_and_clear();
        report
            .ok_or_else(|| CliError::runtime("stopped before all runs were made").hint(self.fewer))
    }
}
