//! `marline link`: one emulated link as a UDP relay, or between two network namespaces.

mod args;
mod report;

use super::{CliError, output, runtime};
use args::{Change, Config};
use marline_lab::emulate::{EmulateError, Emulator, Stats};
use marline_link::LinkConfig;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, interval_at, sleep_until};

pub(super) use args::Args;

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let (config, changes) = (args.config()?, args.changes()?);
    match config {
        Config::Udp(config) => {
            let links = shown(&config.up, &config.down);
            let (target, seed) = (config.target, config.seed);
            let emulator = Emulator::start(config).map_err(refused)?;
            tracing::info!("relaying {} to {target}, seed {seed}", emulator.addr());
            serve(&emulator, links, changes, args)
        }
        Config::Devices(config) => {
            let links = shown(&config.up, &config.down);
            let seed = config.seed;
            let emulator = Emulator::between(config).map_err(refused)?;
            let [near, far] = emulator.places();
            tracing::info!("joining {near} and {far}, seed {seed}");
            serve(&emulator, links, changes, args)
        }
    }
}

fn shown(up: &LinkConfig, down: &LinkConfig) -> [String; 2] {
    [up.to_string(), down.to_string()]
}

/// Runs until the program is asked to end, and prints what happened.
fn serve<At>(
    emulator: &Emulator<At>,
    links: [String; 2],
    changes: Vec<Change>,
    args: &Args,
) -> Result<(), CliError> {
    for (direction, link) in ["up", "down"].iter().zip(links) {
        tracing::info!("{direction:<4} {link}");
    }
    runtime()?.block_on(watch(emulator, args.stats, changes))?;
    let stats = emulator.stats();
    if args.json {
        output::json(&report::Report::from(&stats))
    } else {
        output::line(report::table(&stats).trim_end())
    }
}

fn refused(error: EmulateError) -> CliError {
    match error {
        EmulateError::Config { direction, source } => {
            args::refused(direction.name(), &source, source.value())
        }
        EmulateError::Listen { .. } => CliError::runtime(error)
            .hint("choose a free port of this machine, or port 0 to let the system choose"),
        EmulateError::Target { .. } => {
            CliError::runtime(error).hint("give an address that this machine has a route to")
        }
        EmulateError::Device(error) => {
            let hint = error.hint();
            CliError::runtime(error).hint(hint)
        }
        EmulateError::Thread(_) => CliError::runtime(error),
    }
}

/// Returns when the program is asked to end; meanwhile logs a line every `every`.
async fn watch<At>(
    emulator: &Emulator<At>,
    every: Option<Duration>,
    changes: Vec<Change>,
) -> Result<(), CliError> {
    let start = Instant::now();
    let mut changes = VecDeque::from(changes);
    let mut ticks = every
        .filter(|every| !every.is_zero())
        .and_then(|every| Some(interval_at(start.checked_add(every)?, every)));
    let listen = |kind| {
        signal(kind).map_err(|error| CliError::runtime(format!("cannot watch signals: {error}")))
    };
    let (mut interrupt, mut terminate) = (
        listen(SignalKind::interrupt())?,
        listen(SignalKind::terminate())?,
    );
    let mut before = emulator.stats();
    loop {
        let tick = async {
            match &mut ticks {
                Some(ticks) => ticks.tick().await,
                None => std::future::pending().await,
            }
        };
        let next = changes
            .front()
            .and_then(|change| start.checked_add(change.at));
        let change = async {
            match next {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = change => {
                if let Some(Change { direction, config, .. }) = changes.pop_front() {
                    let text = config.to_string();
                    emulator.reconfigure(direction, config).map_err(CliError::runtime)?;
                    tracing::info!("{direction:<4} from now on {text}");
                }
            }
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
            _ = tick => {
                let now = emulator.stats();
                log(&before, &now, every.unwrap_or_default());
                before = now;
            }
        }
    }
}

fn log(before: &Stats, now: &Stats, time: Duration) {
    let clients = match now.clients {
        // Or devices, which have none.
        0 => String::new(),
        count => format!("  |  {count} clients"),
    };
    tracing::info!(
        "up {}  |  down {}{clients}",
        report::line(&before.up, &now.up, time),
        report::line(&before.down, &now.down, time),
    );
}
