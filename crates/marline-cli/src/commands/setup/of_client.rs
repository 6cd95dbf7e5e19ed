//! What `marline setup client` asks, writes and says.

use super::super::{CliError, doctor, output};
use super::ask::Asker;
use super::files::Files;
use super::of_server::made_key;
use super::{OfClient, absolute, say, service, share, text, written};
use crate::config::{ClientConfig, RawClient, Source};
use marline::Path;
use marline::identity::ConnectionString;
use marline::interfaces::Sysfs;

/// Every link, and none of those that containers and virtual machines have inside this host.
const LINKS: &str = "all,except=docker*+br-*+veth*+virbr*";

pub(super) fn run(side: OfClient, files: &Files, asker: &mut Asker) -> Result<(), CliError> {
    let OfClient {
        connection,
        name,
        how,
        mut raw,
    } = side;
    if !is_plain(&name) {
        return Err(CliError::usage(format!("`{name}` is no name for a client"))
            .hint("letters, digits, `-` and `_`, such as --name van"));
    }
    let configuration = files.at(&format!("/etc/marline/client-{name}.toml"));
    let service = service::of_client(&name);
    files.refuse(&configuration, &service.unit)?;
    service.check(files)?;
    if let Some(string) = connection {
        raw.server = Some(written(string));
    }
    complete(&mut raw, files, asker)?;
    // Refused before anything is written.
    ClientConfig::check(&Source::flags(raw.clone()))?;

    service::make_user(files)?;
    // The configuration comes last: where it is, nothing is set up again.
    let key = made_key(files, &raw.identity, &configuration)?.public_key();
    if let Some(password) = &raw.socks_password_file {
        share(files, &configuration.with_file_name(&password.text))?;
    }
    let intro = format!(
        "The configuration of `marline client`, written by `marline setup client`. The keys are the names \
         of its flags: `marline client --help`. After a change: `systemctl reload marline-client@{name}` \
         for paths, `systemctl restart marline-client@{name}` for the rest."
    );
    let text = text::commented(&raw, &intro).map_err(CliError::runtime)?;
    files.write_new(&configuration, &text, 0o644)?;
    say(format_args!("written: {}", configuration.display()));
    let by_hand = format!("marline client --config {}", configuration.display());
    // Whatever became of the service, the key is needed, and the doctor may know why.
    let installed = service.install(files, &how, &by_hand);
    say(format_args!(
        "this client's key; the server lets it in by: marline clients add {key} {name}"
    ));
    let shown = output::line(&key.to_string());
    let checked = doctor::of_client(&configuration);
    installed.and(shown).and(checked)
}

/// What a file's and a unit's name may have without being quoted.
fn is_plain(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    !name.is_empty() && name.len() <= 32 && name.chars().all(plain) && !name.starts_with('-')
}

/// What the flags have left open: asked, or as it usually is.
fn complete(raw: &mut RawClient, files: &Files, asker: &mut Asker) -> Result<(), CliError> {
    for file in [
        &mut raw.identity,
        &mut raw.usage,
        &mut raw.socks_password_file,
        &mut raw.control,
        &mut raw.sysfs,
    ] {
        absolute(file, files)?;
    }
    if raw.identity.is_none() {
        raw.identity = Some(written("identity"));
    }
    if raw.server.is_none() {
        if !asker.is_there() {
            return Err(CliError::usage("no server is given").hint(
                "give the string that `marline setup server` has printed: marline setup client 'marline://...'",
            ));
        }
        let question = "Connection string, which `marline setup server` has printed";
        let string = asker.ask(question, "", |answer| answer.parse::<ConnectionString>());
        raw.server = Some(written(string.map_err(CliError::usage)?));
    }
    if raw.path.is_empty() {
        if asker.is_there() {
            let found = Sysfs::default().devices();
            let names: Vec<&str> = found.iter().map(|device| device.name.as_str()).collect();
            say(format_args!("interfaces here: {}", names.join(" ")));
        }
        let question = "Links to use, such as `wlan0 wwan0`";
        let paths = asker.ask(question, LINKS, |answer| {
            let words = answer.split_whitespace();
            let read = words.map(|word| word.parse::<Path>().map(|_| written(word)));
            read.collect::<Result<Vec<_>, _>>()
        });
        raw.path = paths.map_err(CliError::usage)?;
    }
    if asker.is_there()
        && raw.tun.is_none()
        && asker.agrees("Carry everything that this host sends, by a network interface")
    {
        raw.tun = Some(written(marline_apps::tun::DEVICE));
        raw.tun_setup = Some(written("on"));
        raw.tun_route = ["0.0.0.0/0", "::/0"].map(written).into();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::ask::tests::{answering, nobody};
    use super::super::files::tests::staged;
    use super::*;
    use marline::identity::PublicKey;

    fn string() -> String {
        let key = PublicKey::from_bytes([1; 32]);
        let string = ConnectionString::new(key, vec!["host".parse().unwrap()]);
        string.unwrap().to_string()
    }

    #[test]
    fn a_client_needs_a_server_and_takes_every_link() {
        let mut raw = RawClient::default();
        complete(&mut raw, &staged(), &mut nobody()).unwrap_err();
        raw.server = Some(written(string()));
        complete(&mut raw, &staged(), &mut nobody()).unwrap();
        assert_eq!(raw.path[0].text, LINKS);
        assert!(raw.tun.is_none());
        ClientConfig::check(&Source::flags(raw)).unwrap();
    }

    #[test]
    fn answers_become_paths_and_a_tunnel() {
        let mut raw = RawClient::default();
        let answers = format!(
            "marline://x\n{}\nwlan0 wwan0,cost=two\nwlan0 wwan0,cost=2\ny\n",
            string()
        );
        complete(&mut raw, &staged(), &mut answering(&answers)).unwrap();
        assert_eq!(raw.server.as_ref().unwrap().text, string());
        let paths: Vec<&str> = raw.path.iter().map(|it| it.text.as_str()).collect();
        assert_eq!(paths, ["wlan0", "wwan0,cost=2"]);
        assert_eq!(raw.tun_route.len(), 2);
        for (name, good) in [
            ("van-2", true),
            ("", false),
            ("a/b", false),
            ("-x", false),
            ("a b", false),
        ] {
            assert_eq!(is_plain(name), good, "{name}");
        }
    }
}
