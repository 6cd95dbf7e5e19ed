//! What `marline setup server` asks, writes and says.

use super::super::announce::{Announcement, reached_at};
use super::super::clients;
use super::super::{CliError, doctor, identity, output};
use super::ask::Asker;
use super::files::Files;
use super::service::{self, USER};
use super::{How, absolute, say, share, text, written};
use crate::config::{RawServer, ServerConfig, Source, Written};
use marline::identity::{AllowedClient, DEFAULT_PORT, HostPort, Identity, PublicKey};
use std::net::SocketAddr;
use std::path::Path;

const INTRO: &str = "The configuration of `marline server`, written by `marline setup server`. The keys are the names of \
     its flags: `marline server --help`. After a change: `systemctl reload marline-server` for the list \
     of clients, `systemctl restart marline-server` for the rest.";
const LIST: &str = "# Who is let in: a public key and a name a line. `marline clients add KEY NAME` adds one, and the\n\
     # server reads the list again.\n";

pub(super) fn run(
    mut raw: RawServer,
    how: &How,
    files: &Files,
    asker: &mut Asker,
) -> Result<(), CliError> {
    let configuration = files.at("/etc/marline/server.toml");
    let service = service::of_server();
    files.refuse(&configuration, &service.unit)?;
    service.check(files)?;
    let own_list = raw.allow_clients_file.is_none();
    complete(&mut raw, files, asker)?;
    // Refused before anything is written.
    ServerConfig::check_running(&Source::flags(raw.clone()))?;
    let clients = match own_list {
        true => take_clients(&mut raw)?,
        false => Vec::new(),
    };

    service::make_user(files)?;
    // The configuration comes last: where it is, nothing is set up again.
    let key = made_key(files, &raw.identity, &configuration)?;
    if own_list {
        let list = files.at("/etc/marline/clients");
        if !list.exists() {
            files.write_new(&list, LIST, 0o644)?;
            say(format_args!("written: {}", list.display()));
        }
        for client in clients {
            if !clients::let_in(&list, &client)? {
                say(format_args!(
                    "{} stands in {} already, and stays as it is there",
                    client.key,
                    list.display()
                ));
            }
        }
    }
    let text = text::commented(&raw, INTRO).map_err(CliError::runtime)?;
    files.write_new(&configuration, &text, 0o644)?;
    say(format_args!("written: {}", configuration.display()));
    let source = Source::load(RawServer::default(), Some(&configuration))?;
    let config = ServerConfig::check(&source)?;
    say(firewall(&config.listen, config.tcp));
    let by_hand = format!("marline server --config {}", configuration.display());
    // Whatever became of the service, the string is needed, and the doctor may know why.
    let installed = service.install(files, how, &by_hand);
    let announced = announce(&config, &key);
    let checked = doctor::of_server(&configuration);
    installed.and(announced).and(checked)
}

/// Prints what clients connect by.
fn announce(config: &ServerConfig, key: &Identity) -> Result<(), CliError> {
    let announcement = Announcement {
        key: key.public_key(),
        advertise: config.advertise.clone(),
        bound: config.listen.clone(),
    };
    match announcement.string()? {
        Some(string) => {
            say(format_args!(
                "clients connect by this string: marline setup client '{string}'"
            ));
            say("a client prints its key, which is let in by: marline clients add KEY NAME");
            output::line(&string.to_string())
        }
        None => {
            say(
                "this host has no public address yet; with one, `marline identity show \
                 --address HOST` prints what clients connect by",
            );
            Ok(())
        }
    }
}

/// What the flags have left open: asked, or as it usually is.
fn complete(raw: &mut RawServer, files: &Files, asker: &mut Asker) -> Result<(), CliError> {
    for file in [
        &mut raw.identity,
        &mut raw.allow_clients_file,
        &mut raw.clients_state,
        &mut raw.control,
        &mut raw.tun_state,
    ] {
        absolute(file, files)?;
    }
    if raw.identity.is_none() {
        raw.identity = Some(written("identity"));
    }
    if asker.is_there() && raw.listen.is_empty() {
        let port = asker.ask(
            "UDP and TCP port to listen on",
            &DEFAULT_PORT.to_string(),
            |answer| match answer.parse::<u16>() {
                Ok(port) if port > 0 => Ok(port),
                _ => Err("a port is a number from 1 to 65535"),
            },
        );
        let port = port.map_err(CliError::usage)?;
        if port != DEFAULT_PORT {
            raw.listen = ["0.0.0.0", "[::]"]
                .map(|host| written(format_args!("{host}:{port}")))
                .into();
        }
    }
    if asker.is_there() && raw.advertise.is_empty() {
        let bound: Vec<SocketAddr> = match raw.listen.is_empty() {
            true => vec![SocketAddr::from(([0, 0, 0, 0], DEFAULT_PORT))],
            false => {
                let read = |value: &Written| value.text.parse().ok();
                raw.listen.iter().filter_map(read).collect()
            }
        };
        let guess = reached_at(&[], &bound);
        let guess = guess.first().map(ToString::to_string);
        let question = "Address or name at which clients reach this host";
        let answer = asker.ask(question, &guess.unwrap_or_default(), |answer| match answer
            .is_empty()
        {
            true => Ok(None),
            false => HostPort::parts(answer).map(|_| Some(answer.to_owned())),
        });
        if let Some(host) = answer.map_err(CliError::usage)? {
            raw.advertise = vec![written(host)];
        }
    }
    if asker.is_there() && raw.allow_client.is_empty() && raw.allow_clients_file.is_none() {
        let question = "Key of a client that is let in, if you have it already";
        let answer = asker.ask(question, "", |answer| match answer {
            "" => Ok(None),
            key => key.parse::<PublicKey>().map(Some),
        });
        if let Some(key) = answer.map_err(CliError::usage)? {
            raw.allow_client = vec![written(key)];
        }
    }
    if asker.is_there()
        && raw.tun.is_none()
        && asker.agrees("Carry clients' IP packets, too, by a network interface of the server's")
    {
        raw.tun = Some(written(marline_apps::tun::DEVICE));
        raw.tun_setup = Some(written("on"));
    }
    Ok(())
}

