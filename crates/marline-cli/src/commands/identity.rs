//! `marline identity`: this host's key pair.

use super::{CliError, output, owner};
use crate::config::default_identity;
use crate::platform;
use clap::Subcommand;
use marline::identity::{ConnectionString, HostPort, Identity};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Make or show this host's key pair.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  marline identity new                       once on every host
  marline identity show                      the key for the server's --allow-client
  marline identity show --address vpn.example.com
                                             on the server: the connection string for --server")]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a key pair; an existing one is never overwritten.
    New {
        /// Key file [default: $XDG_CONFIG_HOME/marline/identity].
        file: Option<PathBuf>,
        /// Keep the key pair that is there already, which is no error then.
        #[arg(long)]
        keep: bool,
        /// Give the file to this user; needs root.
        #[arg(long, value_name = "USER")]
        owner: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the public key, or a connection string.
    Show {
        /// Key file [default: $XDG_CONFIG_HOME/marline/identity].
        file: Option<PathBuf>,
        /// Print the connection string of a server with this key at this address. Give it once for
        /// each address.
        #[arg(long, value_name = "HOST[:PORT]")]
        address: Vec<HostPort>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Shown {
    file: PathBuf,
    public_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection_string: Option<String>,
}

pub(super) fn run(args: Args) -> Result<(), CliError> {
    match args.action {
        Action::New {
            file,
            keep,
            owner,
            json,
        } => {
            let file = key_file(file)?;
            let identity = if keep { kept(&file)? } else { make(&file)? };
            if let Some(user) = owner
                && !owner::give(&file, &user)?
            {
                return Err(CliError::usage(format!("there is no user {user}"))
                    .hint(format!("make one: useradd --system {user}")));
            }
            let public_key = identity.public_key().to_string();
            if json {
                output::json(&Shown {
                    file,
                    public_key,
                    connection_string: None,
                })
            } else {
                tracing::info!("the key pair is in {}; its public half:", file.display());
                output::line(&public_key)
            }
        }
        Action::Show {
            file,
            address,
            json,
        } => {
            let file = key_file(file)?;
            let key = Identity::load(&file)
                .map_err(CliError::runtime)?
                .public_key();
            let connection_string = match address.is_empty() {
                true => None,
                false => {
                    let string = ConnectionString::new(key, address).map_err(CliError::usage)?;
                    Some(string.to_string())
                }
            };
            if json {
                output::json(&Shown {
                    file,
                    public_key: key.to_string(),
                    connection_string,
                })
            } else {
                output::line(&connection_string.unwrap_or_else(|| key.to_string()))
            }
        }
    }
}

fn key_file(file: Option<PathBuf>) -> Result<PathBuf, CliError> {
    file.or_else(default_identity).ok_or_else(|| {
        CliError::usage("there is no place for a key file: neither XDG_CONFIG_HOME nor HOME is set")
            .hint("name the file: marline identity new FILE")
    })
}

/// The key pair of `file`, which is made if there is none.
pub(super) fn kept(file: &Path) -> Result<Identity, CliError> {
    match file.exists() {
        true => Identity::load(file).map_err(CliError::runtime),
        false => make(file),
    }
}

fn make(file: &Path) -> Result<Identity, CliError> {
    if let Some(folder) = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        let is_new = !folder.exists();
        let made = platform::make_private_folder(folder);
        // The services' user finds its files there. The key is its owner's alone all the same.
        let made = made.and_then(|()| match is_new && folder == Path::new("/etc/marline") {
            true => platform::set_mode(folder, 0o755),
            false => Ok(()),
        });
        made.map_err(|error| {
            CliError::runtime(format!(
                "cannot make the folder {}: {error}",
                folder.display()
            ))
        })?;
    }
    let identity = Identity::generate().map_err(CliError::runtime)?;
    identity.save_new(file).map_err(CliError::runtime)?;
    Ok(identity)
}
