//! `marline setup`: from an installed program to one that is started with the host.
//!
//! | file | what |
//! | --- | --- |
//! | `ask.rs` | questions on a terminal |
//! | `text.rs` | the configuration as commented text |
//! | `files.rs` | where files lie, below a root that may be staged; nothing is overwritten |
//! | `service.rs` | the systemd unit and the user that it runs as |
//! | `of_server.rs`, `of_client.rs` | what each end asks, writes and says |

mod ask;
mod files;
mod of_client;
mod of_server;
mod service;
mod text;

use super::CliError;
use crate::config::{RawClient, RawServer, Written};
use ask::Asker;
use files::Files;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Configure a client or a server, and have it started with the host.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Asks on a terminal, and takes what the flags say; without a terminal, or with --yes, the rest is as
its defaults are. Writes a commented configuration below /etc/marline, makes the key, installs and
enables the systemd unit, and ends with `marline doctor`. No configuration is overwritten, and no
firewall is opened: the commands for it are shown.

Examples:
  marline setup server                              asks, and prints the connection string
  marline setup client 'marline://...' --path wlan0 --path wwan0
                                                    prints this client's key
  marline setup server --advertise vpn.example.com --tun --tun-setup --yes
  marline setup client 'marline://...' --name van --root /tmp/staged --yes")]
pub(super) struct Args {
    #[command(subcommand)]
    side: Side,
}

#[derive(Debug, clap::Subcommand)]
enum Side {
    /// Configure `marline server`; prints its connection string. The flags are those of `marline
    /// server`, and become its configuration.
    Server(Box<OfServer>),
    /// Configure `marline client`; prints its public key, which the server must know. The flags are
    /// those of `marline client`, and become its configuration.
    Client(Box<OfClient>),
}

#[derive(Debug, clap::Args)]
struct OfServer {
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    raw: RawServer,
}

#[derive(Debug, clap::Args)]
struct OfClient {
    /// Connection string that `marline setup server`, or `marline server`, has printed.
    #[arg(value_name = "STRING", conflicts_with = "server")]
    connection: Option<String>,
    /// Name of this client: its configuration is client-NAME.toml, its unit marline-client@NAME.
    #[arg(long, default_value = "main")]
    name: String,
    #[command(flatten)]
    how: How,
    #[command(flatten)]
    raw: RawClient,
}

/// How it is done, whichever end it is.
#[derive(Debug, Default, Clone, clap::Args)]
struct How {
    /// Write below this folder instead of /, for packagers and tests: no user is made, nothing is
    /// started, and the files are this user's.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Ask nothing: what no flag says is as its default is.
    #[arg(long, short)]
    yes: bool,
    /// Enable the service, and do not start it yet.
    #[arg(long)]
    no_start: bool,
}

pub(super) fn run(args: Args) -> Result<(), CliError> {
    let how = match &args.side {
        Side::Server(side) => &side.how,
        Side::Client(side) => &side.how,
    };
    let files = Files::below(how.root.as_deref())?;
    let mut asker = Asker::of_terminal(how.yes);
    match args.side {
        Side::Server(side) => of_server::run(side.raw, &side.how, &files, &mut asker),
        Side::Client(side) => of_client::run(*side, &files, &mut asker),
    }
}

/// Says on standard error what was done, or is to be done.
fn say(text: impl Display) {
    // Nobody is left to tell when it is closed.
    let _ = writeln!(io::stderr(), "{text}");
}

fn written(text: impl Display) -> Written {
    match Written::flag(&text.to_string()) {
        Ok(value) => value,
        Err(never) => match never {},
    }
}

/// Flags that name files, as they are to stand in a configuration that lies elsewhere, and that
/// `files`' service can have.
fn absolute(value: &mut Option<Written>, files: &Files) -> Result<(), CliError> {
    if let Some(file) = value.as_mut().filter(|file| file.text != "off") {
        let path = std::path::absolute(&file.text)
            .map_err(|error| CliError::usage(format!("{}: {error}", file.text)))?;
        if service::is_to_run(files) {
            refuse_hidden(&path)?;
        }
        *file = written(path.display());
    }
    Ok(())
}

/// # Errors
/// A service does not see that file.
fn refuse_hidden(file: &Path) -> Result<(), CliError> {
    if !service::is_hidden(file) {
        return Ok(());
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let file = file.display();
    let error = format!("a service cannot use {file}, which is in a folder that it does not see");
    Err(CliError::usage(error).hint(format!(
        "have it in /etc/marline: `install -D -m 600 {file} /etc/marline/{name}`, and name that one; what \
         the service writes is kept in /var/lib/marline"
    )))
}

/// Gives a file that a flag names to the services' user, if it lies in /etc/marline; otherwise it
/// is said that the service must be able to read it.
fn share(files: &Files, file: &Path) -> Result<(), CliError> {
    if files.are_own(file) {
        files.give(file, service::USER)?;
    } else if service::is_to_run(files) {
        say(format_args!(
            "{} stays whose it is; the service runs as {}, which must be able to read it",
            file.display(),
            service::USER
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_a_service_does_not_see_is_refused_with_where_to_have_it() {
        let error = refuse_hidden(Path::new("/root/keys/mine")).unwrap_err();
        let error = error.in_one();
        assert!(
            error.contains("/root/keys/mine /etc/marline/mine"),
            "{error}"
        );
        refuse_hidden(Path::new("/etc/marline/mine")).unwrap();
    }
}
