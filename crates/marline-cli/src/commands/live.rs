//! `marline live`: targets of live entries at run time. And the running display of a client or
//! server that has some.

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "comments here are the flags' help, where brackets mean that a part may be left out"
)]

mod display;

use super::{CliError, output, status};
use crate::control::protocol::{Outcome, Request};
use clap::Subcommand;
use marline_apps::live::live_target;
use std::path::PathBuf;

pub(super) use display::show;

/// Change live entries of a running client.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  marline live target 8mbps               the encoder now makes 8 Mb/s
  marline live target 12mbps --name cam   of several entries, the one called cam
  marline live target auto                what the encoder makes is what it needs

How live entries fare, what the paths carry included: marline status [--json]")]
pub(super) struct Args {
    /// Control socket of the instance to change.
    #[arg(long, value_name = "PATH", global = true)]
    control: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say what rate a live entry needs.
    ///
    /// Only what the paths carry beyond it is spent on copies; when they carry less, the log, the
    /// status and the metrics say so. Entries with a deadline or objects=on have none.
    Target {
        /// A rate, such as 8mbps, or `auto` to have it measured.
        #[arg(value_name = "RATE", allow_hyphen_values = true)]
        target: String,
        /// Name of the entry, where there are several.
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let Action::Target { target, name } = &args.action;
    // Refused here, before a running instance is looked for.
    live_target(target).map_err(|problem| {
        let error = CliError::usage(format!("live target {target}: {problem}"));
        match problem.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    })?;
    let request = Request::LiveTarget {
        live: name.clone(),
        target: target.clone(),
    };
    match status::request(args.control.as_ref(), &request)? {
        Outcome::Done { .. } => {
            let entry = name
                .as_ref()
                .map_or_else(String::new, |name| format!(" of {name}"));
            output::line(&format!("the target{entry} is {target} from now on"))
        }
        other => Err(CliError::runtime(format!("unexpected answer: {other:?}"))),
    }
}
