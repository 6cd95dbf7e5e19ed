//! `marline demo`: the main job in one command.

mod blocks;
mod page;

use self::page::Stage;
use super::signals::Signals;
use super::{CliError, output, runtime, schedulers};
use crate::recording::{Header, Recorder};
use indicatif::{ProgressBar, ProgressStyle};
use marline::endpoint::Client;
use marline_apps::live::Board;
use marline_lab::demo::report::RunReport;
use marline_lab::demo::{
    self, DEFAULT_LINKS, DEFAULT_SCHEDULERS, Options, Plan, Progress, Report, RunPlan, Scheduling,
    Watch, objects, table,
};
use marline_link::LinkConfig;
use marline_proto::observe::Observers;
use marline_proto::sched::{AUTO, Choice, ChoiceError};
use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const ABOUT: &str = "Show what bonding two links does, here and now: no root, no configuration";

const LONG_ABOUT: &str = "\
Show what bonding two links does, here and now: no root, no configuration, about a minute.

Starts a server, a client and two emulated links on loopback, and runs real traffic through real \
sockets: an HTTP download through the SOCKS5 proxy, its SHA-256 checked, and at the same time a \
live stream of 4 Mb/s through a live entry, as `client --live` and `server --live` make it. In \
the middle of each run the better link goes dark for two seconds, or a quarter of a shorter run \
than 8 s. It does so over each link alone and over both with each scheduler, and ends with a \
table and a sentence that says what bonding gained over each link, and what it cost.

With --objects it sends pages of 100 objects instead, over each link alone and over both with \
each scheduler, checks the SHA-256 of each object, and prints 50th, 95th and 99th percentile of \
what objects took.

With --blocks it sends a block every few milliseconds instead, as a remote renderer does, and \
counts those that are not whole by their deadline: by each scheduler of blocks over both links, \
over plain TCP connections through the same relays, and in the simulator under the same \
conditions, with 95 % intervals. Schedulers that plan whole blocks run without a congestion \
controller, the others with BBR, TCP with CUBIC; a relay carries datagrams, so the TCP endpoints \
are the simulator's, in real time. With --processes both ends and each relay are processes of \
their own. The links are those of the HOP paper then: 40 Mb/s, standard deviation 8 Mb/s, drawn \
anew every 25 ms.

Exit code 1 when a run fails or anything arrives that is not what was sent.";

const EXAMPLES: &str = "\
Examples:
  marline demo
  marline demo --schedulers min-rtt,redundant --seconds 20
  marline demo --web                     look at 127.0.0.1:9080 meanwhile, as said there
  marline demo --json > demo.json
  marline demo --record demo && marline sim run examples/demo --links demo/bonded-auto.jsonl
  marline demo --objects
  marline demo --objects=sos,edpf --link-b rate=10mbit,delay=80ms
  marline demo --blocks
  marline demo --blocks=hop-jump,edpf --block-size 130kB --seconds 30
  marline demo --blocks --processes --json > blocks.json
  marline demo --link-a rate=40mbit,delay=35ms,jitter=8ms --link-b rate=20mbit,delay=320ms
  marline demo --link-b trace=lte.down,delay=30ms,queue=100p --seed 7

A link is written as KEY=VALUE,...; the keys are the flags of `marline link --help`. A link with a
rate and no queue has a queue of 200ms.";

