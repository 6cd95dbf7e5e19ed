//! `marline paths`: changes the paths of a running client.

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "comments here are the flags' help, where brackets mean that a part may be left out"
)]

use super::{CliError, output, status};
use crate::control::protocol::{Outcome, Request};
use clap::Subcommand;
use marline::Path;
use std::path::PathBuf;

/// Add, remove or rest paths of a running client.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  marline paths add wwan0                        a modem was plugged in, or will be
  marline paths add 192.168.1.7,standby,cost=2   used only when nothing cheaper works
  marline paths standby wlan0                    rest it, keep it proved
  marline paths standby wlan0 --off              use it again
  marline paths remove wlan0

The names and numbers of paths: marline status")]
pub(super) struct Args {
    /// Control socket of the instance to change.
    #[arg(long, value_name = "PATH", global = true)]
    control: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Dial a further path.
    Add {
        /// Interface, what interfaces are known by, source address or `any`, with options as for
        /// --path of `marline client`:
        /// LOCAL[,except=NAMES][,standby][,cost=N][,budget=SIZE]
        /// [,server=HOST:PORT] [,carrier=auto|quic|tcp][,tcp-cc=NAME][,name=NAME].
        #[arg(value_name = "PATH")]
        path: String,
    },
    /// Stop using a path and forget it.
    Remove {
        /// Name or number of the path.
        #[arg(value_name = "NAME")]
        path: String,
    },
    /// Rest a path until no other works.
    Standby {
        /// Name or number of the path.
        #[arg(value_name = "NAME")]
        path: String,
        /// Call the path back into use.
        #[arg(long)]
        off: bool,
    },
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let (request, done) = match &args.action {
        Action::Add { path } => {
            // Refused here, before a running instance is looked for.
            path.parse::<Path>().map_err(|problem| {
                let error = CliError::usage(format!("paths add {path}: {problem}"));
                match problem.hint {
                    Some(hint) => error.hint(hint),
                    None => error,
                }
            })?;
            (
                Request::PathsAdd { path: path.clone() },
                format!("path {path} is being dialled"),
            )
        }
        Action::Remove { path } => (
            Request::PathsRemove { path: path.clone() },
            format!("path {path} removed"),
        ),
        Action::Standby { path, off } => {
            let state = if *off { "in use" } else { "on standby" };
            (
                Request::PathsStandby {
                    path: path.clone(),
                    standby: !off,
                },
                format!("path {path} {state}"),
            )
        }
    };
    match status::request(args.control.as_ref(), &request)? {
        Outcome::Done { waits: None } => output::line(&done),
        Outcome::Done { waits: Some(waits) } => {
            output::line(&format!("{done} as soon as its interface comes: {waits}"))
        }
        other => Err(CliError::runtime(format!("unexpected answer: {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_option_of_a_path() {
        let command = <Action as Subcommand>::augment_subcommands(clap::Command::new("paths"));
        let add = command.find_subcommand("add").unwrap();
        let path = add.get_positionals().next().unwrap();
        let help = path.get_help().unwrap().to_string();
        for (option, _) in Path::OPTIONS {
            assert!(help.contains(&format!("[,{option}")), "{option}: {help}");
        }
    }
}
