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
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The user that the services run as.
pub(super) const USER: &str = "marline";
/// Where the units expect the program.
const PROGRAM: &str = "/usr/bin/marline";
/// Where packages have their units; those of the host's administrator are in [`OWN`].
const PACKAGED: [&str; 2] = ["/usr/lib/systemd/system", "/lib/systemd/system"];
const OWN: &str = "/etc/systemd/system";
/// Where the units' control sockets are, each in a folder of its own.
const RUNTIME: &str = "/run/marline";

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

/// Will a service of this system's run what is set up?
pub(super) fn is_to_run(files: &Files) -> bool {
    !files.are_staged() && is_here()
}

impl Service {
    /// Refuses, before anything is written, a program that the unit could not run.
    ///
    /// # Errors
    /// The program lies in a folder that services do not see.
    pub(super) fn check(&self, files: &Files) -> Result<(), CliError> {
        match is_to_run(files) && self.found(files).is_none() {
            true => this_program().map(drop),
            false => Ok(()),
        }
    }

    /// Installs the unit unless a package has, enables it, and starts it unless that is not wanted;
    /// one that runs already is started again, with the new configuration. `by_hand` is how the
    /// program is started where there is no systemd.
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
        share(Path::new(RUNTIME), 0).map_err(|error| {
            CliError::runtime(format!("cannot open {RUNTIME} to the service: {error}"))
        })?;
        run("systemctl", &["daemon-reload"])?;
        run("systemctl", &["enable", &self.unit])?;
        if !how.no_start {
            let log = format!("what it said: `journalctl -n 20 -u {}`", self.unit);
            run("systemctl", &["restart", &self.unit]).map_err(|error| error.hint(log))?;
        }
        let started = if how.no_start { "" } else { " and started" };
        say(format_args!("enabled{started}: {}", self.unit));
        Ok(())
    }

    /// Where the unit is, if it is somewhere.
    fn found(&self, files: &Files) -> Option<PathBuf> {
        let folders = PACKAGED.iter().chain([&OWN]);
        let mut places = folders.map(|folder| files.at(folder).join(self.file));
        places.find(|place| place.exists())
    }

    /// Where the unit is, written there if it was nowhere.
    fn place(&self, files: &Files) -> Result<PathBuf, CliError> {
        if let Some(place) = self.found(files) {
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
    if is_hidden(&program) {
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

/// Does a service not see that file? By ProtectHome= and PrivateTmp= of the units.
pub(super) fn is_hidden(file: &Path) -> bool {
    let hidden = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];
    hidden.iter().any(|folder| file.starts_with(folder))
}

/// Opens the folder of the control sockets to the services' user, if it is closed: a program that
/// `owner`, root, had started by hand may have made it. The sockets have their own permissions.
fn share(folder: &Path, owner: u32) -> io::Result<()> {
    const CLOSED: u32 = 0o700;
    match fs::symlink_metadata(folder) {
        Ok(it) if it.is_dir() && it.uid() == owner && it.mode() & 0o777 == CLOSED => {
            fs::set_permissions(folder, Permissions::from_mode(0o755))
        }
        _ => Ok(()),
    }
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
            Err(failed(reason(&said).to_owned()))
        }
    }
}

/// Of what a command said, why it failed: the last line. systemctl says before it what it did, and
/// after it where more is to be read.
fn reason(said: &str) -> &str {
    let lines = said.lines().map(str::trim).rev();
    let mut lines = lines.filter(|it| !it.is_empty() && !it.starts_with("See \"systemctl"));
    lines.next().unwrap_or("it said nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_command_failed_is_neither_what_it_did_nor_where_to_read_on() {
        let said = "Created symlink /etc/a -> /etc/b.\n\
                    Job for a.service failed because a timeout was exceeded.\n\
                    See \"systemctl status a.service\" and \"journalctl -xeu a.service\" for details.\n\n";
        assert_eq!(
            reason(said),
            "Job for a.service failed because a timeout was exceeded."
        );
        assert_eq!(reason("\n"), "it said nothing");
    }

    #[test]
    fn a_service_sees_no_homes_and_no_temporary_files() {
        for (file, hidden) in [
            ("/root/.cargo/bin/marline", true),
            ("/home/a/key", true),
            ("/var/tmp/key", true),
            ("/etc/marline/identity", false),
            ("/homes/key", false),
        ] {
            assert_eq!(is_hidden(Path::new(file)), hidden, "{file}");
        }
    }

    #[test]
    fn a_closed_folder_of_sockets_is_opened_and_another_ones_is_not() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("marline");
        share(&folder, 0).unwrap();
        fs::create_dir(&folder).unwrap();
        let owner = fs::metadata(&folder).unwrap().uid();
        let after = |mode, owner| {
            fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
            share(&folder, owner).unwrap();
            fs::metadata(&folder).unwrap().mode() & 0o777
        };
        assert_eq!(after(0o700, owner), 0o755);
        assert_eq!(after(0o700, owner + 1), 0o700);
        assert_eq!(after(0o750, owner), 0o750);
    }

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
