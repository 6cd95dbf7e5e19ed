//! The command line: one file a subcommand, and what they share.
//!
//! Standard output carries data; everything else goes to standard error. Exit codes: 0 success (a
//! reader that closes our output early is success), 1 failure at run time, 2 wrong usage or
//! configuration.

mod announce;
pub mod client;
mod clients;
#[cfg(feature = "experiments")]
mod demo;
mod descriptors;
mod doctor;
mod error;
#[cfg(feature = "generate")]
mod generate;
mod granted;
mod identity;
mod line;
#[cfg(feature = "experiments")]
mod link;
mod live;
mod logging;
mod networks;
mod notify;
pub mod output;
mod owner;
mod page;
mod paths;
mod qlog;
#[cfg(feature = "experiments")]
mod real;
mod record;
mod reload;
#[cfg(feature = "experiments")]
mod repro;
#[cfg(feature = "experiments")]
mod runs;
mod runtime;
mod schedulers;
pub mod server;
mod service;
#[cfg(unix)]
mod setup;
mod signals;
#[cfg(feature = "experiments")]
mod sim;
mod status;
#[cfg(feature = "experiments")]
mod stop;
mod top;
mod web_page;
mod words;

pub use error::CliError;
pub(crate) use runtime::runtime;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
#[cfg(feature = "experiments")]
use marline_lab::process::end_with_stdin;
use marline_proto::sched::{Entry, registry};
use std::process::ExitCode;

/// Several unreliable links twisted into one low-latency connection.
#[derive(Debug, Parser)]
#[command(
    name = "marline",
    version,
    max_term_width = 100,
    propagate_version = true
)]
pub struct Cli {
    /// What to log to standard error: error, warn, info, debug, trace, off, or a list such as
    /// info,marline::live=debug; at warn and info, libraries log only errors unless the list names
    /// them, as info,quinn=warn does [default: info; demo: warn; doctor: off]
    #[arg(long, global = true, env = logging::VARIABLE, value_name = "LEVEL")]
    log: Option<String>,
    /// End when standard input does: for a process that must not outlive the one that started it
    #[cfg(feature = "experiments")]
    #[arg(long, global = true, hide = true)]
    end_with_stdin: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "experiments")]
    Demo(demo::Args),
    Client(Box<client::Args>),
    Server(Box<server::Args>),
    #[cfg(unix)]
    Setup(Box<setup::Args>),
    Clients(clients::Args),
    Identity(identity::Args),
    #[cfg(feature = "experiments")]
    Link(link::Args),
    Live(live::Args),
    Status(status::Args),
    Top(top::Args),
    Doctor(doctor::Args),
    Paths(paths::Args),
    Record(record::Args),
    #[cfg(feature = "experiments")]
    Repro(repro::Args),
    #[cfg(feature = "experiments")]
    Sim(sim::Args),
    #[cfg(feature = "generate")]
    #[command(hide = true)]
    Generate(generate::Args),
}

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    main_with(&[])
}

/// Runs the program with the process's arguments and with further schedulers, which every command
/// knows by their names: `sim run`, `sim sweep`, `repro`, `demo`, `client`, `server`.
///
/// ```no_run
/// use marline::FlowKind;
/// use marline::sched::{Entry, Plan, Scheduler};
///
/// /// Sends everything on the first path that has room.
/// #[derive(Debug)]
/// struct First;
///
/// impl Scheduler for First {
///     fn plan(&mut self, plan: &mut Plan<'_>) {
///         while plan.next_len().is_some() {
///             match plan.paths().iter().position(|path| path.has_room()) {
///                 Some(path) => plan.send(path),
///                 None => return,
///             };
///         }
///     }
/// }
///
/// static FIRST: Entry = Entry {
///     name: "first",
///     publication: "this page",
///     help: "the first path that has room",
///     kinds: &[FlowKind::Stream, FlowKind::Packets],
///     options: &[],
///     new: |_| Box::new(First),
/// };
///
/// fn main() -> std::process::ExitCode {
///     marline_cli::main_with(&[&FIRST])
/// }
/// ```
pub fn main_with(schedulers: &[&'static Entry]) -> ExitCode {
    if !schedulers.is_empty()
        && let Err(error) = registry::add(schedulers)
    {
        return CliError::usage(error).report();
    }
    let parsed = Cli::command()
        .try_get_matches_from(words::joined(std::env::args_os()))
        .and_then(|matches| {
            let cli = Cli::from_arg_matches(&matches)?;
            Ok((cli, matches))
        });
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // Help and version go to standard output and are success, also into a closed pipe.
            let _ = error.print();
            return if error.use_stderr() {
                ExitCode::from(2)
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match run(cli, &matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}

fn run(cli: Cli, matches: &ArgMatches) -> Result<(), CliError> {
    let default_log = match cli.command {
        // Its links go dark on purpose, and it shows its progress otherwise.
        #[cfg(feature = "experiments")]
        Command::Demo(_) => "warn",
        // What it finds is what it prints.
        Command::Doctor(_) => "off",
        // What it does is said by itself.
        #[cfg(unix)]
        Command::Setup(_) => "warn",
        _ => "info",
    };
    let from = match matches.value_source("log") {
        Some(ValueSource::EnvVariable) => logging::From::Variable,
        _ => logging::From::Flag,
    };
    logging::start(cli.log.as_deref().unwrap_or(default_log), from)?;
    #[cfg(feature = "experiments")]
    if cli.end_with_stdin {
        end_with_stdin();
    }
    match cli.command {
        #[cfg(feature = "experiments")]
        Command::Demo(args) => demo::run(&args),
        Command::Client(args) => client::run(*args),
        Command::Server(args) => server::run(*args),
        #[cfg(unix)]
        Command::Setup(args) => setup::run(*args),
        Command::Clients(args) => clients::run(&args),
        Command::Identity(args) => identity::run(args),
        #[cfg(feature = "experiments")]
        Command::Link(args) => link::run(&args),
        Command::Live(args) => live::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Doctor(args) => doctor::run(args),
        Command::Paths(args) => paths::run(&args),
        Command::Record(args) => record::run(&args),
        #[cfg(feature = "experiments")]
        Command::Repro(args) => repro::run(&args),
        #[cfg(feature = "experiments")]
        Command::Sim(args) => sim::run(&args),
        #[cfg(feature = "generate")]
        Command::Generate(args) => generate::run(&args),
    }
}
