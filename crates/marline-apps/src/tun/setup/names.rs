//! Name servers behind the tunnel: by systemd-resolved where it is in charge, which asks them for
//! the tunnel's domains, or for all names; else in resolv.conf(5), for all names.
//!
//! What resolv.conf held stays in it, as comments that begin with [`FORMER`]: so nothing else has
//! to be kept, and whoever finds the file after a crash, this program first, can put it back.

use super::command::{quoted, words};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use crate::tun::Resolver;
use marline::support::FORMER;

/// The file that programs read.
const FILE: &str = "/etc/resolv.conf";
/// Where systemd-resolved listens (systemd-resolved.service(8)).
const RESOLVED: [&str; 2] = ["127.0.0.53", "127.0.0.54"];
/// Bytes of a file that is understood; more is none of resolv.conf's.
const LONGEST: usize = 64 << 10;
/// A server is asked again after a second, so that a lost question costs no more than that.
const OPTIONS: &str = "options timeout:1 attempts:5";

/// Is systemd-resolved to be asked, and can it be?
pub(super) fn are_resolveds() -> bool {
    // A link there is one to a file that is to come.
    let link = fs::read_link(FILE).unwrap_or_default();
    let is_its = link.to_string_lossy().contains("systemd/resolve/stub");
    let text = fs::read_to_string(FILE).unwrap_or_default();
    (is_its || is_resolveds(&text)) && super::command::has("resolvectl")
}

fn is_resolveds(text: &str) -> bool {
    let servers = || servers(text);
    servers().next().is_some() && servers().all(|server| RESOLVED.contains(&server))
}

fn servers(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some("nameserver")).then(|| words.next())?
    })
}

fn domains(resolvers: &[Resolver]) -> impl Iterator<Item = &str> {
    resolvers.iter().flat_map(|it| &it.domains).map(|it| &**it)
}

/// The commands that have systemd-resolved ask these for the device; the first is undone by
/// `resolvectl revert`.
pub(super) fn by_resolved(device: &str, resolvers: &[Resolver]) -> [Vec<String>; 2] {
    let mut dns = words(&format!("resolvectl dns {device}"));
    dns.extend(resolvers.iter().map(|it| it.address.to_string()));
    let mut domain = words(&format!("resolvectl domain {device}"));
    domain.extend(domains(resolvers).map(|name| format!("~{name}")));
    if domain.len() == 3 {
        // All names.
        domain.push("~.".to_owned());
    }
    [dns, domain]
}

/// A resolv.conf that names these servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    file: PathBuf,
    servers: Vec<IpAddr>,
    search: Vec<String>,
}

impl Names {
    /// Of all these.
    pub(super) fn of(resolvers: &[Resolver]) -> Self {
        // What it links to is written, as the link may be somebody's.
        let file = Path::new(FILE);
        Names {
            file: fs::canonicalize(file).unwrap_or_else(|_| file.to_owned()),
            servers: resolvers.iter().map(|it| it.address).collect(),
            search: domains(resolvers).map(str::to_owned).collect(),
        }
    }