/// The flags of `marline demo`.
#[derive(Debug, clap::Args)]
#[command(
    about = ABOUT,
    long_about = LONG_ABOUT,
    after_help = schedulers::after(EXAMPLES, demo::schedulers())
)]
pub(super) struct Args {
    /// Schedulers to bond with, separated by commas: NAME or NAME:KEY=VALUE:..., for both flows;
    /// auto, for each flow what it gets by default
    #[arg(
        long,
        value_name = "SCHEDULERS",
        value_delimiter = ',',
        default_value = DEFAULT_SCHEDULERS,
        value_parser = scheduler
    )]
    schedulers: Vec<Scheduling>,
    /// Length of each run in seconds, 2 to 600 [default: so that all take about a minute]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(2..=600))]
    seconds: Option<u64>,
    /// Seed of everything random in the links and the download
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// The first link, the same in both directions [default:
    /// rate=20mbit,delay=15ms,jitter=2ms,loss=1%]
    #[arg(long, value_name = "LINK")]
    link_a: Option<String>,
    /// The second link, the same in both directions [default: rate=10mbit,delay=40ms]
    #[arg(long, value_name = "LINK")]
    link_b: Option<String>,
    /// Pages of 100 objects instead of a download and a live stream, with these schedulers [when
    /// none is given: sos, sos-fec, sos-rateless, edpf, min-rtt]
    #[arg(
        long,
        value_name = "SCHEDULERS",
        value_delimiter = ',',
        num_args = 0..,
        require_equals = true,
        default_missing_value = objects::DEFAULT_SCHEDULERS,
        value_parser = object_scheduler,
        conflicts_with_all = ["schedulers", "seconds", "blocks"]
    )]
    objects: Option<Vec<Choice>>,
    #[command(flatten)]
    block: blocks::BlockArgs,
    /// Play a part of a demo of blocks by processes, which standard input tells
    #[arg(long, hide = true, exclusive = true)]
    part: bool,
    /// Serve the page of the client that runs at a loopback address (docs/WEB.md), until Ctrl-C:
    /// its links and its live stream, as they go dark and come back [when no address is given:
    /// 127.0.0.1:9080]
    #[arg(
        long,
        value_name = "IP:PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:9080",
        value_parser = page::address,
        conflicts_with_all = ["objects", "blocks"]
    )]
    web: Option<SocketAddr>,
    /// Record how the links behaved in each run, to a file of this folder, for
    /// `marline sim run examples/demo --links FILE`
    #[arg(long, value_name = "DIR", conflicts_with_all = ["objects", "blocks"])]
    record: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn scheduler(text: &str) -> Result<Scheduling, String> {
    if text == AUTO {
        return Ok(Scheduling::Auto);
    }
    let names = demo::schedulers().map(|entry| entry.name);
    among(text, names, "both kinds of flow").map(Scheduling::All)
}

fn object_scheduler(text: &str) -> Result<Choice, String> {
    among(
        text,
        objects::schedulers().map(|entry| entry.name),
        "objects",
    )
}

/// The scheduler that `text` chooses, if it is one of these, which serve what is asked for.
fn among(
    text: &str,
    names: impl Iterator<Item = &'static str>,
    what: &str,
) -> Result<Choice, String> {
    let choice: Choice = text
        .parse()
        .map_err(|error: ChoiceError| error.to_string())?;
    let names: Vec<&str> = names.collect();
    if names.contains(&choice.name()) {
        return Ok(choice);
    }
    Err(format!(
        "`{}` does not serve {what}; schedulers that do: {}",
        choice.name(),
        names.join(", ")
    ))
}

impl Args {
    /// The links that are given, or else these.
    fn links(&self, defaults: [&str; 2]) -> Result<[LinkConfig; 2], CliError> {
        let [a, b] = defaults;
        Ok([
            link("link-a", self.link_a.as_deref().unwrap_or(a))?,
            link("link-b", self.link_b.as_deref().unwrap_or(b))?,
        ])
    }

    fn plan(&self) -> Result<Plan, CliError> {
        let mut schedulers: Vec<Scheduling> = Vec::new();
        for choice in &self.schedulers {
            if !schedulers.contains(choice) {
                schedulers.push(*choice);
            }
        }
        let time = match self.seconds {
            Some(seconds) => Duration::from_secs(seconds),
            None => Options::default_time(schedulers.len()),
        };
        Ok(Plan::new(Options {
            links: self.links(DEFAULT_LINKS)?,
            schedulers,
            time,
            seed: self.seed,
        }))
    }
}

