//! Where control sockets lie: the folders that are a user's own, on this system.

use super::status::Role;
use rustix::process::geteuid;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where a socket is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// There, because somebody said so.
    Chosen(PathBuf),
    /// There, because it is the usual place; where that cannot be had, the program does without.
    Usual(PathBuf),
}

/// Where a socket of this user is made unless somebody chooses: in `$RUNTIME_DIRECTORY`, which
/// systemd gives a service (systemd.exec(5)); else in `$XDG_RUNTIME_DIR/marline`; else, of those
/// whose parent there is, in `/run/marline` (root's), `/run/user/UID/marline`, or `marline-UID` in
/// the temporary folder.
pub fn usual_path(role: Role) -> PathBuf {
    let service = std::env::var_os("RUNTIME_DIRECTORY").filter(|folder| !folder.is_empty());
    if let Some(folder) = service {
        // Several are separated by colons.
        let folders = folder.to_string_lossy().into_owned();
        let first = folders.split(':').next().unwrap_or_default();
        return Path::new(first).join(file_name(role));
    }
    let user = User::now();
    user.usual_folder().join(file_name(role))
}

/// Where a socket of this user may be, the likeliest first: where this program would have its own.
/// A program that was started otherwise, as a service is, has another environment than the one who
/// asks.
pub fn usual_paths(role: Role) -> Vec<PathBuf> {
    User::now().paths(usual_path(role), role)
}

/// Of these, the sockets of this host's services, by name: those that are there. None for others
/// than root.
pub fn service_sockets(role: Role) -> Vec<PathBuf> {
    User::now().of_services(role)
}

/// Whether the socket in `folder` is believed to be its user's own program, or, for root, a service
/// of this host's.
pub fn is_trusted(folder: &Path) -> bool {
    // What is not there answers nothing.
    !matches!(is_private(folder), Ok(false)) || is_of_service(folder, geteuid().as_raw())
}

/// Whether `folder` lies where only root puts one: systemd makes it for the user of a service, and
/// only that user writes there.
fn is_of_service(folder: &Path, user: u32) -> bool {
    let safe = |folder: &Path| {
        let metadata = fs::symlink_metadata(folder);
        metadata.is_ok_and(|it| it.is_dir() && it.mode() & 0o022 == 0)
    };
    let parents = folder.ancestors().skip(1);
    let mut of_root = parents
        .filter(|it| !it.as_os_str().is_empty())
        .map(|parent| safe(parent) && fs::symlink_metadata(parent).is_ok_and(|it| it.uid() == 0));
    user == 0 && safe(folder) && of_root.all(|is| is)
}

/// Whether nobody but this user, and root, can have put there what lies in `folder`. One below the
/// temporary folder may have been made by somebody else first.
///
/// # Errors
/// There is no such folder, or it cannot be looked at.
pub fn is_private(folder: &Path) -> io::Result<bool> {
    // Not followed if it is a link: that can be anybody's.
    let metadata = fs::symlink_metadata(folder)?;
    let ours = metadata.uid() == geteuid().as_raw();
    Ok(metadata.is_dir() && ours && metadata.mode() & 0o022 == 0)
}

fn file_name(role: Role) -> &'static str {
    match role {
        Role::Client => "client.sock",
        Role::Server => "server.sock",
    }
}

/// What decides about the folders.
#[derive(Debug)]
struct User {
    id: u32,
    /// `XDG_RUNTIME_DIR`.
    runtime: Option<PathBuf>,
    /// `/run`.
    run: PathBuf,
    temporary: PathBuf,
}

impl User {
    fn now() -> Self {
        let id = geteuid().as_raw();
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        User {
            id,
            // By the XDG base directory specification it is absolute and its user's own. `su` and
            // `sudo -E` leave one that is somebody else's.
            runtime: runtime.filter(|folder| {
                let owner = fs::metadata(folder).map(|metadata| metadata.uid());
                folder.is_absolute() && owner.is_ok_and(|owner| owner == id)
            }),
            run: PathBuf::from("/run"),
            temporary: std::env::temp_dir(),
        }
    }

    fn folders(&self) -> Vec<PathBuf> {
        let runtime = self.runtime.iter().map(|folder| folder.join("marline"));
        let of_root = (self.id == 0).then(|| self.run.join("marline"));
        let of_user = self.run.join(format!("user/{}/marline", self.id));
        let temporary = self.temporary.join(format!("marline-{}", self.id));
        let mut folders = Vec::new();
        for folder in runtime.chain(of_root).chain([of_user, temporary]) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        folders
    }

