//! `marline clients`: the list of those that a server lets in.
//!
//! | file | what |
//! | --- | --- |
//! | `edit.rs` | changes of its text |
//! | `list.rs` | how it is shown |

mod edit;
mod list;

use super::page::Layout;
use super::{CliError, output, status};
use crate::config::{Grants, default_clients, default_seen};
use crate::control::Seen;
use crate::control::protocol::{Outcome, Request};
use crate::control::status::{ClientStatus, Role};
use crate::platform;
use clap::Subcommand;
use edit::{Change, added, changed, revoked};
use list::{Listed, table};
use marline::identity::{AllowList, PublicKey};
use marline_apps::grant;
use marline_apps::whole::write_whole;
use marline_base::text::Problem;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// List, add, change and revoke the clients that a server lets in.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The list is the file that the server has by --allow-clients-file. A server that runs takes a change up
at once: the sessions of a client that is revoked end, all others go on.

A line is `[OPTIONS] KEY [NAME]`, options separated by commas, without blanks:
  down=20mbit                     what it may receive, up=5mbit: what it may send
  allow-target=10.1.0.0/16:443    what it may reach, in place of the server's --allow-target
  deny-target=*:25                what it may not reach, beside the server's --deny-target
  publish=tcp:8443+udp:9000-9010  ports of the server that it may have lead to it
  prefix=192.168.7.0/24           networks behind it, in the tunnel
  address=10.77.0.9               its address in the tunnel
Of rules and ports there may be several, joined by + or each by itself.

Examples:
  marline clients add marline-pub:... van in Turin
  marline clients add -o down=20mbit -o publish=tcp:8443 marline-pub:... studio
  marline clients change 'van in Turin' -o up=5mbit -o down=
  marline clients list
  marline clients revoke 'van in Turin'
  marline server --allow-clients-file ~/.config/marline/clients")]