/// The clients of --allow-client, who go into the list, where `marline clients` finds them.
fn take_clients(raw: &mut RawServer) -> Result<Vec<AllowedClient>, CliError> {
    let values = std::mem::take(&mut raw.allow_client);
    raw.allow_clients_file = Some(written("clients"));
    let read = |value: &Written| {
        let refused = |why: String| CliError::usage(format!("--allow-client: {why}"));
        let client = value.text.parse::<AllowedClient>();
        let client = client.map_err(|error| refused(error.to_string()))?;
        // It becomes a line of a file.
        match client.name.contains(char::is_control) {
            true => Err(refused(
                "a name has no line ends or other control characters".to_owned(),
            )),
            false => Ok(client),
        }
    };
    values.iter().map(read).collect()
}

/// This host's key, which is made if there is none, in the file that `configuration` names.
pub(super) fn made_key(
    files: &Files,
    name: &Option<Written>,
    configuration: &Path,
) -> Result<Identity, CliError> {
    let name = name.as_ref().map_or("identity", |it| it.text.as_str());
    let file = &configuration.with_file_name(name);
    files.make_own()?;
    let is_new = !file.exists();
    let key = identity::kept(file)?;
    match is_new {
        true => files.give(file, USER).map(drop)?,
        false => share(files, file)?,
    }
    say(format_args!("key: {}", file.display()));
    Ok(key)
}

/// What opens the ports; it is said, not done.
fn firewall(listen: &[SocketAddr], tcp: bool) -> String {
    let mut ports: Vec<u16> = listen.iter().map(SocketAddr::port).collect();
    ports.sort_unstable();
    ports.dedup();
    let protocols: &[&str] = if tcp { &["udp", "tcp"] } else { &["udp"] };
    let each = |command: &dyn Fn(u16, &str) -> String| {
        let commands = ports.iter().flat_map(|port| {
            protocols
                .iter()
                .map(move |protocol| command(*port, protocol))
        });
        commands.collect::<Vec<_>>().join(" && ")
    };
    let has = |program: &str| {
        let folders = ["/usr/sbin", "/usr/bin", "/sbin"];
        folders
            .iter()
            .any(|it| Path::new(it).join(program).exists())
    };
    let how = if has("ufw") {
        each(&|port, protocol| format!("ufw allow {port}/{protocol}"))
    } else if has("firewall-cmd") {
        each(&|port, protocol| format!("firewall-cmd --permanent --add-port={port}/{protocol}"))
            + " && firewall-cmd --reload"
    } else {
        "`marline doctor server` looks for rules that drop it; a provider's own firewall is opened in its console"
            .to_owned()
    };
    let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    format!(
        "firewall: nothing was opened. Clients need {} port {}: {how}",
        if tcp { "UDP and TCP" } else { "UDP" },
        ports.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::{answering, nobody};
    use super::super::files::tests::staged;
    use super::*;

    #[test]
    fn what_is_not_asked_is_left_to_the_defaults() {
        let mut raw = RawServer::default();
        complete(&mut raw, &staged(), &mut nobody()).unwrap();
        assert_eq!(raw.identity.unwrap().text, "identity");
        assert!(raw.listen.is_empty() && raw.advertise.is_empty() && raw.tun.is_none());
    }

    #[test]
    fn what_is_answered_is_in_the_configuration_and_a_wrong_answer_is_asked_again() {
        let mut raw = RawServer::default();
        let key = PublicKey::from_bytes([3; 32]);
        let answers = format!("0\n4500\nvpn.example.com\nmarline-pub:x\n{key}\nyes\n");
        complete(&mut raw, &staged(), &mut answering(&answers)).unwrap();
        let listen: Vec<&str> = raw.listen.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(listen, ["0.0.0.0:4500", "[::]:4500"]);
        assert_eq!(raw.advertise[0].text, "vpn.example.com");
        assert_eq!(take_clients(&mut raw).unwrap(), [AllowedClient::new(key)]);
        assert!(raw.allow_client.is_empty());
        assert_eq!(raw.tun.unwrap().text, marline_apps::tun::DEVICE);
    }

    #[test]
    fn a_firewall_is_opened_by_whom_it_belongs_to() {
        let listen = ["0.0.0.0:4433", "[::]:4433"].map(|it| it.parse().unwrap());
        let text = firewall(&listen, true);
        assert!(text.contains("UDP and TCP port 4433"), "{text}");
        assert!(text.contains("nothing was opened"), "{text}");
    }
}
