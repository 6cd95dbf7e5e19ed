//! The systemd units, and the user that they run as.
//!
//! The program has no code that changes its user. systemd starts it as [`USER`] with the three
//! capabilities that it needs, as ambient ones, so that `ip`, `nft` and `sysctl`, which it runs for
//! the tunnel's set-up, have them, too, and `no_new_privs` holds for all of them. That gives what
//! dropping privileges later would: at no time is there a process of root's, and routes, rules and
//! the firewall of the tunnel can still be changed when paths do. A helper of root's would have to
//! be trusted with the same three capabilities, and asked in a protocol of its own. What they do
//! not cover is /etc/resolv.conf (docs/INSTALL.md).

use super::super::CliError;
use super::files::Files;
use super::{How, say};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The user that the services run as.
pub(super) const USER: &str = "marline";
/// Where the units expect the program.
const PROGRAM: &str = "/usr/bin/marline";
/// Where packages have their units; those of the host's administrator are in [`OWN`].
const PACKAGED: [&str; 2] = ["/usr/lib/systemd/system", "/lib/systemd/system"];
const OWN: &str = "/etc/systemd/system";

/// A unit, and what is enabled of it.
#[derive(Debug)]
pub(super) struct Service {
    file: &'static str,
    text: &'static str,
    /// The name that it is enabled and started by.
    pub(super) unit: String,
}

/// The service of a server.
pub(super) fn of_server() -> Service {
    Service {
        file: "marline-server.service",
        text: include_str!("../../../systemd/marline-server.service"),
        unit: "marline-server.service".to_owned(),
    }
}

/// The service of the client of that name.
pub(super) fn of_client(name: &str) -> Service {
    Service {
        file: "marline-client@.service",
        text: include_str!("../../../systemd/marline-client@.service"),
        unit: format!("marline-client@{name}.service"),
    }
}

/// Is this system run by systemd?
fn is_here() -> bool {
    // sd_booted(3).
    Path::new("/run/systemd/system").is_dir()
}

/// Makes the user where systemd is and there is none: its key must have an owner.
///
/// # Errors
/// It cannot be made.
pub(super) fn make_user(files: &Files) -> Result<(), CliError> {
    let known = || nix::unistd::User::from_name(USER).is_ok_and(|user| user.is_some());
    if files.are_staged() || !is_here() || known() {
        return Ok(());
    }
    let words = "--system --user-group --no-create-home --home-dir /var/lib/marline --shell /usr/sbin/nologin";
    run(
        "useradd",
        &[&words.split(' ').collect::<Vec<_>>()[..], &[USER]].concat(),
    )?;
    say(format_args!("made the system user {USER}"));
    Ok(())
}

impl Service {
    /// Installs the unit unless a package has, enables it, and starts it unless that is not wanted.
    /// `by_hand` is how the program is started where there is no systemd.
    ///
    /// # Errors
    /// A file or a command failed.
    pub(super) fn install(&self, files: &Files, how: &How, by_hand: &str) -> Result<(), CliError> {
        if !files.are_staged() && !is_here() {
            say(format_args!(
                "no systemd runs here, so no service is installed; the program is started by: {by_hand}"
            ));
            return Ok(());
        }
        let place = self.place(files)?;
        if files.are_staged() {
            let link = files.at(&format!("{OWN}/multi-user.target.wants/{}", self.unit));
            let target = Path::new("/").join(place.strip_prefix(files.at("/")).unwrap_or(&place));
            return enable(&link, &target)
                .map(|()| say(format_args!("enabled: {}", self.unit)))
                .map_err(|error| {
                    CliError::runtime(format!("cannot make the link {}: {error}", link.display()))
                });
        }
        run("systemctl", &["daemon-reload"])?;
        match how.no_start {
            true => run("systemctl", &["enable", &self.unit])?,
            false => run("systemctl", &["enable", "--now", &self.unit])?,
        }
        let started = if how.no_start { "" } else { " and started" };
        say(format_args!("enabled{started}: {}", self.unit));
        Ok(())
    }

    /// Where the unit is, written there if it was nowhere.
    fn place(&self, files: &Files) -> Result<PathBuf, CliError> {
        let folders = PACKAGED.iter().chain([&OWN]);
        let mut places = folders.map(|folder| files.at(folder).join(self.file));
        if let Some(place) = places.find(|place| place.exists()) {
            return Ok(place);
        }
        let place = files.at(OWN).join(self.file);
        let text = match files.are_staged() {
            true => self.text.to_owned(),
            false => self.text.replace(PROGRAM, &this_program()?),
        };
        files.write_new(&place, &text, 0o644)?;
        say(format_args!("written: {}", place.display()));
        Ok(place)
    }
}

/// This program, where a service can run it.
fn this_program() -> Result<String, CliError> {
    let program = std::env::current_exe().map_err(CliError::runtime)?;
    let hidden = ["/home", "/root", "/run/user", "/tmp"];
    if hidden.iter().any(|folder| program.starts_with(folder)) {
        return Err(CliError::usage(format!(
            "a service cannot run {}, which is in a folder that it does not see",
            program.display()
        ))
        .hint(format!(
            "`install {} /usr/local/bin/marline`, and run that",
            program.display()
        )));
    }
    Ok(program.display().to_string())
}

fn enable(link: &Path, target: &Path) -> io::Result<()> {
    if let Some(folder) = link.parent() {
        std::fs::create_dir_all(folder)?;
    }
    match symlink(target, link) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

fn run(program: &str, words: &[&str]) -> Result<(), CliError> {
    let command = format!("{program} {}", words.join(" "));
    let failed = |why: String| {
        CliError::runtime(format!("`{command}` failed: {why}")).hint(format!(
            "run it by hand, then look at the system's log: `{command}`"
        ))
    };
    let output = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(failed(
                said.lines().next().unwrap_or("it said nothing").to_owned(),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_unit_is_written_once_and_enabled_where_a_package_has_it_too() {
        let root = tempfile::tempdir().unwrap();
        let files = Files::below(Some(root.path())).unwrap();
        let how = How::default();
        let link = |unit: &str| {
            let link = format!("etc/systemd/system/multi-user.target.wants/{unit}");
            fs::read_link(root.path().join(link)).unwrap()
        };
        for name in ["van", "boat"] {
            of_client(name).install(&files, &how, "").unwrap();
            let target = link(&format!("marline-client@{name}.service"));
            assert_eq!(
                target,
                Path::new("/etc/systemd/system/marline-client@.service")
            );
        }
        let packaged = root
            .path()
            .join("usr/lib/systemd/system/marline-server.service");
        fs::create_dir_all(packaged.parent().unwrap()).unwrap();
        fs::write(&packaged, "").unwrap();
        of_server().install(&files, &how, "").unwrap();
        assert_eq!(
            link("marline-server.service"),
            Path::new("/usr/lib/systemd/system/marline-server.service")
        );
        assert!(
            !root
                .path()
                .join("etc/systemd/system/marline-server.service")
                .exists()
        );
    }

    #[test]
    fn the_units_run_the_program_where_packages_have_it() {
        for service in [of_server(), of_client("main")] {
            let commands = service
                .text
                .lines()
                .filter(|line| line.starts_with("ExecStart"));
            let commands: Vec<&str> = commands.collect();
            assert_eq!(commands.len(), 2, "{commands:?}");
            assert!(
                commands.iter().all(|line| line.contains(PROGRAM)),
                "{commands:?}"
            );
            assert!(service.text.contains(&format!("User={USER}\n")));
        }
    }
}