fn link(flag: &str, text: &str) -> Result<LinkConfig, CliError> {
    demo::parse_link(text).map_err(|error| {
        CliError::usage(format!("--{flag} {text}: {error}"))
            .hint("write KEY=VALUE,... with the keys of `marline link --help`")
    })
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    if args.part {
        return blocks::part();
    }
    if let Some(schedulers) = &args.objects {
        return pages(args, schedulers);
    }
    if let Some(schedulers) = &args.block.blocks {
        return blocks::run(args, schedulers);
    }
    let plan = args.plan()?;
    runtime()?.block_on(async {
        let mut signals = Signals::new()?;
        let stage = Arc::new(Stage::default());
        let page = match args.web {
            Some(address) => Some(page::listen(address).await?),
            None => None,
        };
        let serving = async {
            match page {
                Some(page) => page.serve(Arc::clone(&stage)).await,
                None => std::future::pending().await,
            }
        };
        let records = args.record.as_deref().map(Records::in_folder).transpose()?;
        let mut display = Display::new(&plan, Arc::clone(&stage), records);
        let shown = async {
            let report = demo::run(&plan, &mut display).await;
            drop(display);
            if args.json {
                output::json(&report)?;
            } else {
                output::line(&table::text(&report))?;
            }
            Ok::<_, CliError>(report)
        };
        tokio::pin!(serving);
        let report = tokio::select! {
            report = shown => report?,
            () = &mut serving => return Err(CliError::runtime("the page has ended")),
            () = signals.stop() => return Err(CliError::runtime("stopped before the end")),
        };
        if args.web.is_some() {
            // Without standard error there is nobody to tell.
            let _ = writeln!(io::stderr().lock(), "The page stays until Ctrl-C.");
            tokio::select! {
                () = serving => {}
                () = signals.stop() => {}
            }
        }
        failures(&report)
    })
}