    /// The sockets of the services that the units start, by name: those that are there.
    fn of_services(&self, role: Role) -> Vec<PathBuf> {
        // Nobody else may ask there.
        if self.id != 0 {
            return Vec::new();
        }
        let services = fs::read_dir(self.run.join("marline"));
        let folders = services.into_iter().flatten().flatten();
        let sockets = folders.map(|folder| folder.path().join(file_name(role)));
        let mut sockets: Vec<PathBuf> = sockets.filter(|it| it.exists()).collect();
        sockets.sort();
        sockets
    }

    /// `first`, and where else a socket may be, each once.
    fn paths(&self, first: PathBuf, role: Role) -> Vec<PathBuf> {
        let folders = self.folders().into_iter();
        let others = folders.map(|folder| folder.join(file_name(role)));
        let mut paths = vec![first];
        for path in others.chain(self.of_services(role)) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths
    }

    fn usual_folder(&self) -> PathBuf {
        let folders = self.folders();
        let in_place = |folder: &&PathBuf| folder.parent().is_some_and(Path::is_dir);
        let found = folders.iter().find(in_place).or(folders.last());
        found.cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn the_systems_folder_comes_before_the_temporary_one() {
        let system = tempfile::tempdir().unwrap();
        let run = system.path().join("run");
        let user = |id, runtime: Option<&str>| User {
            id,
            runtime: runtime.map(|name| system.path().join(name)),
            run: run.clone(),
            temporary: system.path().to_owned(),
        };
        let usual = |id, runtime| {
            let folder = user(id, runtime).usual_folder();
            let folder = folder.strip_prefix(system.path()).unwrap();
            folder.to_str().unwrap().to_owned()
        };
        fs::create_dir(system.path().join("xdg")).unwrap();
        // Nothing of the kind is there.
        assert_eq!(usual(0, None), "marline-0");
        assert_eq!(usual(7, None), "marline-7");
        fs::create_dir_all(run.join("user/7")).unwrap();
        assert_eq!(usual(0, None), "run/marline");
        assert_eq!(usual(7, None), "run/user/7/marline");
        assert_eq!(usual(8, None), "marline-8");
        for id in [0, 7] {
            assert_eq!(usual(id, Some("xdg")), "xdg/marline");
            // A client also looks where a service without that variable has its socket.
            let service = user(id, None).usual_folder();
            assert!(user(id, Some("xdg")).folders().contains(&service));
        }
        let twice = user(7, Some("run/user/7")).folders();
        assert_eq!(twice.len(), 2, "{twice:?}");
        // As in a container, whose environment says where.
        let own = system.path().join("own/server.sock");
        let paths = user(7, None).paths(own.clone(), Role::Server);
        assert_eq!((&paths[0], paths.len()), (&own, 3), "{paths:?}");
        let paths = user(7, None).paths(paths[2].clone(), Role::Server);
        assert_eq!(paths.len(), 2, "{paths:?}");
    }

    #[test]
    fn a_folder_that_others_could_fill_is_not_private() {
        let system = tempfile::tempdir().unwrap();
        let folder = system.path().join("folder");
        fs::create_dir(&folder).unwrap();
        for (mode, private) in [(0o700, true), (0o755, true), (0o770, false), (0o702, false)] {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_private(&folder).unwrap(), private, "{mode:03o}");
        }
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        let link = system.path().join("link");
        symlink(&folder, &link).unwrap();
        assert!(!is_private(&link).unwrap());
        assert!(is_private(&system.path().join("none")).is_err());
    }

    #[test]
    fn root_finds_the_sockets_of_services_and_believes_only_those_that_root_made_room_for() {
        let system = tempfile::tempdir().unwrap();
        let run = system.path().join("run");
        for (folder, name) in [
            ("server", "server.sock"),
            ("client-b", "client.sock"),
            ("client-a", "client.sock"),
            ("client-c", "other"),
        ] {
            let folder = run.join("marline").join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(name), "").unwrap();
        }
        let user = |id| User {
            id,
            runtime: None,
            run: run.clone(),
            temporary: system.path().to_owned(),
        };
        let folder = |name| run.join("marline").join(name);
        let clients = ["client-a", "client-b"].map(|name| folder(name).join("client.sock"));
        assert_eq!(user(0).of_services(Role::Client), clients);
        assert_eq!(
            user(0).of_services(Role::Server),
            [folder("server").join("server.sock")]
        );
        assert!(user(7).of_services(Role::Server).is_empty());
        // Everybody may write in the temporary folder above it.
        assert!(!is_of_service(&folder("server"), 0));
        assert!(
            is_of_service(Path::new("/usr/bin"), 0) && !is_of_service(Path::new("/usr/bin"), 7)
        );
    }
}
