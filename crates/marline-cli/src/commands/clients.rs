//! `marline clients`: the list of those that a server lets in.

use super::{CliError, output, status};
use crate::config::default_clients;
use crate::control::protocol::{Outcome, Request};
use crate::control::status::Role;
use clap::Subcommand;
use marline::identity::{AllowList, PublicKey};
use marline_apps::whole::write_whole;
use marline_base::text::Problem;
use serde::Serialize;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// List, add and revoke the clients that a server lets in.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The list is the file that the server has by --allow-clients-file. A server that runs reads it again
at once; the sessions of a client that is revoked end.

Examples:
  marline clients add marline-pub:... van in Turin
  marline clients list
  marline clients revoke 'van in Turin'
  marline server --allow-clients-file ~/.config/marline/clients")]
pub(super) struct Args {
    /// The list [default: $XDG_CONFIG_HOME/marline/clients].
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
    },
    /// Let a client in no more, and end its sessions.
    Revoke {
        /// Its public key or its name.
        #[arg(value_name = "KEY|NAME")]
        who: String,
    },
}

/// What `list --json` prints of a client.
#[derive(Debug, Serialize)]
struct Listed {
    key: String,
    name: String,
    /// Its sessions now; `null` where no server answers.
    sessions: Option<usize>,
}

pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let file = args.file.clone().or_else(default_clients).ok_or_else(|| {
        CliError::usage("there is no place for a list: neither XDG_CONFIG_HOME nor HOME is set")
            .hint("name the file: --file FILE")
    })?;
    match &args.action {
        Action::List { json } => list(args, &file, *json),
        Action::Add { key, name } => {
            let key = read_key(key)?;
            let name = name.join(" ");
            let text =
                added(&read(&file)?, key, &name).map_err(|problem| refused(&file, problem))?;
            write(&file, &text)?;
            reload(args)?;
            output::line(&format!("{key} is let in"))
        }
        Action::Revoke { who } => {
            let text = read(&file)?;
            let (text, key) = revoked(&text, who).map_err(|problem| refused(&file, problem))?;
            write(&file, &text)?;
            reload(args)?;
            output::line(&format!("{key} is let in no more"))
        }
    }
}