/// The demo of objects.
fn pages(args: &Args, schedulers: &[Choice]) -> Result<(), CliError> {
    let options = objects::Options {
        links: args.links(DEFAULT_LINKS)?,
        schedulers: schedulers.to_vec(),
        seed: args.seed,
    };
    let report = runtime()?.block_on(async {
        let mut signals = Signals::new()?;
        let told = |run: &objects::RunReport| {
            let text = match &run.error {
                Some(error) => format!("failed: {error}"),
                None => "done".to_owned(),
            };
            // Without standard error there is nobody to tell.
            let _ = writeln!(io::stderr().lock(), "{:<24} {text}", run.name);
        };
        tokio::select! {
            report = objects::run(&options, told) => Ok(report),
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

fn failures(report: &Report) -> Result<(), CliError> {
    let failed: Vec<String> = report
        .runs
        .iter()
        .filter_map(|run| Some(format!("{}: {}", run.name, run.failure()?)))
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    let (count, of) = (failed.len(), report.runs.len());
    Err(CliError::runtime(format!(
        "{count} of {of} runs failed: {}",
        failed.join("; ")
    ))
    .hint("run it again with --log debug to see why"))
}

/// The progress on standard error: a bar if that is a terminal, and a line for each run that has
/// ended in any case.
#[derive(Debug)]
struct Display {
    stage: Arc<Stage>,
    bar: ProgressBar,
    time: Duration,
    begun: u64,
    runs: usize,
    before: Option<Progress>,
    records: Option<Records>,
}

impl Display {
    fn new(plan: &Plan, stage: Arc<Stage>, records: Option<Records>) -> Self {
        let (time, runs) = (plan.options.time, plan.runs.len());
        let all = time.as_millis() as u64 * runs as u64;
        let bar = ProgressBar::new(all);
        if let Ok(style) =
            ProgressStyle::with_template("{prefix} [{bar:24}] {percent:>3} % {wide_msg}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        let display = Display {
            stage,
            bar,
            time,
            begun: 0,
            runs,
            before: None,
            records,
        };
        display.line(&format!("{runs} runs of {} s each", time.as_secs()));
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
    fn begin(&mut self, run: &RunPlan<Scheduling>) {
        self.begun += 1;
        self.before = None;
        let prefix = format!("{}/{} {}", self.begun, self.runs, run.name);
        self.bar.set_prefix(format!("{prefix:<24}"));
        self.bar.set_message("connecting");
        self.bar.set_position(self.position(Duration::ZERO));
    }

    fn client(&mut self, client: &Client, live: &Board) {
        self.stage.enter(client, live);
    }

    fn observers(&mut self, _: &RunPlan<Scheduling>) -> Observers {
        let Some(records) = &mut self.records else {
            return Observers::default();
        };
        records.recorder = Recorder::default();
        records.recorder.observers(Observers::default())
    }

    fn traffic(&mut self) {
        if let Some(records) = &self.records {
            records.recorder.begin();
        }
    }

    fn progress(&mut self, now: &Progress) {
        let before = self.before.replace(*now);
        let (bytes, time) = before.map_or((0, Duration::ZERO), |b| (b.downloaded, b.elapsed));
        let mbps = (now.downloaded - bytes) as f64 * 8.0
            / 1e6
            / (now.elapsed - time).as_secs_f64().max(1e-3);
        let delay = now.delay.as_secs_f64() * 1e3;
        let dark = if now.dark { ", better link dark" } else { "" };
        self.bar.set_position(self.position(now.elapsed));
        self.bar
            .set_message(format!("{mbps:4.1} Mb/s, live delay {delay:4.0} ms{dark}"));
    }

    fn end(&mut self, run: &RunReport) {
        self.stage.leave();
        let text = match (&run.figures, run.failure()) {
            (_, Some(failure)) => format!("failed: {failure}"),
            (Some(figures), None) => format!(
                "{:5.1} Mb/s, live p99 {}, longest stall {:.0} ms",
                figures.download.goodput_mbps,
                figures
                    .live
                    .delay_ms
                    .map_or("-".to_owned(), |delays| format!("{:.0} ms", delays.p99)),
                figures.live.longest_stall_ms,
            ),
            (None, None) => "nothing measured".to_owned(),
        };
        let prefix = format!("{}/{} {}", self.begun, self.runs, run.name);
        self.line(&format!("{prefix:<24} {text}"));
        if let Some(records) = &self.records {
            match records.write(&run.name) {
                Ok(file) => self.line(&format!("{:24} recorded: {}", "", file.display())),
                Err(error) => self.line(&format!("{:24} not recorded: {error}", "")),
            }
        }
    }
}

/// A recording of each run.
#[derive(Debug)]
struct Records {
    folder: PathBuf,
    /// Of the run under way.
    recorder: Recorder,
}

impl Records {
    fn in_folder(folder: &Path) -> Result<Self, CliError> {
        fs::create_dir_all(folder).map_err(|error| {
            CliError::usage(format!("--record {}: {error}", folder.display()))
                .hint("name a folder that is there, or that can be made")
        })?;
        Ok(Records {
            folder: folder.to_owned(),
            recorder: Recorder::default(),
        })
    }

    /// Writes what was recorded of the run of this name: `bonded, auto` is `bonded-auto.jsonl`.
    fn write(&self, run: &str) -> io::Result<PathBuf> {
        let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = run.to_lowercase().chars().map(safe).collect();
        let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
        let file = self.folder.join(format!("{}.jsonl", words.join("-")));
        let mut text = serde_json::to_string(&Header::now())? + "\n";
        for line in self.recorder.all().lines {
            text += &serde_json::to_string(&line)?;
            text.push('\n');
        }
        fs::write(&file, text)?;
        Ok(file)
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_serve_is_told_who_does() {
        let refused = object_scheduler("mend").unwrap_err();
        assert!(refused.contains("sos-rateless"), "{refused}");
        assert!(scheduler("sos").unwrap_err().contains("mend"));
        assert_eq!(object_scheduler("sos").unwrap().name(), "sos");
    }
}
