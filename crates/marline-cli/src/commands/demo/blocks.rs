//! `marline demo --blocks`.

use super::Args;
use crate::commands::signals::Signals;
use crate::commands::{CliError, output, runtime};
use indicatif::{ProgressBar, ProgressStyle};
use marline_lab::demo::blocks::{
    self, DEFAULT_LINKS, DEFAULT_SCHEDULERS, Load, Options, RunReport, Watch,
};
use marline_proto::sched::{Choice, ChoiceError};
use std::io::{self, Write};
use std::time::Duration;

/// Length of a run when none is given.
const SECONDS: u64 = 8;

/// The flags of `marline demo --blocks`.
#[derive(Debug, clap::Args)]
pub(super) struct BlockArgs {
    /// Blocks with a deadline instead of a download and a live stream, with these schedulers [when
    /// none is given: hop-jump:refuse=off, sttf, daps, dems, min-rtt]
    #[arg(
        long,
        value_name = "SCHEDULERS",
        value_delimiter = ',',
        num_args = 0..,
        require_equals = true,
        default_missing_value = DEFAULT_SCHEDULERS,
        value_parser = scheduler,
        conflicts_with = "schedulers"
    )]
    pub(super) blocks: Option<Vec<Choice>>,
    /// Size of a block, 8B to 1MB
    #[arg(long, value_name = "SIZE", default_value = "110kB", requires = "blocks", value_parser = size)]
    block_size: usize,
    /// From a block to the next, 1ms to 10s
    #[arg(long, value_name = "TIME", default_value = "25ms", requires = "blocks", value_parser = time)]
    block_every: Duration,
    /// Time after which a block is late, 1ms to 10s
    #[arg(long, value_name = "TIME", default_value = "35ms", requires = "blocks", value_parser = time)]
    block_deadline: Duration,
    /// Probability with which the deadline should be kept, 0.5 to 0.9999
    #[arg(long, value_name = "P", default_value = "0.98", requires = "blocks", value_parser = reliability)]
    block_reliability: f64,
    /// Run both ends and each relay (`marline link`) as processes of their own, not as threads of
    /// one
    #[arg(long, requires = "blocks")]
    processes: bool,
}

fn size(text: &str) -> Result<usize, String> {
    let size = marline_base::text::size(text).ok();
    let size = size.filter(|size| (8..=1_000_000).contains(size));
    let size = size.ok_or("write a size from 8B to 1MB, such as 110kB")?;
    usize::try_from(size).map_err(|error| error.to_string())
}

fn time(text: &str) -> Result<Duration, String> {
    let time = marline_base::text::duration(text).ok();
    let range = Duration::from_millis(1)..=Duration::from_secs(10);
    let time = time.filter(|time| range.contains(time));
    time.ok_or_else(|| "write a time from 1ms to 10s, such as 25ms".to_owned())
}

fn reliability(text: &str) -> Result<f64, String> {
    let p = text.parse().ok().filter(|p| (0.5..=0.9999).contains(p));
    p.ok_or_else(|| "write a probability from 0.5 to 0.9999, such as 0.98".to_owned())
}

/// Reads a scheduler that serves blocks.
fn scheduler(text: &str) -> Result<Choice, String> {
    let choice: Choice = text
        .parse()
        .map_err(|error: ChoiceError| error.to_string())?;
    if blocks::schedulers().any(|entry| entry.name == choice.name()) {
        return Ok(choice);
    }
    let names: Vec<&str> = blocks::schedulers().map(|entry| entry.name).collect();
    Err(format!(
        "`{}` does not serve blocks; these do: {}",
        choice.name(),
        names.join(", ")
    ))
}