pub(super) struct Args {
    /// The list [default: $XDG_CONFIG_HOME/marline/clients, or where there is none
    /// /etc/marline/clients].
    #[arg(long, value_name = "FILE", global = true)]
    file: Option<PathBuf>,
    /// Control socket of the server.
    #[arg(long, value_name = "PATH", global = true)]
    control: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show who is let in, and who is connected now.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Let a client in.
    Add {
        /// Its public key, which `marline identity show` prints there.
        #[arg(value_name = "KEY")]
        key: String,
        /// A name for it, for logs and for this list.
        #[arg(value_name = "NAME")]
        name: Vec<String>,
        /// What it is granted. Give it once for each option.
        #[arg(short = 'o', long = "option", value_name = "NAME=VALUE")]
        options: Vec<String>,
    },
    /// Grant a client something else, or give it another name.
    Change {
        /// Its public key or its name.
        #[arg(value_name = "KEY|NAME")]
        who: String,
        /// What it is granted from now on, in place of what that name stood for; `NAME=` takes it
        /// away. Give it once for each option.
        #[arg(short = 'o', long = "option", value_name = "NAME=VALUE")]
        options: Vec<String>,
        /// Its new name.
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Let a client in no more, and end its sessions.
    Revoke {
        /// Its public key or its name.
        #[arg(value_name = "KEY|NAME")]
        who: String,
    },
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let file = args.file.clone().or_else(default_clients).ok_or_else(|| {
        CliError::usage("there is no place for a list: neither XDG_CONFIG_HOME nor HOME is set")
            .hint("name the file: --file FILE")
    })?;
    let in_file = |problem| refused(&file, problem);
    match &args.action {
        Action::List { json } => list(args, &file, *json),
        Action::Add { key, name, options } => {
            let (key, name) = (read_key(key)?, name.join(" "));
            let change = Change {
                options,
                name: Some(&name),
            };
            let text = added(&read(&file)?, key, &change).map_err(in_file)?;
            write(args, &file, &text)?;
            output::line(&format!("{key} is let in"))
        }
        Action::Change { who, options, name } => {
            if options.is_empty() && name.is_none() {
                return Err(CliError::usage("nothing is to be changed")
                    .hint("say what: -o NAME=VALUE, or --name NAME"));
            }
            let name = name.as_deref();
            let change = Change { options, name };
            let (text, key) = changed(&read(&file)?, who, &change).map_err(in_file)?;
            write(args, &file, &text)?;
            output::line(&format!("{key} is changed"))
        }
        Action::Revoke { who } => {
            let (text, key) = revoked(&read(&file)?, who).map_err(in_file)?;
            write(args, &file, &text)?;
            output::line(&format!("{key} is let in no more"))
        }
    }
}

/// Adds a client to the list in `file`, with its name and its options. False if it stands there
/// already, as whatever.
#[cfg(unix)]
pub(super) fn let_in(
    file: &Path,
    client: &marline::identity::AllowedClient,
) -> Result<bool, CliError> {
    let text = read(file)?;
    if edit::is_listed(&text, client.key) {
        return Ok(false);
    }
    let text = edit::appended(&text, client.clone(), &Change::default());
    store(file, &text.map_err(|problem| refused(file, problem))?)?;
    Ok(true)
}

fn list(args: &Args, file: &Path, json: bool) -> Result<(), CliError> {
    let allow = AllowList::load(file).map_err(CliError::runtime)?;
    let grants = Grants::of_list(&allow).map_err(CliError::from)?;
    let status = match status::request_of(&[Role::Server], args.control.as_ref(), &Request::Status)
    {
        Ok(Outcome::Status { status }) => Some(status),
        // Nobody is connected to a server that does not run.
        _ => None,
    };
    let sessions = status.as_ref().map(|status| {
        let mut sessions: HashMap<&str, usize> = HashMap::new();
        for session in &status.sessions {
            *sessions.entry(&session.peer).or_default() += 1;
        }
        sessions
    });
    let seen: HashMap<String, Option<u64>> = match &status {
        Some(status) => status.clients.clone(),
        None => seen_before(&allow),
    }
    .into_iter()
    .map(|client| (client.key, client.last_seen))
    .collect();
    let mut clients = Vec::new();
    for client in allow.clients() {
        let key = client.key.to_string();
        let of_client = |all: &HashMap<&str, usize>| all.get(key.as_str()).copied();
        let sessions = sessions
            .as_ref()
            .map(|all| of_client(all).unwrap_or_default());
        let mut options: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in grant::pairs(&client.options).unwrap_or_default() {
            options
                .entry(name.to_owned())
                .or_default()
                .push(value.to_owned());
        }
        let listed = Listed {
            name: client.name,
            connected: sessions.map(|sessions| sessions > 0),
            sessions,
            last_seen: seen.get(&key).copied().flatten(),
            down_bps: None,
            up_bps: None,
            options,
            key,
        };
        let limits = grants.limits.get(&client.key).copied();
        clients.push(listed.limited(limits.unwrap_or_default()));
    }
    if json {
        return output::json(&clients);
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.unwrap_or_default().as_secs();
    output::line(table(&clients, now, Layout::of_output(false)).trim_end())?;
    if sessions.is_none() {
        tracing::info!("no server answers here: who is connected is not known");
    }
    Ok(())
}

/// When clients were seen last, as a server that does not run has kept it in the usual place.
fn seen_before(allow: &AllowList) -> Vec<ClientStatus> {
    let clients = allow.clients().into_iter().map(|client| ClientStatus {
        key: client.key.to_string(),
        name: client.name,
        last_seen: None,
    });
    Seen::load(default_seen()).fill(clients.collect())
}

fn read_key(text: &str) -> Result<PublicKey, CliError> {
    text.parse::<PublicKey>().map_err(|error| {
        CliError::usage(error.to_string())
            .hint("`marline identity show` on the client prints its key")
    })
}

fn refused(file: &Path, problem: Problem) -> CliError {
    let error = CliError::runtime(format!("{}: {}", file.display(), problem.message));
    match problem.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// The list's text, after it was found to be one; nothing where there is no file yet.
fn read(file: &Path) -> Result<String, CliError> {
    if !file.exists() {
        return Ok(String::new());
    }
    AllowList::load(file).map_err(CliError::runtime)?;
    fs::read_to_string(file)
        .map_err(|error| CliError::runtime(format!("cannot read {}: {error}", file.display())))
}

/// Writes the list, and has a server that runs read it.
fn write(args: &Args, file: &Path, text: &str) -> Result<(), CliError> {
    store(file, text)?;
    reload(args)
}

/// Writes the list, unless its lines contradict each other.
fn store(file: &Path, text: &str) -> Result<(), CliError> {
    let allow = AllowList::parse(file, text).map_err(CliError::runtime)?;
    Grants::of_list(&allow).map_err(CliError::from)?;
    // Public keys are no secret; who may write here lets others in.
    const MODE: u32 = 0o644;
    let known = fs::metadata(file).map(|known| known.permissions());
    let written = write_whole(file, text.as_bytes());
    let done: io::Result<()> = written.and_then(|()| match known {
        Ok(permissions) => fs::set_permissions(file, permissions),
        Err(_) => platform::set_mode(file, MODE),
    });
    done.map_err(|error| CliError::runtime(format!("cannot write {}: {error}", file.display())))
}

/// Has a server that runs read its list again.
fn reload(args: &Args) -> Result<(), CliError> {
    let asked = status::asked_of(&[Role::Server], args.control.as_ref(), &Request::Reload);
    match asked.map_err(|error| error.of("the list is written, but the server refuses it"))? {
        Ok(_) => Ok(()),
        Err(error) if args.control.is_some() => Err(error),
        Err(_) => {
            tracing::info!("no server answers here: it reads the list when it starts");
            Ok(())
        }
    }
}