    /// Writes the file, if it is not written yet. Returns whether it was.
    ///
    /// # Errors
    /// It cannot be read or written, or it is none of resolv.conf's.
    pub(super) fn write(&self) -> io::Result<bool> {
        let now = match fs::read_to_string(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        if now.len() > LONGEST {
            return Err(io::Error::other("it is too long for a resolv.conf"));
        }
        let text = self.text(&former(&now));
        if text == now {
            return Ok(false);
        }
        write(&self.file, &text)?;
        Ok(true)
    }

    /// Puts back what the file held, if it is still the one that was written.
    pub(super) fn undo(&self) -> io::Result<()> {
        let now = fs::read_to_string(&self.file)?;
        let former = former(&now);
        match now.lines().any(|line| line.starts_with(FORMER)) {
            // There was none, or nothing in it.
            true if former.is_empty() => {
                fs::remove_file(&self.file).or_else(|_| write(&self.file, &former))
            }
            true => write(&self.file, &former),
            false => Ok(()),
        }
    }

    /// [`undo`](Self::undo) as a command of a shell.
    pub(super) fn to_shell(&self) -> String {
        let file = quoted(&self.file.to_string_lossy());
        format!(
            "grep -q '^{FORMER}' {file} && former=$(sed -n 's/^{FORMER} \\{{0,1\\}}//p' {file}) && \
             printf '%s\\n' \"$former\" >{file}"
        )
    }

    /// What the file is to hold, with what it held before.
    fn text(&self, former: &str) -> String {
        let mut text = String::from(
            "# The name servers of marline's tunnel; in the end, the former ones are put back:\n",
        );
        let mut is_empty = true;
        for line in former.lines() {
            is_empty = false;
            text += &format!("{FORMER} {line}\n");
        }
        if is_empty {
            text += &format!("{FORMER}\n");
        }
        for server in &self.servers {
            text += &format!("nameserver {server}\n");
        }
        let kept = |word: &str| {
            let mut lines = former.lines();
            lines.rfind(|line| line.split_ascii_whitespace().next() == Some(word))
        };
        match self.search.is_empty() {
            false => text += &format!("search {}\n", self.search.join(" ")),
            true => {
                if let Some(line) = kept("search").or_else(|| kept("domain")) {
                    text += &format!("{line}\n");
                }
            }
        }
        text + OPTIONS + "\n"
    }
}

/// What a file held before this program wrote it: itself, if it did not.
fn former(text: &str) -> String {
    if !text.lines().any(|line| line.starts_with(FORMER)) {
        return text.to_owned();
    }
    let lines = text.lines().filter_map(|line| line.strip_prefix(FORMER));
    let lines: Vec<&str> = lines
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect();
    match lines.iter().all(|line| line.is_empty()) {
        true => String::new(),
        false => lines.join("\n") + "\n",
    }
}

/// Whole, or, where another file is mounted over it, as well as it goes.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let mode = fs::metadata(file).map(|known| known.permissions()).ok();
    let whole = crate::whole::write_whole(file, text.as_bytes());
    match (whole, mode) {
        (Ok(()), Some(mode)) => fs::set_permissions(file, mode),
        (Ok(()), None) => {
            #[cfg(unix)]
            fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
            Ok(())
        }
        (Err(_), _) => fs::write(file, text),
    }
}

impl std::fmt::Display for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(IpAddr::to_string).collect();
        let (file, servers) = (self.file.display(), servers.join(" and "));
        write!(f, "`{file}`, with nameserver {servers}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn names(file: &Path) -> Names {
        Names {
            file: file.to_owned(),
            servers: vec!["10.77.0.1".parse().unwrap()],
            search: Vec::new(),
        }
    }

    #[test]
    fn the_file_is_put_back_by_this_run_the_next_one_or_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("resolv.conf");
        let before = "# by hand\n\nnameserver 192.168.1.1\nsearch lan\n";
        let names = names(&file);
        let undo_by_shell = || {
            let done = Command::new("sh").args(["-c", &names.to_shell()]).status();
            assert!(done.unwrap().success());
        };
        let undo = || names.undo().unwrap();
        for undo in [&undo as &dyn Fn(), &undo_by_shell] {
            fs::write(&file, before).unwrap();
            assert!(names.write().unwrap());
            let text = fs::read_to_string(&file).unwrap();
            assert_eq!(servers(&text).collect::<Vec<_>>(), ["10.77.0.1"]);
            assert!(text.contains("\nsearch lan\n"), "{text}");
            // Whoever finds it so has nothing to do, and knows what was there.
            assert!(!names.write().unwrap());
            undo();
            assert_eq!(fs::read_to_string(&file).unwrap(), before);
            // Not ours any more.
            names.undo().unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), before);
        }
    }

    #[test]
    fn what_others_write_meanwhile_is_what_is_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("resolv.conf");
        let names = names(&file);
        assert!(names.write().unwrap(), "there was none");
        fs::write(&file, "nameserver 192.168.2.1\n").unwrap();
        assert!(names.write().unwrap());
        names.undo().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, "nameserver 192.168.2.1\n");
    }

    #[test]
    fn systemd_resolved_is_known_by_its_address() {
        for (text, is) in [
            ("nameserver 127.0.0.53\noptions edns0\n", true),
            ("nameserver 127.0.0.53\nnameserver 192.0.2.1\n", false),
            ("nameserver 192.0.2.1\n", false),
            ("", false),
        ] {
            assert_eq!(is_resolveds(text), is, "{text}");
        }
        let resolver = |text: &str| text.parse::<Resolver>().unwrap();
        let both = [resolver("10.77.0.1,corp.example"), resolver("fd77::1")];
        let commands = by_resolved("tun7", &both).map(|words| words.join(" "));
        assert_eq!(
            commands,
            [
                "resolvectl dns tun7 10.77.0.1 fd77::1",
                "resolvectl domain tun7 ~corp.example"
            ]
        );
        let [_, all] = by_resolved("tun7", &[resolver("10.77.0.1")]);
        assert_eq!(all.join(" "), "resolvectl domain tun7 ~.");
    }
}