fn list(args: &Args, file: &Path, json: bool) -> Result<(), CliError> {
    let clients = AllowList::load(file).map_err(CliError::runtime)?.clients();
    let status = match status::request_of(&[Role::Server], args.control.as_ref(), &Request::Status)
    {
        Ok(Outcome::Status { status }) => Some(status),
        // Nobody is connected to a server that does not run.
        _ => None,
    };
    let sessions = status.map(|status| {
        let mut sessions: HashMap<String, usize> = HashMap::new();
        for session in status.sessions {
            *sessions.entry(session.peer).or_default() += 1;
        }
        sessions
    });
    let clients = clients.into_iter().map(|(key, name)| {
        let key = key.to_string();
        let sessions = sessions
            .as_ref()
            .map(|all| all.get(&key).copied().unwrap_or_default());
        Listed {
            key,
            name,
            sessions,
        }
    });
    let clients: Vec<Listed> = clients.collect();
    if json {
        return output::json(&clients);
    }
    for client in &clients {
        let state = match client.sessions {
            None => "unknown ",
            Some(0) => "away    ",
            Some(_) => "connected",
        };
        let line = format!("{}  {state:<9}  {}", client.key, client.name);
        output::line(line.trim_end())?;
    }
    if sessions.is_none() {
        tracing::info!("no server answers here: who is connected is not known");
    }
    Ok(())
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

fn write(file: &Path, text: &str) -> Result<(), CliError> {
    // Public keys are no secret; who may write here lets others in.
    const MODE: u32 = 0o644;
    let known = fs::metadata(file).map(|known| known.permissions());
    let permissions = known.unwrap_or_else(|_| fs::Permissions::from_mode(MODE));
    let done: io::Result<()> =
        write_whole(file, text.as_bytes()).and_then(|()| fs::set_permissions(file, permissions));
    done.map_err(|error| CliError::runtime(format!("cannot write {}: {error}", file.display())))
}

/// The list with one more client.
fn added(text: &str, key: PublicKey, name: &str) -> Result<String, Problem> {
    if name.contains(char::is_control) {
        return Err(Problem::new(
            "a name has no line ends or other control characters",
        ));
    }
    if let Some(line) = text.lines().find(|line| key_of(line) == Some(key)) {
        let known = name_of(line);
        let known = if known.is_empty() {
            "without a name"
        } else {
            known
        };
        return Err(
            Problem::new(format!("{key} is in the list already, {known}"))
                .hint("to give it another name, revoke it first"),
        );
    }
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    let line = format!("{key} {name}");
    Ok(format!("{text}{end}{}\n", line.trim_end()))
}

/// The list without a client, and its key.
fn revoked(text: &str, who: &str) -> Result<(String, PublicKey), Problem> {
    let asked = who.parse::<PublicKey>().ok();
    let is_meant = |line: &&str| match (key_of(line), asked) {
        (Some(key), Some(asked)) => key == asked,
        (Some(_), None) => name_of(line) == who,
        (None, _) => false,
    };
    let mut meant = text.lines().filter(is_meant);
    let key = match (meant.next(), meant.next()) {
        (Some(line), None) => key_of(line),
        (Some(_), Some(_)) => {
            return Err(Problem::new(format!("several clients are called `{who}`"))
                .hint("name it by its key: `marline clients list`"));
        }
        (None, _) => None,
    };
    let key = key.ok_or_else(|| {
        Problem::new(format!("`{who}` is not in the list"))
            .hint("`marline clients list` shows who is")
    })?;
    let left = text.lines().filter(|line| !is_meant(line));
    let left: Vec<String> = left.map(|line| format!("{line}\n")).collect();
    Ok((left.concat(), key))
}

/// The key of a line, if it has one.
fn key_of(line: &str) -> Option<PublicKey> {
    line.split_whitespace().next()?.parse().ok()
}

fn name_of(line: &str) -> &str {
    let line = line.trim();
    line.split_once(char::is_whitespace)
        .map_or("", |(_, name)| name.trim())
}

/// Has a server that runs read its list again.
fn reload(args: &Args) -> Result<(), CliError> {
    match status::request_of(&[Role::Server], args.control.as_ref(), &Request::Reload) {
        Ok(_) => Ok(()),
        Err(error) if args.control.is_some() => Err(error),
        Err(_) => {
            tracing::info!("no server answers here: it reads the list when it starts");
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> PublicKey {
        PublicKey::from_bytes([byte; 32])
    }

    #[test]
    fn a_list_keeps_its_comments_and_loses_whom_it_is_to_lose() {
        let text = format!("# ours\n{} van in Turin", key(1));
        let text = added(&text, key(2), "boat").unwrap();
        assert_eq!(
            text,
            format!("# ours\n{} van in Turin\n{} boat\n", key(1), key(2))
        );
        let problem = added(&text, key(2), "ship").unwrap_err();
        assert!(problem.message.contains("already, boat"), "{problem}");
        let (left, gone) = revoked(&text, "van in Turin").unwrap();
        assert_eq!((left, gone), (format!("# ours\n{} boat\n", key(2)), key(1)));
        let (left, _) = revoked(&text, &key(2).to_string()).unwrap();
        assert_eq!(left, format!("# ours\n{} van in Turin\n", key(1)));
        assert!(revoked(&text, "van").is_err() && revoked(&text, "# ours").is_err());
        let twice = added(&text, key(3), "boat").unwrap();
        let problem = revoked(&twice, "boat").unwrap_err();
        assert!(problem.message.contains("several"), "{problem}");
        assert_eq!(added("", key(1), "").unwrap(), format!("{}\n", key(1)));
        assert!(added("", key(1), "a\nmarline-pub:b").is_err());
    }
}
