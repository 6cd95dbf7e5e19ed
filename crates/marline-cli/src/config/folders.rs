//! Where the program keeps its files when none are named: a user's in the home (XDG Base Directory
//! Specification 0.8), a service's where its manager says (systemd.exec(5)).

use std::ffi::OsString;
use std::path::PathBuf;

/// Why there is no place for what is kept across restarts.
pub(super) const NO_STATE: &str = "there is no place for it: neither XDG_STATE_HOME nor HOME is set, \
     nor STATE_DIRECTORY, as by StateDirectory= in a systemd service";
/// Why there is no place for a key file.
pub(super) const NO_CONFIGURATION: &str = "there is no place to look for it: neither XDG_CONFIG_HOME nor HOME is set, \
     nor CONFIGURATION_DIRECTORY, as by ConfigurationDirectory= in a systemd service";

/// The list of clients of a server that `marline setup` has configured.
const OF_SETUP: &str = "/etc/marline/clients";

/// The key file when none is named: `$XDG_CONFIG_HOME/marline/identity`. `None` without a home.
pub fn default_identity() -> Option<PathBuf> {
    let folder = folder(
        |name| std::env::var_os(name),
        ["XDG_CONFIG_HOME", "CONFIGURATION_DIRECTORY"],
        [".config", "APPDATA"],
    );
    Some(folder?.join("identity"))
}

/// The list of clients that `marline clients` edits when none is named:
/// `$XDG_CONFIG_HOME/marline/clients`, or, where that is not there, the one of `marline setup`.
/// `None` without a home.
pub fn default_clients() -> Option<PathBuf> {
    let own = default_identity().map(|identity| identity.with_file_name("clients"));
    Some(PathBuf::from(OF_SETUP))
        .filter(|file| file.exists() && !own.as_ref().is_some_and(|own| own.exists()))
        .or(own)
}

/// Where a server keeps when its clients were seen last, when no file is named. `None` without a
/// home.
pub fn default_seen() -> Option<PathBuf> {
    default_state("seen.toml")
}

/// A file that this program keeps across restarts: `$XDG_STATE_HOME/marline/NAME`. `None` without a
/// home.
pub(super) fn default_state(name: &str) -> Option<PathBuf> {
    let folder = folder(
        |name| std::env::var_os(name),
        ["XDG_STATE_HOME", "STATE_DIRECTORY"],
        [".local/state", "LOCALAPPDATA"],
    );
    Some(folder?.join(name))
}

/// The program's folder: in the user's, or the service's own, or in `usual` below the home; on
/// Windows, in the folder of that variable.
fn folder(
    variable: impl Fn(&str) -> Option<OsString>,
    [user, service]: [&str; 2],
    [usual, windows]: [&str; 2],
) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(folder) = set(user) {
        return Some(PathBuf::from(folder).join("marline"));
    }
    if let Some(folders) = set(service) {
        // Several are separated by colons; the first is the one that counts.
        let first = folders
            .to_string_lossy()
            .split(':')
            .next()
            .map(PathBuf::from);
        return first;
    }
    if cfg!(windows) {
        return Some(PathBuf::from(set(windows)?).join("marline"));
    }
    let home = PathBuf::from(set("HOME")?);
    Some(home.join(usual).join("marline"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_home_and_a_service_folders_of_its_own() {
        let found = |variables: &[(&str, &str)]| {
            let value = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            folder(
                value,
                ["XDG_STATE_HOME", "STATE_DIRECTORY"],
                [".local/state", "LOCALAPPDATA"],
            )
        };
        let home = ("HOME", "/home/a");
        let service = ("STATE_DIRECTORY", "/var/lib/marline:/var/lib/b");
        assert_eq!(found(&[home]), Some("/home/a/.local/state/marline".into()));
        assert_eq!(
            found(&[("XDG_STATE_HOME", "/s"), service]),
            Some("/s/marline".into())
        );
        assert_eq!(found(&[service]), Some("/var/lib/marline".into()));
        assert_eq!(found(&[service, home]), Some("/var/lib/marline".into()));
        assert_eq!(found(&[("HOME", "")]), None);
    }
}
