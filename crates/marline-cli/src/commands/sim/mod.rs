//! `marline sim`: experiments in virtual time.

mod check;
mod list;
mod prepare;
mod recorded;
mod run;
mod source;
mod sweep;
mod validate;
mod watch;

use super::CliError;
use clap::Subcommand;

const ABOUT: &str = "Run experiments in virtual time: schedulers over links that a file describes";

const LONG_ABOUT: &str = "\
Run experiments in virtual time: real sessions over modelled links that a scenario file describes.

The same file, scheduler and seed give the same result, to the last bit, on every machine and \
with any number of threads.";

const EXAMPLES: &str = "\
Examples:
  marline sim list
  marline sim check examples/handover
  marline sim run examples/handover
  marline sim run live.toml --scheduler all --seeds 10 --plot live.html
  marline sim sweep live.toml --vary links.b.delay=10ms,20ms,40ms --out live-delay

A scenario is a TOML file; the smallest:
  duration = \"10s\"
  schedulers = [\"min-rtt\", \"edpf\"]
  links.wifi = { rate = \"20mbit\", delay = \"5ms\", loss = \"1%\" }
  links.lte = { rate = \"10mbit\", delay = \"30ms\" }
  workloads = [{ kind = \"constant\", rate = \"8mbit\", size = 1200 }]";

/// The subcommands of `marline sim`.
#[derive(Debug, clap::Args)]
#[command(about = ABOUT, long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Sweep(sweep::Args),
    List(list::Args),
    Check(check::Args),
    Validate(validate::Args),
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    match &args.command {
        Command::Run(args) => run::run(args),
        Command::Sweep(args) => sweep::run(args),
        Command::List(args) => list::run(args),
        Command::Check(args) => check::run(args),
        Command::Validate(args) => validate::run(args),
    }
}