pub(super) fn run(args: &Args, schedulers: &[Choice]) -> Result<(), CliError> {
    let options = options(args, schedulers)?;
    let report = runtime()?.block_on(async {
        let mut signals = Signals::new()?;
        let mut display = Display::new(&options);
        tokio::select! {
            report = blocks::run(&options, &mut display) => Ok(report),
            () = signals.stop() => Err(CliError::runtime("stopped before the end")),
        }
    })?;
    if args.json {
        output::json(&report)?;
    } else {
        output::line(&report.text())?;
    }
    match report.failures() {
        failed if failed.is_empty() => Ok(()),
        failed => {
            Err(CliError::runtime(failed.join("; "))
                .hint("run it again with --log debug to see why"))
        }
    }
}

/// Plays the part of a process of `--processes`.
pub(super) fn part() -> Result<(), CliError> {
    runtime()?
        .block_on(blocks::part())
        .map_err(CliError::runtime)
}

fn options(args: &Args, schedulers: &[Choice]) -> Result<Options, CliError> {
    let mut chosen: Vec<Choice> = Vec::new();
    for choice in schedulers {
        if !chosen.contains(choice) {
            chosen.push(*choice);
        }
    }
    let links = args.links(DEFAULT_LINKS)?;
    for (name, link) in ["a", "b"].into_iter().zip(&links) {
        // A trace does not read back from its name.
        if args.block.processes && link.to_string().parse().as_ref() != Ok(link) {
            let message = format!("--link-{name} {link}: cannot be handed to a process");
            return Err(CliError::usage(message)
                .hint("leave out --processes, or give the link a rate instead of a trace"));
        }
    }
    Ok(Options {
        links,
        schedulers: chosen,
        load: Load {
            size: args.block.block_size,
            every: args.block.block_every,
            deadline: args.block.block_deadline,
            reliability: args.block.block_reliability,
        },
        time: Duration::from_secs(args.seconds.unwrap_or(SECONDS)),
        seed: args.seed,
        processes: args.block.processes,
    })
}

/// The progress on standard error: a bar with the late fraction so far if that is a terminal, and a
/// line for each run that has ended in any case.
#[derive(Debug)]
struct Display {
    bar: ProgressBar,
    time: Duration,
    begun: u64,
}

impl Display {
    fn new(options: &Options) -> Self {
        let runs = options.schedulers.len() + 2;
        let bar = ProgressBar::new(options.time.as_millis() as u64 * runs as u64);
        if let Ok(style) =
            ProgressStyle::with_template("{prefix} [{bar:24}] {percent:>3} % {wide_msg}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        let display = Display {
            bar,
            time: options.time,
            begun: 0,
        };
        display.line(&format!("{runs} runs of {} s each", options.time.as_secs()));
        display
    }

    fn position(&self, elapsed: Duration) -> u64 {
        let each = self.time.as_millis() as u64;
        self.begun.saturating_sub(1) * each + (elapsed.as_millis() as u64).min(each)
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| {
            // Without standard error there is nobody to tell.
            let _ = writeln!(io::stderr().lock(), "{text}");
        });
    }
}

impl Watch for Display {
    fn begin(&mut self, name: &str) {
        self.begun += 1;
        self.bar.set_prefix(format!("{name:<24}"));
        self.bar.set_message("connecting");
        self.bar.set_position(self.position(Duration::ZERO));
    }

    fn progress(&mut self, elapsed: Duration, late: u64, blocks: u64) {
        self.bar.set_position(self.position(elapsed));
        if blocks > 0 {
            let percent = 100.0 * late as f64 / blocks as f64;
            self.bar
                .set_message(format!("late {percent:.1} % ({late} of {blocks})"));
        }
    }

    fn end(&mut self, run: &RunReport) {
        let text = match (&run.figures, run.failure()) {
            (Some(figures), None) => {
                let lateness = figures.lateness;
                let [low, high] = lateness.interval;
                format!(
                    "late {:5.1} % of {}, 95 % interval {:.1} to {:.1}",
                    100.0 * lateness.fraction,
                    lateness.blocks,
                    100.0 * low,
                    100.0 * high
                )
            }
            (_, failure) => format!("failed: {}", failure.unwrap_or_default()),
        };
        self.line(&format!("{:<24} {text}", run.name));
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
